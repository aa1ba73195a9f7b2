//! Unwinds samples of processes.

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use framehop::{CacheNative, MayAllocateDuringUnwind, Module, Unwinder, UnwinderNative};
use rustix::fs::OFlags;

use crate::elf::{Bytes, Unwinding};
use crate::maps::{self, Mapping, Of};
use crate::tree::{self, Frame, Root, Tree};
use crate::{MOST_FRAMES, MOST_PROCESSES};

/// Shortest time between two readings of what a process has mapped.
const READ_AGAIN_AFTER: Duration = Duration::from_millis(50);
/// Largest image of the kernel's code for all programs, bytes.
const MOST_VDSO_BYTES: u64 = 1 << 20;

/// Registers of a sampled thread in its program's code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// Instruction pointer.
    pub ip: u64,
    /// Stack pointer.
    pub sp: u64,
    /// Frame pointer: `rbp`, or `x29`.
    pub fp: u64,
    /// Return address in a register: `x30`; not used on x86-64.
    pub lr: u64,
}

/// Unwinds the samples of a recording, and gives each stack a number.
#[derive(Default)]
pub struct Unwinders {
    processes: HashMap<i32, Process>,
    files: HashMap<(u64, u64), Option<Arc<Unwinding>>>,
    vdso: Option<Option<Arc<Unwinding>>>,
    cache: CacheNative<MayAllocateDuringUnwind>,
    tree: Tree,
}

impl std::fmt::Debug for Unwinders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unwinders")
            .field("tree", &self.tree)
            .finish_non_exhaustive()
    }
}

/// A process that was sampled.
struct Process {
    unwinder: UnwinderNative<Bytes, MayAllocateDuringUnwind>,
    code: Vec<Code>,
    read_at: Instant,
}

/// Mapped code: its module's number, and what to subtract from its addresses.
#[derive(Clone, Debug)]
struct Code {
    addresses: Range<u64>,
    module: u32,
    bias: u64,
}

impl Unwinders {
    /// Continues the tree of a recording that goes on; all of it is new lines.
    #[must_use]
    pub fn continuing(tree: Tree) -> Self {
        Self {
            tree,
            ..Self::default()
        }
    }

    /// The number of the stack of a sample: `stack` are the bytes of memory from the stack pointer on.
    pub fn sample(&mut self, pid: i32, registers: Registers, stack: &[u8]) -> u32 {
        if registers.ip == 0 {
            return Root::Unknown as u32;
        }
        self.know(pid, registers.ip);
        let Some(process) = self.processes.get_mut(&pid) else {
            return Root::Unknown as u32;
        };
        let mut read = |address: u64| -> Result<u64, ()> {
            let at = usize::try_from(address.checked_sub(registers.sp).ok_or(())?).map_err(drop)?;
            let word = stack.get(at..).and_then(|rest| rest.first_chunk());
            word.map(|word| u64::from_ne_bytes(*word)).ok_or(())
        };
        let mut found = process.unwinder.iter_frames(
            registers.ip,
            native(registers),
            &mut self.cache,
            &mut read,
        );
        let mut frames = Vec::new();
        let mut root = Root::Cut;
        while frames.len() < MOST_FRAMES {
            match found.next() {
                Ok(Some(frame)) => {
                    let address = frame.address_for_lookup();
                    let Some(code) = code_at(&process.code, address) else {
                        break;
                    };
                    frames.push(Frame {
                        module: code.module,
                        address: address.wrapping_sub(code.bias),
                    });
                }
                Ok(None) => {
                    root = Root::Whole;
                    break;
                }
                Err(_) => break,
            }
        }
        match frames.is_empty() {
            true => Root::Unknown as u32,
            false => self.tree.stack(root, &frames),
        }
    }

    /// Takes the text that describes what is new since the last call; see [`Tree`].
    pub fn new_lines(&mut self) -> String {
        self.tree.new_lines()
    }

    /// Stacks for which there was no room in the tree.
    #[must_use]
    pub const fn no_room(&self) -> u64 {
        self.tree.no_room
    }

    /// Reads what the process has mapped, unless that is known and has code at this address.
    fn know(&mut self, pid: i32, ip: u64) {
        let now = Instant::now();
        if let Some(process) = self.processes.get(&pid)
            && (code_at(&process.code, ip).is_some() || now < process.read_at + READ_AGAIN_AFTER)
        {
            return;
        }
        let Ok(text) = std::fs::read_to_string(format!("/proc/{pid}/maps")) else {
            // It has ended: what was known of it stays.
            return;
        };
        if self.processes.len() >= MOST_PROCESSES && !self.processes.contains_key(&pid) {
            let oldest = self
                .processes
                .iter()
                .min_by_key(|(_, process)| process.read_at);
            if let Some(pid) = oldest.map(|(pid, _)| *pid) {
                self.processes.remove(&pid);
            }
        }
        let mut process = Process {
            unwinder: UnwinderNative::new(),
            code: Vec::new(),
            read_at: now,
        };
        for mapping in maps::parse(&text) {
            self.add(pid, &mut process, &mapping);
        }
        process.code.sort_by_key(|code| code.addresses.start);
        self.processes.insert(pid, process);
    }

    fn add(&mut self, pid: i32, process: &mut Process, mapping: &Mapping) {
        let Mapping {
            addresses, offset, ..
        } = mapping;
        let (unwinding, path) = match &mapping.of {
            Of::File { identity, path } => (self.file(pid, *identity, path), path.as_path()),
            Of::Vdso => (self.vdso(), Path::new("[vdso]")),
            Of::Memory => (None, Path::new("")),
        };
        let known = unwinding
            .as_ref()
            .and_then(|of| Some((of, of.bias(addresses.start, *offset)?)));
        let module = match (&mapping.of, known) {
            (Of::Memory, _) => tree::Module::Code { pid },
            (_, known) => tree::Module::File {
                build_id: known.and_then(|(of, _)| of.build_id.clone()),
                path: path.to_string_lossy().into_owned(),
            },
        };
        process.code.push(Code {
            addresses: addresses.clone(),
            module: self.tree.module(module),
            bias: known.map_or(0, |(_, bias)| bias),
        });
        if let Some((unwinding, bias)) = known {
            process.unwinder.add_module(Module::new(
                path.to_string_lossy().into_owned(),
                addresses.clone(),
                bias,
                unwinding.sections(),
            ));
        }
    }

    /// What is read of a file that the process has mapped. It is opened as the process sees it, which may
    /// have another root.
    fn file(&mut self, pid: i32, identity: (u64, u64), path: &Path) -> Option<Arc<Unwinding>> {
        (self.files.entry(identity))
            .or_insert_with(|| {
                let inside = format!("/proc/{pid}/root{}", path.display());
                let file = open(Path::new(&inside)).or_else(|_| open(path)).ok()?;
                let is_regular = file.metadata().is_ok_and(|about| about.is_file());
                (is_regular).then(|| Unwinding::read(file).ok().map(Arc::new))?
            })
            .clone()
    }

    /// The kernel's code for all programs, as this process has it.
    fn vdso(&mut self) -> Option<Arc<Unwinding>> {
        (self.vdso.get_or_insert_with(own_vdso)).clone()
    }
}

/// Opens a file without waiting: what lies at that path now may be anything.
pub(crate) fn open(path: &Path) -> std::io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    (File::options().read(true))
        .custom_flags(flags.bits().cast_signed())
        .open(path)
}

fn own_vdso() -> Option<Arc<Unwinding>> {
    use std::os::unix::fs::FileExt as _;
    let text = std::fs::read_to_string("/proc/self/maps").ok()?;
    let mapping = maps::parse(&text)
        .into_iter()
        .find(|of| of.of == Of::Vdso)?;
    let bytes = mapping.addresses.end - mapping.addresses.start;
    let mut image = vec![0; usize::try_from(bytes.min(MOST_VDSO_BYTES)).ok()?];
    let memory = File::open("/proc/self/mem").ok()?;
    memory
        .read_exact_at(&mut image, mapping.addresses.start)
        .ok()?;
    Unwinding::of_image(&image).ok().map(Arc::new)
}

#[cfg(target_arch = "x86_64")]
fn native(registers: Registers) -> framehop::UnwindRegsNative {
    framehop::UnwindRegsNative::new(registers.ip, registers.sp, registers.fp)
}

#[cfg(target_arch = "aarch64")]
fn native(registers: Registers) -> framehop::UnwindRegsNative {
    framehop::UnwindRegsNative::new(registers.lr, registers.sp, registers.fp)
}

fn code_at(code: &[Code], address: u64) -> Option<&Code> {
    let after = code.partition_point(|code| code.addresses.start <= address);
    let found = code.get(after.checked_sub(1)?)?;
    found.addresses.contains(&address).then_some(found)
}

#[cfg(test)]
mod tests;
