//! Unwinds samples of processes.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use framehop::{CacheNative, MayAllocateDuringUnwind, Module, Unwinder, UnwinderNative};
use rustix::fs::OFlags;

use crate::elf::{Bytes, Unwinding};
use crate::maps::{self, Backing, Mapping};
use crate::tree::{self, Root, Tree};
use crate::{MOST_FRAMES, MOST_PROCESSES};

/// Shortest time between two readings of what a process has mapped.
const READ_AGAIN_AFTER: Duration = Duration::from_millis(50);
/// Largest image of the kernel's code for all programs, bytes.
const MOST_VDSO_BYTES: u64 = 1 << 20;
/// Most memory that the tables of all files may take, bytes.
const MOST_BYTES: usize = 1 << 30;

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
    /// Tables of files by device and inode; nothing of those that have none.
    files: HashMap<(u64, u64), Option<Arc<Unwinding>>>,
    /// Bytes that the tables of files take.
    bytes: usize,
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
    /// In order of addresses.
    code: Vec<Code>,
    read_at: Instant,
    /// It has mapped code since.
    is_stale: bool,
}

/// Mapped code: its module, and what to subtract from its addresses.
#[derive(Clone, Debug)]
struct Code {
    mapping: Mapping,
    module: tree::Module,
    bias: u64,
}

/// The frames of a sample.
struct Unwound {
    root: Root,
    /// By the place of their code, and their address in the module.
    frames: Vec<(usize, u64)>,
    /// A frame lies in code that is not known.
    meets_unknown_code: bool,
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

    /// Notes that a process executes another program.
    pub fn has_executed(&mut self, pid: i32) {
        self.processes.remove(&pid);
    }

    /// Notes that a process has mapped code.
    pub fn has_mapped(&mut self, pid: i32) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.is_stale = true;
        }
    }

    /// The number of the stack of a sample: `stack` are the bytes of memory from the stack pointer on.
    pub fn sample(&mut self, pid: i32, registers: Registers, stack: &[u8]) -> u32 {
        if registers.ip == 0 {
            return Root::Unknown as u32;
        }
        let now = Instant::now();
        let process = self.processes.get(&pid);
        let is_due = |process: &Process| now >= process.read_at + READ_AGAIN_AFTER;
        let mut may_read = process.is_none_or(is_due);
        if process.is_none_or(|process| process.is_stale && is_due(process)) {
            self.read(pid, now);
            may_read = false;
        }
        let mut found = self.unwind(pid, registers, stack);
        if may_read && found.as_ref().is_some_and(|found| found.meets_unknown_code) {
            self.read(pid, now);
            found = self.unwind(pid, registers, stack);
        }
        let (Some(found), Some(process)) = (found, self.processes.get(&pid)) else {
            return Root::Unknown as u32;
        };
        let frames: Vec<(&tree::Module, u64)> = (found.frames.iter())
            .map(|&(code, address)| (&process.code[code].module, address))
            .collect();
        match frames.is_empty() {
            true => Root::Unknown as u32,
            false => self.tree.stack(found.root, &frames),
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

    fn unwind(&mut self, pid: i32, registers: Registers, stack: &[u8]) -> Option<Unwound> {
        let process = self.processes.get_mut(&pid)?;
        let mut read = |address: u64| -> Result<u64, ()> {
            let at = usize::try_from(address.checked_sub(registers.sp).ok_or(())?).map_err(drop)?;
            let word = stack.get(at..).and_then(|rest| rest.first_chunk());
            word.map(|word| u64::from_ne_bytes(*word)).ok_or(())
        };
        let mut walk = process.unwinder.iter_frames(
            registers.ip,
            native(registers, &process.unwinder),
            &mut self.cache,
            &mut read,
        );
        let mut found = Unwound {
            root: Root::Cut,
            frames: Vec::new(),
            meets_unknown_code: false,
        };
        while found.frames.len() < MOST_FRAMES {
            match walk.next() {
                Ok(Some(frame)) => {
                    let address = frame.address_for_lookup();
                    let Some(at) = code_at(&process.code, address) else {
                        found.meets_unknown_code = true;
                        break;
                    };
                    let address = address.wrapping_sub(process.code[at].bias);
                    found.frames.push((at, address));
                }
                Ok(None) => {
                    found.root = Root::Whole;
                    break;
                }
                Err(_) => break,
            }
        }
        Some(found)
    }

    /// Reads what the process has mapped. Of one that has ended, what was known stays.
    fn read(&mut self, pid: i32, now: Instant) {
        let text = std::fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
        let mappings = maps::parse(&String::from_utf8_lossy(&text));
        if mappings.is_empty() {
            if let Some(process) = self.processes.get_mut(&pid) {
                process.read_at = now;
            }
            return;
        }
        if self.processes.len() >= MOST_PROCESSES && !self.processes.contains_key(&pid) {
            let oldest = (self.processes.iter()).min_by_key(|(_, process)| process.read_at);
            if let Some(pid) = oldest.map(|(pid, _)| *pid) {
                self.processes.remove(&pid);
            }
        }
        let mut process = self.processes.remove(&pid).unwrap_or_else(|| Process {
            unwinder: UnwinderNative::new(),
            code: Vec::new(),
            read_at: now,
            is_stale: false,
        });
        (process.read_at, process.is_stale) = (now, false);
        // Modules are indexed when they are added, so only what has changed is.
        let Process { unwinder, code, .. } = &mut process;
        code.retain(|code| {
            let stays = mappings.contains(&code.mapping);
            if !stays {
                unwinder.remove_module(code.mapping.addresses.start);
            }
            stays
        });
        let known: HashSet<u64> = code
            .iter()
            .map(|code| code.mapping.addresses.start)
            .collect();
        for mapping in mappings {
            if !known.contains(&mapping.addresses.start) {
                self.add(pid, &mut process, mapping);
            }
        }
        (process.code).sort_by_key(|code| code.mapping.addresses.start);
        self.processes.insert(pid, process);
    }

    fn add(&mut self, pid: i32, process: &mut Process, mapping: Mapping) {
        let Mapping {
            addresses, offset, ..
        } = &mapping;
        let (unwinding, path) = match &mapping.backing {
            Backing::File { path, .. } => (self.file(pid, &mapping), path.as_path()),
            Backing::Vdso => (self.vdso(), Path::new("[vdso]")),
            Backing::Memory => (None, Path::new("")),
        };
        let known = unwinding
            .as_ref()
            .and_then(|of| Some((of, of.bias(addresses.start, *offset)?)));
        let path = path.to_string_lossy().into_owned();
        let module = match (&mapping.backing, known) {
            (Backing::Memory, _) => tree::Module::Code { pid },
            (_, known) => {
                tree::Module::file(known.and_then(|(of, _)| of.build_id.clone()), path.clone())
            }
        };
        if let Some((unwinding, bias)) = known {
            let sections = unwinding.sections();
            let module = Module::new(path, addresses.clone(), bias, sections);
            process.unwinder.add_module(module);
        }
        let bias = known.map_or(0, |(_, bias)| bias);
        process.code.push(Code {
            mapping,
            module,
            bias,
        });
    }

    /// What is read of a file that the process has mapped.
    fn file(&mut self, pid: i32, mapping: &Mapping) -> Option<Arc<Unwinding>> {
        let Backing::File { identity, .. } = &mapping.backing else {
            return None;
        };
        if let Some(known) = self.files.get(identity) {
            return known.clone();
        }
        // Another process may be able to open it.
        let file = opened(pid, mapping)?;
        let unwinding = Unwinding::read(file).ok().map(Arc::new);
        let bytes = unwinding.as_ref().map_or(0, |of| of.bytes());
        if self.bytes.saturating_add(bytes) > MOST_BYTES {
            self.forget_all();
        }
        if self.bytes.saturating_add(bytes) > MOST_BYTES {
            return None;
        }
        self.bytes += bytes;
        self.files.insert(*identity, unwinding.clone());
        unwinding
    }

    /// Forgets all files, and what processes have mapped: both are read again when they are needed.
    fn forget_all(&mut self) {
        self.processes.clear();
        self.files.clear();
        self.bytes = 0;
    }

    /// The kernel's code for all programs, as this process has it.
    fn vdso(&mut self) -> Option<Arc<Unwinding>> {
        (self.vdso.get_or_insert_with(own_vdso)).clone()
    }
}

/// Opens the file of a mapping: by the mapping itself, where that is allowed, or by its path as the process
/// sees it, which may have another root.
fn opened(pid: i32, mapping: &Mapping) -> Option<File> {
    let Backing::File {
        identity: (_, inode),
        path,
        is_deleted,
    } = &mapping.backing
    else {
        return None;
    };
    let Range { start, end } = mapping.addresses;
    let itself = format!("/proc/{pid}/map_files/{start:x}-{end:x}");
    let inside = format!("/proc/{pid}/root{}", path.display());
    let is_it = |file: &File| file.metadata().is_ok_and(|about| about.ino() == *inode);
    let regular = |path: &Path| {
        let file = open(path).ok()?;
        file.metadata().ok()?.is_file().then_some(file)
    };
    // Some file systems show other numbers in a mapping than elsewhere.
    (regular(Path::new(&itself)))
        .or_else(|| regular(Path::new(&inside)).filter(|file| !is_deleted || is_it(file)))
        .or_else(|| regular(path).filter(is_it))
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
    let mapping = (maps::parse(&text).into_iter()).find(|of| of.backing == Backing::Vdso)?;
    let bytes = mapping.addresses.end - mapping.addresses.start;
    let mut image = vec![0; usize::try_from(bytes.min(MOST_VDSO_BYTES)).ok()?];
    let memory = File::open("/proc/self/mem").ok()?;
    memory
        .read_exact_at(&mut image, mapping.addresses.start)
        .ok()?;
    Unwinding::of_image(&image).ok().map(Arc::new)
}

#[cfg(target_arch = "x86_64")]
fn native(
    registers: Registers,
    _: &UnwinderNative<Bytes, MayAllocateDuringUnwind>,
) -> framehop::UnwindRegsNative {
    framehop::UnwindRegsNative::new(registers.ip, registers.sp, registers.fp)
}

/// Return addresses may be signed; the bits above the highest address of code are the signature's.
#[cfg(target_arch = "aarch64")]
fn native(
    registers: Registers,
    unwinder: &UnwinderNative<Bytes, MayAllocateDuringUnwind>,
) -> framehop::UnwindRegsNative {
    let mask =
        framehop::aarch64::PtrAuthMask::from_max_known_address(unwinder.max_known_code_address());
    framehop::UnwindRegsNative::new_with_ptr_auth_mask(
        mask,
        registers.lr,
        registers.sp,
        registers.fp,
    )
}

/// The place of the code at an address.
fn code_at(code: &[Code], address: u64) -> Option<usize> {
    let begun = code.partition_point(|code| code.mapping.addresses.start <= address);
    let at = begun.checked_sub(1)?;
    code[at].mapping.addresses.contains(&address).then_some(at)
}

#[cfg(test)]
mod tests;
