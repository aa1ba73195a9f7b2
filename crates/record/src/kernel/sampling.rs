//! Samples of the program's threads with their stacks, from perf: at equal times on the CPU, and when a
//! thread leaves its CPU.
//!
//! **Method.** Two software events beside that of the switches ([`super::perf`]): the CPU's clock with a
//! fixed period, and context switches, in separate buffers. The kernel copies registers and the innermost
//! bytes of the stack. They are unwound here, while the program runs ([`undertick_stacks`]); the trace gets a
//! number for each stack.
//!
//! **Caveats.** Where the kernel may not be sampled (`perf_event_paranoid` 2 without privilege), there
//! are samples only of code of the program: none in system calls, and none of threads that wait. Of more
//! switches than some 10 000 a second and CPU, some are not sampled.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::time::Duration;

use perf_event_open_sys::bindings as abi;
use undertick_format::TraceError;
use undertick_format::files::STACKS_FILE;
use undertick_format::manifest::StackSampling;
use undertick_format::schema::Sampled;
use undertick_format::stacks::StackTable;
use undertick_stacks::{Registers, Tree, Unwinders};

use super::perf;
use super::raw::{Record, RecordKind};
use crate::trace_dir::TraceDir;

/// The tree of stacks while the recorder writes it.
pub(crate) const RAW_STACKS_FILE: &str = "stacks.txt";
/// Its name while it is begun.
pub(crate) const NEW_STACKS_FILE: &str = "stacks.txt.new";
/// Largest text of a tree that is read: as long as one with its most nodes, frames and modules.
const MOST_TEXT_BYTES: u64 = 64 << 20;
/// Bytes of a stack that the kernel copies. A frame takes about 100.
const STACK_BYTES: u32 = 16 << 10;
/// Period of the event of switches. That of the clock is longer than [`MIN_EVERY`], ns, which
/// distinguishes the samples.
const EACH_SWITCH: u64 = 1;
/// Shortest time between samples.
pub const MIN_EVERY: Duration = Duration::from_micros(100);

/// Registers that are sampled, by perf's numbers for this machine: instruction, stack and frame pointer,
/// and a register with the return address.
#[cfg(target_arch = "x86_64")]
const REGISTERS: [u32; 3] = [6, 7, 8];
#[cfg(target_arch = "aarch64")]
const REGISTERS: [u32; 4] = [29, 30, 31, 32];

#[cfg(target_arch = "x86_64")]
fn registers(of: &[u64]) -> Option<Registers> {
    let &[fp, sp, ip] = of else { return None };
    Some(Registers { ip, sp, fp, lr: 0 })
}

#[cfg(target_arch = "aarch64")]
fn registers(of: &[u64]) -> Option<Registers> {
    let &[fp, lr, sp, ip] = of else { return None };
    Some(Registers { ip, sp, fp, lr })
}

/// An event whose samples have registers and stacks.
fn sampled(config: u32, clock: libc::c_int, thread: i32) -> abi::perf_event_attr {
    let mut attr = perf::software(config, clock, thread);
    attr.sample_type |= u64::from(
        abi::PERF_SAMPLE_PERIOD | abi::PERF_SAMPLE_REGS_USER | abi::PERF_SAMPLE_STACK_USER,
    );
    attr.sample_regs_user = REGISTERS.iter().fold(0, |mask, bit| mask | 1 << bit);
    attr.sample_stack_user = STACK_BYTES;
    attr
}

/// Numbers the stacks of samples.
#[derive(Debug)]
pub(super) struct Sampling {
    pub(super) description: StackSampling,
    unwinders: Unwinders,
    file: File,
    failed: Option<io::Error>,
}

impl Sampling {
    /// Samples each CPU when the program's threads were on it for that time. Continues the stacks of an
    /// earlier recorder of this trace.
    ///
    /// # Errors
    /// The file of stacks cannot be made or read.
    pub(super) fn start(trace: &TraceDir, every: Duration) -> Result<Self, TraceError> {
        let path = trace.join(RAW_STACKS_FILE);
        let known = Tree::read(&text(trace)?.unwrap_or_default());
        // Written anew, without what was torn, and only then in place of the old one.
        let file =
            (trace.create(NEW_STACKS_FILE)).map_err(TraceError::io(&path, "cannot create"))?;
        let mut sampling = Self {
            description: StackSampling {
                every_ns: every.max(MIN_EVERY).as_nanos() as u64,
                stack_bytes: STACK_BYTES,
                in_kernel: true,
                when_leaving: true,
                ..StackSampling::default()
            },
            unwinders: Unwinders::continuing(known),
            file,
            failed: None,
        };
        sampling.flush();
        if let Some(error) = sampling.failed.take() {
            return Err(TraceError::io(&path, "cannot write")(error));
        }
        (trace.rename(NEW_STACKS_FILE, RAW_STACKS_FILE))
            .map_err(TraceError::io(&path, "cannot replace"))?;
        Ok(sampling)
    }

    /// Opens the event that samples a thread on a CPU at equal times; without the kernel's code where that
    /// is not permitted, which the description then says.
    pub(super) fn open_clock(
        &mut self,
        clock: libc::c_int,
        cpu: u32,
        thread: i32,
    ) -> Option<(OwnedFd, bool)> {
        let mut attr = sampled(abi::PERF_COUNT_SW_CPU_CLOCK, clock, thread);
        attr.__bindgen_anon_1.sample_period = self.description.every_ns;
        if self.description.in_kernel {
            attr.set_exclude_kernel(0);
            match perf::open_event(&mut attr, cpu, thread) {
                Ok(event) => return Some(event),
                Err(error) => self.lacks(&error),
            }
        }
        attr.set_exclude_kernel(1);
        let opened = perf::open_event(&mut attr, cpu, thread);
        if let Err(error) = &opened {
            self.lacks(error);
        }
        opened.ok()
    }

    /// Opens the event that samples a thread when it leaves a CPU, if that is permitted.
    pub(super) fn open_waits(
        &mut self,
        clock: libc::c_int,
        cpu: u32,
        thread: i32,
    ) -> Option<(OwnedFd, bool)> {
        if !self.description.when_leaving {
            return None;
        }
        let mut attr = sampled(abi::PERF_COUNT_SW_CONTEXT_SWITCHES, clock, thread);
        attr.__bindgen_anon_1.sample_period = EACH_SWITCH;
        attr.set_exclude_kernel(0);
        let opened = perf::open_event(&mut attr, cpu, thread);
        if let Err(error) = &opened {
            self.lacks(error);
        }
        opened.ok()
    }

    /// Notes what cannot be sampled, and why.
    fn lacks(&mut self, error: &io::Error) {
        match error.raw_os_error() {
            // The CPU was taken offline since, or the thread has ended.
            Some(libc::ENODEV | libc::ESRCH) => {}
            Some(libc::EACCES | libc::EPERM) => {
                (self.description.in_kernel, self.description.when_leaving) = (false, false);
                self.description.why = format!(
                    "Time in system calls and waits were not sampled ({error}): this needs CAP_PERFMON \
                     (before Linux 5.8 CAP_SYS_ADMIN), or /proc/sys/kernel/perf_event_paranoid at 1 or lower"
                );
            }
            _ => self.description.why = format!("Some CPUs or threads were not sampled: {error}"),
        }
    }

    /// Notes why waits are not sampled.
    pub(super) fn lacks_waits(&mut self, why: &str) {
        self.description.when_leaving = false;
        self.description.why = format!("Waits were not sampled: {why}");
    }

    /// Takes a record of code that a process mapped, or executes.
    pub(super) fn note_code(&mut self, bytes: &[u8]) {
        let word = |at: usize| bytes.get(at..).and_then(|rest| rest.first_chunk());
        let Some(pid) = word(8).map(|word| i32::from_ne_bytes(*word)) else {
            return;
        };
        let kind = word(0).map_or(0, |word| u32::from_ne_bytes(*word));
        let misc = word(4).map_or(0, |&[low, high, ..]: &[u8; 4]| {
            u32::from(u16::from_ne_bytes([low, high]))
        });
        match kind {
            abi::PERF_RECORD_MMAP2 => self.unwinders.has_mapped(pid),
            _ if misc & abi::PERF_RECORD_MISC_COMM_EXEC != 0 => self.unwinders.has_executed(pid),
            _ => {}
        }
    }

    /// Takes a sample as the kernel wrote it.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Option<Record> {
        let sample = Sample::parse(bytes)?;
        let does = match () {
            () if sample.period == EACH_SWITCH => Sampled::Leaves,
            () if sample.is_in_kernel => Sampled::InKernel,
            () => Sampled::InProgram,
        };
        let registers = registers(&sample.registers).unwrap_or_default();
        let node = self.unwinders.sample(sample.pid, registers, sample.stack);
        Some(Record {
            cpu: sample.cpu,
            pid: sample.pid,
            tid: sample.tid,
            a: does as i32,
            payload: i64::from(node),
            ..Record::new(RecordKind::Stack, sample.time)
        })
    }

    /// Writes the stacks that are new, before the records that refer to them.
    pub(super) fn flush(&mut self) {
        let lines = self.unwinders.new_lines();
        if self.failed.is_none() && !lines.is_empty() {
            self.failed = self.file.write_all(lines.as_bytes()).err();
        }
    }

    /// Ends; returns what went wrong, if anything did.
    pub(super) fn finish(mut self) -> Option<String> {
        self.flush();
        let no_room = self.unwinders.no_room();
        match self.failed {
            Some(error) => Some(format!(
                "the disk refused stacks while recording, some samples have none: {error}"
            )),
            None => (no_room > 0).then(|| {
                format!(
                    "{no_room} stack samples have no functions: the trace holds as many different stacks as it can"
                )
            }),
        }
    }
}

/// A sample.
#[derive(Debug, PartialEq, Eq)]
struct Sample<'a> {
    pid: i32,
    tid: i32,
    time: u64,
    cpu: i16,
    period: u64,
    is_in_kernel: bool,
    registers: Vec<u64>,
    stack: &'a [u8],
}

impl<'a> Sample<'a> {
    /// Parses the fields that were asked for, in the order of `perf_event_open(2)`.
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let misc = u32::from(u16::from_ne_bytes(*bytes.get(4..)?.first_chunk()?));
        let mut rest = bytes.get(8..)?;
        let pid = i32::from_ne_bytes(*take(&mut rest)?);
        let tid = i32::from_ne_bytes(*take(&mut rest)?);
        let time = u64::from_ne_bytes(*take(&mut rest)?);
        let [cpu, _] = [*take(&mut rest)?, *take(&mut rest)?].map(u32::from_ne_bytes);
        let period = u64::from_ne_bytes(*take(&mut rest)?);
        let abi = u64::from_ne_bytes(*take(&mut rest)?);
        let mut registers = Vec::new();
        if abi != 0 {
            for _ in REGISTERS {
                registers.push(u64::from_ne_bytes(*take(&mut rest)?));
            }
        }
        let bytes = usize::try_from(u64::from_ne_bytes(*take(&mut rest)?)).ok()?;
        let mut stack: &[u8] = &[];
        if bytes > 0 {
            let (copied, mut after) = rest.split_at_checked(bytes)?;
            let valid = u64::from_ne_bytes(*take(&mut after)?);
            stack = &copied[..bytes.min(usize::try_from(valid).ok()?)];
        }
        Some(Self {
            pid,
            tid,
            time,
            cpu: cpu as i16,
            period,
            is_in_kernel: misc & abi::PERF_RECORD_MISC_CPUMODE_MASK == abi::PERF_RECORD_MISC_KERNEL,
            registers,
            stack,
        })
    }
}

/// Takes the next bytes.
fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (first, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(first)
}

fn text(trace: &TraceDir) -> Result<Option<String>, TraceError> {
    let path = trace.join(RAW_STACKS_FILE);
    let Some(file) = trace.read_if_there(RAW_STACKS_FILE)? else {
        return Ok(None);
    };
    let mut bytes = Vec::new();
    (file.take(MOST_TEXT_BYTES).read_to_end(&mut bytes))
        .map_err(TraceError::io(&path, "cannot read"))?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Copies the stacks of a running recorder into another trace, up to a whole line.
///
/// # Errors
/// A file cannot be read or written.
pub(crate) fn copy(trace: &TraceDir, out: &TraceDir) -> Result<(), TraceError> {
    let Some(text) = text(trace)? else {
        return Ok(());
    };
    let put = || out.create_new(RAW_STACKS_FILE)?.write_all(text.as_bytes());
    put().map_err(TraceError::io(&out.join(RAW_STACKS_FILE), "cannot write"))
}

/// Names the functions of the stacks, and stores them. The raw file stays until the manifest is written.
///
/// # Errors
/// A file cannot be read or written.
pub(crate) fn finish(trace: &TraceDir) -> Result<StackTable, TraceError> {
    let text = text(trace)?.unwrap_or_default();
    let named = Tree::read(&text).name();
    let table = StackTable {
        functions: (named.functions.into_iter())
            .map(|of| (of.name, of.file))
            .collect(),
        nodes: (named.nodes.into_iter())
            .map(|(caller, function)| (caller, function.map_or(-1, |of| of as i32)))
            .collect(),
    };
    let json = serde_json::to_vec(&table).map_err(|error| {
        TraceError::Recording(format!("stacks that cannot be written as JSON: {error}"))
    })?;
    (trace.replace(STACKS_FILE, &json))
        .map_err(TraceError::io(&trace.join(STACKS_FILE), "cannot write"))?;
    Ok(table)
}

#[cfg(test)]
mod tests;
