//! The session directory: what the collector and the programs share while a
//! recording runs.

use std::fs::{self, File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags};
use undertick_clock::ClockId;
use undertick_ring::layout::{self, SEGMENT_BYTES, control, ring};
use undertick_ring::{Mapped, Overflow};

use crate::TraceError;
use crate::sampled::{self, Rate};

/// Least memory that a session is started with.
const LEAST_BYTES: u64 = 4 * SEGMENT_BYTES;

/// How rings are to behave.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What happens when a ring is full.
    pub overflow: Overflow,
    /// First size of a ring (its only size unless it may grow), bytes.
    pub ring_bytes: u64,
    /// Most that all rings may take together, bytes; `None`: 1 GiB, or half of
    /// what is free.
    pub budget_bytes: Option<u64>,
    /// Clock the programs are to read.
    pub clock: ClockId,
    /// Where to make the directory; `None`: /dev/shm, or the temporary
    /// directory where that is missing or too small.
    pub parent: Option<PathBuf>,
    /// Rates of sampled spans, before what the program itself asks for.
    pub rates: Vec<Rate>,
}

/// First size of a ring unless asked otherwise: 6 ms at full speed. A thread
/// takes it as it writes, so one that writes little takes little.
pub const DEFAULT_RING_BYTES: u64 = 8 << 20;
/// Budget of a session unless asked otherwise.
const DEFAULT_BUDGET_BYTES: u64 = 1 << 30;

/// A session directory; removed when dropped.
pub struct Session {
    dir: PathBuf,
    page: *mut u8,
    settings: Settings,
    budget_bytes: u64,
    /// What the user must know of how it was set up.
    pub warnings: Vec<String>,
}

// SAFETY: the page is accessed through atomics only.
unsafe impl Send for Session {}

impl Session {
    /// Makes a session directory, 0700, with its control page.
    ///
    /// # Errors
    /// There is no room, or the directory cannot be made.
    pub fn create(settings: Settings) -> Result<Self, TraceError> {
        let mut warnings = Vec::new();
        let (parent, free) = place(&settings, &mut warnings)?;
        let budget_bytes = budget(&settings, &parent, free)?;
        let dir = make_dir(&parent)?;
        let path = dir.join(layout::CONTROL_FILE);
        let file = create_file(&path)?;
        file.set_len(control::BYTES)
            .map_err(TraceError::io(&path, "cannot set its size"))?;
        create_file(&dir.join(layout::NAMES_FILE))?;
        let page = map(&file, control::BYTES as usize)
            .map_err(|e| TraceError::io(&path, "cannot map")(e.into()))?;
        let session = Self {
            dir,
            page,
            settings,
            budget_bytes,
            warnings,
        };
        for rate in &session.settings.rates {
            sampled::set(&ControlPage(session.page), *rate)?;
        }
        session.fill_control();
        Ok(session)
    }

    fn fill_control(&self) {
        let segments = |bytes: u64| (bytes / SEGMENT_BYTES).clamp(1, u64::from(u32::MAX)) as u32;
        let clock = match self.settings.clock {
            ClockId::Tsc | ClockId::Cntvct => 1,
            ClockId::Monotonic => 3,
            _ => 2,
        };
        for (offset, value) in [
            (control::OFF_VERSION, layout::VERSION),
            (control::OFF_SEGMENT_BYTES, SEGMENT_BYTES as u32),
            (control::OFF_CLOCK, clock),
            (control::OFF_OVERFLOW, self.settings.overflow as u32),
            // Two at least: one is being filled while the other is drained.
            (
                control::OFF_RING_SEGMENTS,
                segments(self.settings.ring_bytes).max(2),
            ),
            (
                control::OFF_BUDGET_SEGMENTS,
                segments(self.budget_bytes).max(2),
            ),
            (control::OFF_ON, 1),
            (control::OFF_COLLECTOR_ALIVE, 1),
        ] {
            self.field_u32(offset).store(value, Ordering::Relaxed);
        }
        self.field_u64(control::OFF_MAGIC)
            .store(control::MAGIC, Ordering::Release);
    }

    /// The directory; programs find it through [`layout::SESSION_ENV`].
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Most that all rings may take together, bytes.
    #[must_use]
    pub const fn budget_bytes(&self) -> u64 {
        self.budget_bytes
    }

    /// How the session was set.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Events lost because their thread could get no ring.
    #[must_use]
    pub fn lost_no_ring(&self) -> u64 {
        self.field_u64(control::OFF_LOST_NO_RING)
            .load(Ordering::Relaxed)
    }

    /// Rings asked for so far: their numbers are below this.
    #[must_use]
    pub fn rings_asked_for(&self) -> u32 {
        self.field_u32(control::OFF_NEXT_RING)
            .load(Ordering::Acquire)
    }

    /// Gives a finished ring's segments back to the budget.
    pub fn give_back(&self, segments: u32) {
        let used = self.field_u32(control::OFF_SEGMENTS_USED);
        // The programs write here too: never below zero.
        let _ = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            Some(used.saturating_sub(segments))
        });
    }

    /// Segments the programs hold, and may hold.
    #[must_use]
    pub fn segments(&self) -> (u32, u32) {
        (
            self.field_u32(control::OFF_SEGMENTS_USED)
                .load(Ordering::Relaxed),
            self.field_u32(control::OFF_BUDGET_SEGMENTS)
                .load(Ordering::Relaxed),
        )
    }

    /// Switches all measuring points on or off.
    pub fn switch(&self, on: bool) {
        let code = if on { control::ALL } else { control::NONE };
        self.field_u32(control::OFF_ON)
            .store(code, Ordering::Relaxed);
    }

    /// Whether an event stays on while only some are.
    pub(crate) fn keep(&self, event: u16, is_kept: bool) {
        let place = control::OFF_SWITCHED + usize::from(event / 8);
        // SAFETY: a bit for each event lies within the mapped file.
        let byte = unsafe { AtomicU8::from_ptr(self.page.add(place)) };
        let bit = 1 << (event % 8);
        if is_kept {
            byte.fetch_and(!bit, Ordering::Relaxed);
        } else {
            byte.fetch_or(bit, Ordering::Relaxed);
        }
    }

    fn field_u32(&self, offset: usize) -> &AtomicU32 {
        assert!((offset as u64) < control::BYTES && offset.is_multiple_of(4));
        // SAFETY: within the page, aligned.
        unsafe { AtomicU32::from_ptr(self.page.add(offset).cast()) }
    }

    fn field_u64(&self, offset: usize) -> &AtomicU64 {
        assert!((offset as u64) < control::BYTES && offset.is_multiple_of(8));
        // SAFETY: within the page, aligned.
        unsafe { AtomicU64::from_ptr(self.page.add(offset).cast()) }
    }
}

/// A control page that is mapped.
#[derive(Debug)]
pub(crate) struct ControlPage(*mut u8);

// SAFETY: the page is accessed through atomics only.
unsafe impl Send for ControlPage {}

impl ControlPage {
    pub(crate) fn field_u32(&self, offset: usize) -> &AtomicU32 {
        assert!((offset as u64) < control::BYTES && offset.is_multiple_of(4));
        // SAFETY: within the page, aligned.
        unsafe { AtomicU32::from_ptr(self.0.add(offset).cast()) }
    }

    pub(crate) fn field_u64(&self, offset: usize) -> &AtomicU64 {
        assert!((offset as u64) < control::BYTES && offset.is_multiple_of(8));
        // SAFETY: within the page, aligned.
        unsafe { AtomicU64::from_ptr(self.0.add(offset).cast()) }
    }

    /// Of [`open_control`].
    pub(crate) fn unmap(self) {
        // SAFETY: mapped in `open_control`; `self` was the last to use it.
        let _ = unsafe { rustix::mm::munmap(self.0.cast(), control::BYTES as usize) };
    }
}

/// The control page of a session that another process records.
pub(crate) fn open_control(dir: &Path) -> Result<ControlPage, TraceError> {
    let path = dir.join(layout::CONTROL_FILE);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NOFOLLOW)
        .open(&path)
        .map_err(TraceError::io(&path, "cannot open"))?;
    let bytes = file
        .metadata()
        .map_err(TraceError::io(&path, "cannot look at"))?
        .len();
    if bytes != control::BYTES {
        return Err(TraceError::damaged(&path, "not a session's control page"));
    }
    let page = map(&file, control::BYTES as usize)
        .map_err(|e| TraceError::io(&path, "cannot map")(e.into()))?;
    let page = ControlPage(page);
    let magic = page.field_u64(control::OFF_MAGIC).load(Ordering::Acquire);
    let version = page.field_u32(control::OFF_VERSION).load(Ordering::Relaxed);
    if (magic, version) == (control::MAGIC, layout::VERSION) {
        return Ok(page);
    }
    page.unmap();
    Err(TraceError::damaged(
        &path,
        "not a control page of this version",
    ))
}

impl Drop for Session {
    fn drop(&mut self) {
        // Programs that live on stop writing, and those that wait go on.
        self.switch(false);
        self.field_u32(control::OFF_COLLECTOR_ALIVE)
            .store(0, Ordering::Relaxed);
        // SAFETY: the page mapped in `create`; nothing borrows it any more.
        let _ = unsafe { rustix::mm::munmap(self.page.cast(), control::BYTES as usize) };
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn place(settings: &Settings, warnings: &mut Vec<String>) -> Result<(PathBuf, u64), TraceError> {
    let asked = settings
        .parent
        .clone()
        .or_else(|| std::env::var_os("UNDERTICK_DIR").map(PathBuf::from));
    if let Some(parent) = asked {
        let free = free_bytes(&parent)?;
        return Ok((parent, free));
    }
    let shm = PathBuf::from("/dev/shm");
    match free_bytes(&shm) {
        Ok(free) if free >= 16 * LEAST_BYTES => Ok((shm, free)),
        other => {
            let parent = std::env::temp_dir();
            let why = match other {
                Ok(free) => format!("/dev/shm has only {free} bytes free"),
                Err(_) => "/dev/shm cannot be used".to_owned(),
            };
            warnings.push(format!(
                "{why}: the rings are in {} instead, which may be slower (in a container: --shm-size)",
                parent.display()
            ));
            let free = free_bytes(&parent)?;
            Ok((parent, free))
        }
    }
}

fn budget(settings: &Settings, parent: &Path, free: u64) -> Result<u64, TraceError> {
    let short = |needed: u64, what: &str| {
        TraceError::Recording(format!(
            "{}: {free} bytes free, {needed} needed for {what}: free some, give less with --ring or --budget, \
             or another directory in UNDERTICK_DIR",
            parent.display()
        ))
    };
    if free < LEAST_BYTES {
        return Err(short(LEAST_BYTES, "the smallest session"));
    }
    if settings.ring_bytes > free {
        return Err(short(settings.ring_bytes, "one ring"));
    }
    match settings.budget_bytes {
        Some(asked) if asked > free => Err(short(asked, "the budget")),
        Some(asked) if asked < LEAST_BYTES => Err(TraceError::Usage(format!(
            "--budget {asked}: at least {LEAST_BYTES} bytes are needed"
        ))),
        Some(asked) => Ok(asked),
        None => Ok(DEFAULT_BUDGET_BYTES.min(free / 2).max(LEAST_BYTES)),
    }
}

fn free_bytes(parent: &Path) -> Result<u64, TraceError> {
    let stat = rustix::fs::statvfs(parent)
        .map_err(|e| TraceError::io(parent, "cannot be used for rings")(e.into()))?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

fn make_dir(parent: &Path) -> Result<PathBuf, TraceError> {
    let uid = rustix::process::getuid().as_raw();
    let pid = std::process::id();
    for attempt in 0..1000u32 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic).tv_nsec;
        let dir = parent.join(format!("undertick-{uid}-{pid}-{now:x}-{attempt}"));
        match fs::DirBuilder::new().mode(0o700).create(&dir) {
            Ok(()) => return Ok(dir),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(TraceError::io(&dir, "cannot make the session directory")(e)),
        }
    }
    Err(TraceError::Recording(format!(
        "{}: no free name for a session directory",
        parent.display()
    )))
}

fn create_file(path: &Path) -> Result<File, TraceError> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(TraceError::io(path, "cannot create"))
}

fn map(file: &File, bytes: usize) -> rustix::io::Result<*mut u8> {
    // SAFETY: a new mapping at an address of the kernel's choice.
    unsafe {
        rustix::mm::mmap(
            null_mut(),
            bytes,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED,
            file.as_fd(),
            0,
        )
        .map(<*mut core::ffi::c_void>::cast)
    }
}

/// A ring file as the collector has it mapped.
pub struct RingMap {
    memory: Mapped,
    bytes: usize,
    file: File,
    /// Its path, to be removed when the ring is finished.
    pub path: PathBuf,
    /// Ring number, from the file's name (the content is not trusted).
    pub number: u32,
    /// Process and thread, as the ring says.
    pub pid: i32,
    /// See `pid`.
    pub tid: i32,
    prepared: u32,
}

// SAFETY: accessed through atomics only.
unsafe impl Send for RingMap {}

impl RingMap {
    /// Opens ring `number` of the session; `None` if it is not there or not
    /// complete yet.
    ///
    /// # Errors
    /// It is there and is no ring.
    pub fn open(dir: &Path, number: u32) -> Result<Option<Self>, TraceError> {
        let path = dir.join(format!("{}{number:08x}", layout::RING_PREFIX));
        let file = match OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&path)
        {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(TraceError::io(&path, "cannot open")(e)),
        };
        let meta = file
            .metadata()
            .map_err(TraceError::io(&path, "cannot look at"))?;
        let segments = (meta.len() / SEGMENT_BYTES)
            .saturating_sub(1)
            .min(u64::from(layout::MAX_SEGMENTS)) as u32;
        if meta.uid() != rustix::process::getuid().as_raw() || !meta.is_file() {
            return Err(TraceError::damaged(&path, "not a file of ours"));
        }
        if segments == 0 {
            return Ok(None);
        }
        let bytes = (segments as usize + 1) * SEGMENT_BYTES as usize;
        let base = map(&file, bytes).map_err(|e| TraceError::io(&path, "cannot map")(e.into()))?;
        // SAFETY: just mapped, of that size, page-aligned, unmapped on drop.
        let memory = unsafe { Mapped::new(base, segments) };
        let u32_of = |offset| memory.field_u32(offset).load(Ordering::Relaxed);
        if memory.field_u64(ring::OFF_MAGIC).load(Ordering::Acquire) != ring::MAGIC {
            // SAFETY: mapped above, not used any more.
            let _ = unsafe { rustix::mm::munmap(base.cast(), bytes) };
            return Ok(None);
        }
        let sound = u32_of(ring::OFF_VERSION) == layout::VERSION
            && u32_of(ring::OFF_MAX_SEGMENTS) == segments;
        let (pid, tid) = (u32_of(ring::OFF_PID) as i32, u32_of(ring::OFF_TID) as i32);
        let map = Self {
            memory,
            bytes,
            file,
            path,
            number,
            pid,
            tid,
            prepared: 0,
        };
        if sound {
            Ok(Some(map))
        } else {
            Err(TraceError::damaged(&map.path, "its header is not a ring's"))
        }
    }

    /// The memory, for a [`undertick_ring::Reader`].
    #[must_use]
    pub const fn memory(&self) -> Mapped {
        self.memory
    }

    /// Events the writer dropped.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.memory
            .field_u64(ring::OFF_DROPPED)
            .load(Ordering::Relaxed)
    }

    /// Segments the writer took.
    #[must_use]
    pub fn allocated(&self) -> u32 {
        self.memory
            .field_u32(ring::OFF_ALLOCATED)
            .load(Ordering::Relaxed)
            .min(layout::MAX_SEGMENTS)
    }

    /// Whether the thread is gone without having said so (killed, `_exit`).
    /// Only where its numbers mean the same to us.
    #[must_use]
    pub fn writer_is_gone(&self, our_namespace: u32) -> bool {
        let theirs = self
            .memory
            .field_u32(ring::OFF_PID_NAMESPACE)
            .load(Ordering::Relaxed);
        if our_namespace == 0 || theirs != our_namespace || self.pid <= 0 || self.tid <= 0 {
            return false;
        }
        // SAFETY: signal 0 only asks.
        let answer = unsafe { libc::syscall(libc::SYS_tgkill, self.pid, self.tid, 0) };
        answer != 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
    }

    /// Whether the thread said that it is done.
    #[must_use]
    pub fn closed(&self) -> bool {
        self.memory
            .field_u32(ring::OFF_STATE)
            .load(Ordering::Acquire)
            == ring::STATE_CLOSED
    }

    /// Keeps pages ready for the writer's next segments, so that growing costs
    /// it no page allocation: as many again as it uses, at most `limit`.
    pub fn prepare(&mut self, limit: u32) {
        let used = self.allocated();
        let target = used
            .saturating_mul(2)
            .min(limit)
            .min((self.bytes as u64 / SEGMENT_BYTES - 1) as u32);
        if used == 0 || self.prepared >= target {
            return;
        }
        let from = self.prepared.max(used);
        // A few at a time: the rings must not wait for it.
        let to = target.min(from + 8);
        if from < to {
            let offset = (u64::from(from) + 1) * SEGMENT_BYTES;
            let bytes = u64::from(to - from) * SEGMENT_BYTES;
            if rustix::fs::fallocate(
                &self.file,
                rustix::fs::FallocateFlags::empty(),
                offset,
                bytes,
            )
            .is_err()
            {
                return;
            }
        }
        self.prepared = to;
        self.memory
            .field_u32(ring::OFF_READY)
            .store(to, Ordering::Release);
    }
}

impl Drop for RingMap {
    fn drop(&mut self) {
        // SAFETY: mapped in `open`; the readers that borrow it are gone.
        let _ = unsafe { rustix::mm::munmap(self.memory.base().cast(), self.bytes) };
    }
}
