//! Context switches of the program's own threads, from perf: no privilege is needed up to
//! `perf_event_paranoid` 2.
//!
//! **Method.** The recorder opens an event that counts nothing on itself, one for each CPU (an
//! event that is inherited and has a buffer must be of one CPU). The program and its children
//! inherit it. It is enabled when the program is executed, so it contains nothing of the recorder
//! itself. The kernel then writes a record whenever one of these threads goes on or off a CPU.
//! The record has the thread's id, the CPU, the time, and whether the thread could have run on.
//!
//! For a running program one event is opened on each thread and CPU, and those of a CPU share a
//! buffer.
//!
//! **Caveats.** While these events are being opened, a thread created by one that has no event
//! yet has none either. A thread's last way off its CPU, when it ends, is not recorded. A program
//! that changes its user by executing a set-uid file loses its events.

mod buffer;

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use perf_event_open_sys::bindings as abi;
use undertick_clock::ClockId;

use super::raw::{Record, RecordKind};
use super::sampling::Sampling;
use buffer::{Buffer, open_buffers};

/// Bytes of a buffer: 16384 switches, 0.1 s of a fast ping-pong. This is as much as a user may
/// lock (`perf_event_mlock_kb`, 516 KiB a CPU); a second recorder takes from `ulimit -l`.
const MOST_BYTES: usize = 512 << 10;
/// Bytes of a buffer that samples with stacks go to as well: a quarter of a second of them, where so much
/// memory may be locked; and of all these buffers together.
const MOST_BYTES_WITH_STACKS: usize = 4 << 20;
const MOST_BYTES_TOGETHER: usize = 128 << 20;
/// Smaller buffers are not worthwhile, bytes.
const LEAST_BYTES: usize = 8 << 10;
/// With stacks: four samples.
const LEAST_BYTES_WITH_STACKS: usize = 64 << 10;
/// Denotes the calling thread in perf's interface.
const CALLER: i32 = 0;
/// Bytes of a record's header.
const HEADER_BYTES: usize = 8;
/// Bytes of thread, time and CPU at the end of each record.
const TAIL_BYTES: usize = 24;

/// The clock of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PerfClock {
    id: libc::c_int,
    /// The times are not the trace clock's.
    pub(super) mapped: bool,
}

impl PerfClock {
    /// Returns the trace clock where perf offers it, otherwise the monotonic clock that is never
    /// adjusted.
    pub(super) fn for_trace(trace: ClockId) -> Self {
        match trace {
            ClockId::MonotonicRaw => Self::new(libc::CLOCK_MONOTONIC_RAW, false),
            ClockId::Monotonic => Self::new(libc::CLOCK_MONOTONIC, false),
            _ => Self::new(libc::CLOCK_MONOTONIC_RAW, true),
        }
    }

    const fn new(id: libc::c_int, mapped: bool) -> Self {
        Self { id, mapped }
    }

    pub(super) const fn name(self) -> &'static str {
        if self.id == libc::CLOCK_MONOTONIC {
            "monotonic"
        } else {
            "monotonic_raw"
        }
    }
}

/// Buffers of samples of waits, or why there are none.
type Waits = Result<Vec<Buffer>, String>;

/// The events of all CPUs.
#[derive(Debug)]
pub(super) struct Perf {
    buffers: Vec<Buffer>,
    /// Buffers of samples of threads that leave their CPU: when there are too many, nothing else is lost.
    waits: Vec<Buffer>,
    clock: PerfClock,
}

impl Perf {
    /// Opens the events on the calling thread, for what it will execute, or on running threads; with
    /// `stacks` those that sample, too.
    ///
    /// # Errors
    /// Why they cannot be opened, in plain words.
    pub(super) fn open(
        trace_clock: ClockId,
        threads: Option<&[i32]>,
        mut stacks: Option<&mut Sampling>,
    ) -> Result<Self, String> {
        let clock = PerfClock::for_trace(trace_clock);
        let (cpus, threads) = (super::cpus(), threads.map_or(vec![CALLER], <[i32]>::to_vec));
        let (bytes, min_bytes) = match stacks {
            Some(_) => (bytes_with_stacks(cpus.len()), LEAST_BYTES_WITH_STACKS),
            None => (MOST_BYTES, LEAST_BYTES),
        };
        let mut open_both = |bytes: usize| -> Result<(Vec<Buffer>, Waits), String> {
            let buffers = open_buffers(&cpus, &threads, (bytes, min_bytes), &mut |cpu, thread| {
                let mut attr = switches(clock, thread, stacks.is_some());
                let of_switches = match open_event(&mut attr, cpu, thread) {
                    Ok(event) => event,
                    // The CPU was taken offline since, or the thread has ended.
                    Err(error)
                        if matches!(error.raw_os_error(), Some(libc::ENODEV | libc::ESRCH)) =>
                    {
                        return Ok(Vec::new());
                    }
                    Err(error) => return Err(refused(&error)),
                };
                let of_clock =
                    (stacks.as_mut()).and_then(|of| of.open_clock(clock.id, cpu, thread));
                Ok([of_switches].into_iter().chain(of_clock).collect())
            })?;
            let Some(stacks) = &mut stacks else {
                return Ok((buffers, Ok(Vec::new())));
            };
            let waits = open_buffers(&cpus, &threads, (bytes, min_bytes), &mut |cpu, thread| {
                let event = stacks.open_waits(clock.id, cpu, thread);
                Ok(event.into_iter().collect())
            });
            Ok((buffers, waits))
        };
        // Buffers of the first kind must not take all the memory that may be locked.
        let mut bytes = bytes;
        let (buffers, waits) = loop {
            match open_both(bytes)? {
                (_, Err(_)) if bytes > min_bytes => bytes /= 2,
                found => break found,
            }
        };
        if buffers.is_empty() {
            return Err(match threads.as_slice() {
                [CALLER] => "no CPU was found in /sys/devices/system/cpu/online".to_owned(),
                _ => "the program has ended".to_owned(),
            });
        }
        let waits = waits.unwrap_or_else(|why| {
            if let Some(stacks) = &mut stacks {
                stacks.lacks_waits(&why);
            }
            Vec::new()
        });
        Ok(Self {
            buffers,
            waits,
            clock,
        })
    }

    pub(super) const fn clock(&self) -> PerfClock {
        self.clock
    }

    /// Bytes of each buffer, where they are smaller than wanted.
    pub(super) fn small(&self) -> Option<usize> {
        let least = self.buffers.iter().map(|buffer| buffer.bytes).min()?;
        (least < MOST_BYTES).then_some(least)
    }

    /// Passes on the records that have arrived since; the stacks of samples are numbered by `stacks`.
    pub(super) fn drain(
        &mut self,
        mut stacks: Option<&mut Sampling>,
        mut take: impl FnMut(Record),
    ) {
        for buffer in &mut self.buffers {
            buffer.drain(self.clock.mapped, stacks.as_deref_mut(), &mut take);
        }
        // Of waits that are lost the analysis knows from the switches.
        for buffer in &mut self.waits {
            buffer.drain(self.clock.mapped, stacks.as_deref_mut(), &mut |record| {
                if record.kind != RecordKind::PerfLost {
                    take(record);
                }
            });
        }
    }

    /// Passes on losses that no record reported, because none came after them; `now` is the time
    /// given to them. To be called after the last [`drain`](Self::drain).
    pub(super) fn unreported_losses(&mut self, now: u64, mut take: impl FnMut(Record)) {
        for buffer in &mut self.buffers {
            let unreported = buffer.lost().saturating_sub(buffer.reported);
            if unreported > 0 {
                take(Record {
                    cpu: buffer.cpu,
                    payload: unreported as i64,
                    ..Record::new(RecordKind::PerfLost, now)
                });
            }
        }
    }
}

/// Bytes of each buffer that samples with stacks go to, on a machine with that number of CPUs.
fn bytes_with_stacks(cpus: usize) -> usize {
    let each = MOST_BYTES_TOGETHER / cpus.max(1);
    let power = 1 << each.max(1).ilog2();
    power.clamp(MOST_BYTES, MOST_BYTES_WITH_STACKS)
}

fn refused(error: &io::Error) -> String {
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid")
        .map_or_else(|_| "not there".to_owned(), |text| text.trim().to_owned());
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => format!(
            "perf events are not allowed ({error}; /proc/sys/kernel/perf_event_paranoid is {paranoid}, 2 is enough; \
             a container may forbid them too)"
        ),
        Some(libc::ENOSYS | libc::ENOENT | libc::EOPNOTSUPP) => {
            format!("this kernel has no perf events ({error})")
        }
        Some(libc::EMFILE) => {
            "too many open files: one is needed for each CPU, three with --stacks (of a program that runs \
             already also for each thread), raise ulimit -n"
                .to_owned()
        }
        _ => format!("perf_event_open: {error}"),
    }
}

/// A software event of the program's threads, inherited; nothing of the kernel is counted. All of them
/// have the same bytes at the end of their records ([`TAIL_BYTES`]).
pub(super) fn software(config: u32, clock: libc::c_int, thread: i32) -> abi::perf_event_attr {
    let mut attr = abi::perf_event_attr {
        type_: abi::PERF_TYPE_SOFTWARE,
        size: size_of::<abi::perf_event_attr>() as u32,
        config: u64::from(config),
        sample_type: u64::from(abi::PERF_SAMPLE_TID | abi::PERF_SAMPLE_TIME | abi::PERF_SAMPLE_CPU),
        clockid: clock,
        ..Default::default()
    };
    let waits = u64::from(thread == CALLER);
    attr.set_disabled(waits);
    attr.set_inherit(1);
    attr.set_exclude_kernel(1);
    attr.set_exclude_hv(1);
    attr.set_enable_on_exec(waits);
    attr.set_sample_id_all(1);
    attr.set_use_clockid(1);
    attr
}

/// The event whose records are switches, and with `with_code`, which code processes map and execute.
fn switches(clock: PerfClock, thread: i32, with_code: bool) -> abi::perf_event_attr {
    let mut attr = software(abi::PERF_COUNT_SW_DUMMY, clock.id, thread);
    attr.set_context_switch(1);
    let with_code = u64::from(with_code);
    attr.set_mmap(with_code);
    attr.set_mmap2(with_code);
    attr.set_comm(with_code);
    attr.set_comm_exec(with_code);
    attr
}

/// Opens an event; returns it, and whether it counts its losses (kernel 6.0).
pub(super) fn open_event(
    attr: &mut abi::perf_event_attr,
    cpu: u32,
    thread: i32,
) -> io::Result<(OwnedFd, bool)> {
    let mut open = |read_format: u32| {
        attr.read_format = u64::from(read_format);
        // SAFETY: the attributes are initialised and of the size they say.
        let fd = unsafe {
            perf_event_open_sys::perf_event_open(
                &raw mut *attr,
                thread,
                cpu as libc::c_int,
                -1,
                libc::c_ulong::from(abi::PERF_FLAG_FD_CLOEXEC),
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a descriptor just opened that nobody else has.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    };
    match open(abi::PERF_FORMAT_LOST) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok((open(0)?, false)),
        opened => Ok((opened?, true)),
    }
}

/// The type of a record, at its beginning.
fn record_type(bytes: &[u8]) -> u32 {
    bytes
        .first_chunk()
        .map_or(0, |word| u32::from_ne_bytes(*word))
}

/// Parses a record as the kernel wrote it; `None` for one without relevant content.
fn parse(bytes: &[u8]) -> Option<Record> {
    let body = bytes.get(HEADER_BYTES..)?;
    let tail = body.len().checked_sub(TAIL_BYTES)?;
    let i32_at = |at: usize| i32::from_ne_bytes(body[at..at + 4].try_into().expect("4 bytes"));
    let u64_at = |at: usize| u64::from_ne_bytes(body[at..at + 8].try_into().expect("8 bytes"));
    let misc = u32::from(u16::from_ne_bytes([bytes[4], bytes[5]]));
    let (kind, payload) = match record_type(bytes) {
        abi::PERF_RECORD_SWITCH if misc & abi::PERF_RECORD_MISC_SWITCH_OUT != 0 => {
            let runnable = misc & abi::PERF_RECORD_MISC_SWITCH_OUT_PREEMPT != 0;
            (RecordKind::PerfOut, i64::from(runnable))
        }
        abi::PERF_RECORD_SWITCH => (RecordKind::PerfIn, 0),
        abi::PERF_RECORD_LOST if tail >= 16 => (RecordKind::PerfLost, u64_at(8) as i64),
        _ => return None,
    };
    Some(Record {
        cpu: i32_at(tail + 16) as i16,
        pid: i32_at(tail),
        tid: i32_at(tail + 4),
        payload,
        ..Record::new(kind, u64_at(tail + 8))
    })
}

#[cfg(test)]
mod tests;
