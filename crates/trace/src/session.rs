//! The session directory: what the collector and the programs share while a
//! recording runs.

use std::fs::{self, File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags};
use undertick_clock::ClockId;
use undertick_ring::Overflow;
use undertick_ring::layout::{self, SEGMENT_BYTES, control};

use crate::TraceError;
use crate::door::Door;
use crate::manifest::{Name, Thread};
pub use crate::ring_map::RingMap;
use crate::sampled::{self, Rate};
use crate::session_lock::SessionLock;

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

impl Settings {
    /// Rings that grow, as big as they are unless asked otherwise; nothing is sampled.
    #[must_use]
    pub fn growing(clock: ClockId) -> Self {
        Self {
            overflow: Overflow::Grow,
            ring_bytes: DEFAULT_RING_BYTES,
            budget_bytes: None,
            clock,
            parent: None,
            rates: Vec::new(),
        }
    }
}

/// First size of a ring unless asked otherwise: 6 ms at full speed. A thread
/// takes it as it writes, so one that writes little takes little.
pub const DEFAULT_RING_BYTES: u64 = 8 << 20;
/// Budget of a session unless asked otherwise.
const DEFAULT_BUDGET_BYTES: u64 = 1 << 30;

/// A session directory; removed when dropped.
pub struct Session {
    dir: PathBuf,
    page: ControlPage,
    /// Of a program that was started without a session: what it shares with us
    /// instead of the page.
    doors: Vec<Door>,
    /// User that the rings belong to.
    owner: u32,
    settings: Settings,
    budget_bytes: u64,
    /// Held while writers may wait for us: they see by it that we were killed.
    _waited_for: Option<SessionLock>,
    /// What the user must know of how it was set up.
    pub warnings: Vec<String>,
}

/// Rings of a door have numbers from its place times this on.
const RINGS_OF_A_DOOR: u32 = 1 << 20;

impl Session {
    /// Makes a session directory, 0700, with its control page.
    ///
    /// # Errors
    /// There is no room, or the directory cannot be made.
    pub fn create(settings: Settings) -> Result<Self, TraceError> {
        let us = rustix::process::getuid().as_raw();
        Self::create_for(settings, Vec::new(), (us, None))
    }

    /// Makes a session for a program that runs already, its user and group; it
    /// does not begin before [`Self::enter`].
    ///
    /// # Errors
    /// As [`Self::create`].
    pub(crate) fn create_for(
        settings: Settings,
        doors: Vec<Door>,
        (owner, group): (u32, Option<u32>),
    ) -> Result<Self, TraceError> {
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
        let waited_for = waited_for(&dir, settings.overflow)?;
        let session = Self {
            dir,
            page: ControlPage::at(page),
            doors,
            owner,
            settings,
            budget_bytes,
            _waited_for: waited_for,
            warnings,
        };
        if owner != rustix::process::getuid().as_raw() {
            let owner = (Some(owner), group);
            let chown = |path: &Path| {
                std::os::unix::fs::chown(path, owner.0, owner.1).map_err(TraceError::io(
                    path,
                    "cannot be given to the program's user",
                ))
            };
            chown(&session.dir)?;
            chown(&session.dir.join(layout::NAMES_FILE))?;
        }
        session.fill_control(&session.page);
        for rate in &session.settings.rates {
            sampled::set(&session.page, *rate)?;
        }
        for (place, door) in session.doors.iter().enumerate() {
            session.prepare(place as u32, door)?;
        }
        if session.doors.is_empty() {
            session.switch(true);
        }
        Ok(session)
    }

    /// The session of a recorder that was killed, and the doors that lead to it.
    ///
    /// # Errors
    /// It is not there, or not of this version.
    pub(crate) fn reopen(
        dir: &Path,
        doors: Vec<Door>,
        told: &crate::manifest::Recorder,
        clock: ClockId,
    ) -> Result<Self, TraceError> {
        let page = open_control(dir)?;
        let code = page.field_u32(control::OFF_OVERFLOW);
        let overflow = Overflow::from_code(code.load(Ordering::Relaxed)).ok_or_else(|| {
            TraceError::damaged(&dir.join(layout::CONTROL_FILE), "no such overflow policy")
        })?;
        let about = fs::metadata(dir).map_err(TraceError::io(dir, "cannot look at"))?;
        let session = Self {
            dir: dir.to_owned(),
            page,
            doors,
            owner: about.uid(),
            settings: Settings {
                overflow,
                ring_bytes: told.ring_bytes,
                budget_bytes: Some(told.budget_bytes),
                ..Settings::growing(clock)
            },
            budget_bytes: told.budget_bytes,
            _waited_for: waited_for(dir, overflow)?,
            warnings: Vec::new(),
        };
        for page in session.pages() {
            page.field_u32(control::OFF_COLLECTOR_ALIVE)
                .store(1, Ordering::Relaxed);
        }
        Ok(session)
    }

    /// Makes a door's control page ready; nobody records by it yet.
    fn prepare(&self, place: u32, door: &Door) -> Result<(), TraceError> {
        let page = door.page();
        page.field_u32(control::OFF_ON)
            .store(control::NONE, Ordering::SeqCst);
        if let Some(dir) = door.left_behind() {
            remove_left_behind(&dir, self.owner);
            door.leave();
        }
        self.fill_control(page);
        for (offset, value) in [
            (control::OFF_NEXT_RING, place * RINGS_OF_A_DOOR),
            (control::OFF_SEGMENTS_USED, 0),
            (control::OFF_ONE_IN, 0),
        ] {
            page.field_u32(offset).store(value, Ordering::Relaxed);
        }
        page.field_u64(control::OFF_LOST_NO_RING)
            .store(0, Ordering::Relaxed);
        for place in 0..8192 / 8 {
            page.field_u64(control::OFF_SWITCHED + 8 * place)
                .store(0, Ordering::Relaxed);
        }
        sampled::take_back(page);
        for rate in &self.settings.rates {
            sampled::set(page, *rate)?;
        }
        Ok(())
    }

    /// Comes in by the doors: from here on the program's points can be switched.
    ///
    /// # Errors
    /// The directory's name is too long.
    pub(crate) fn enter(&mut self) -> Result<(), TraceError> {
        let names: Vec<u8> = self.doors.iter().flat_map(|door| door.names().0).collect();
        let path = self.dir.join(layout::NAMES_FILE);
        fs::write(&path, names).map_err(TraceError::io(&path, "cannot write"))?;
        for door in &mut self.doors {
            door.enter(&self.dir)?;
        }
        Ok(())
    }

    /// The program makes no more rings.
    pub(crate) fn close_doors(&self) {
        self.doors.iter().for_each(Door::leave);
    }

    /// Hands rates that were asked for while it runs on to the doors.
    pub(crate) fn pass_rates_on(&self) {
        for door in &self.doors {
            sampled::copy(&self.page, door.page());
        }
    }

    /// The names that the program gave, by event and by thread.
    pub(crate) fn names(&self) -> (Vec<Name>, Vec<Thread>) {
        if !self.is_attached() {
            return crate::names::read(&self.dir);
        }
        let mut log = fs::read(self.dir.join(layout::NAMES_FILE)).unwrap_or_default();
        log.extend(self.doors.iter().flat_map(|door| door.names().0));
        crate::names::parse(&log)
    }

    /// Says in the session directory what stands at the doors, for who looks from outside.
    pub(crate) fn tell_of_doors(&self) {
        if !self.is_attached() {
            return;
        }
        let names: Vec<u8> = self.doors.iter().flat_map(|door| door.names().0).collect();
        let log = OpenOptions::new()
            .write(true)
            .open(self.dir.join(layout::NAMES_FILE));
        if let Ok(log) = log
            && log
                .metadata()
                .is_ok_and(|about| about.len() != names.len() as u64)
        {
            let _ = log.write_all_at(&names, 0);
        }
        self.page
            .field_u64(control::OFF_LOST_NO_RING)
            .store(self.lost_no_ring(), Ordering::Relaxed);
    }

    /// Names for which the program's doors had no room.
    pub(crate) fn names_lost(&self) -> u32 {
        self.doors.iter().map(|door| door.names().1).sum()
    }

    /// The pages by which points are switched, mapped once more.
    pub(crate) fn pages_again(&self) -> Result<Vec<ControlPage>, TraceError> {
        if self.doors.is_empty() {
            return Ok(vec![open_control(&self.dir)?]);
        }
        self.doors.iter().map(Door::page_again).collect()
    }

    /// What the programs write to.
    fn pages(&self) -> impl Iterator<Item = &ControlPage> {
        let own = self.doors.is_empty().then_some(&self.page);
        own.into_iter().chain(self.doors.iter().map(Door::page))
    }

    fn sum(&self, offset: usize) -> u32 {
        self.pages()
            .map(|page| page.field_u32(offset).load(Ordering::Relaxed))
            .fold(0, u32::saturating_add)
    }

    /// Whether a program that ran already is recorded, which may run on.
    pub(crate) const fn is_attached(&self) -> bool {
        !self.doors.is_empty()
    }

    /// User that the rings belong to.
    pub(crate) const fn owner(&self) -> u32 {
        self.owner
    }

    fn fill_control(&self, page: &ControlPage) {
        let doors = (self.doors.len() as u64).max(1);
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
                segments(self.budget_bytes / doors).max(2),
            ),
            (control::OFF_COLLECTOR_ALIVE, 1),
        ] {
            page.field_u32(offset).store(value, Ordering::Relaxed);
        }
        page.field_u64(control::OFF_MAGIC)
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
        self.pages()
            .map(|page| {
                page.field_u64(control::OFF_LOST_NO_RING)
                    .load(Ordering::Relaxed)
            })
            .fold(0, u64::saturating_add)
    }

    /// Rings asked for since: `next` says from which number on, by place of the
    /// page, and is moved on.
    pub(crate) fn new_rings(&self, next: &mut Vec<u32>) -> Vec<u32> {
        let mut new = Vec::new();
        let pages = self.pages().count();
        for (place, page) in self.pages().enumerate() {
            let first = place as u32 * RINGS_OF_A_DOOR;
            // Behind the last one there is nobody's.
            let end = match place + 1 == pages {
                true => u32::MAX,
                false => first + RINGS_OF_A_DOOR,
            };
            if next.len() <= place {
                next.push(first);
            }
            // The number is the programs' to write: bounded by what is there.
            let asked = page
                .field_u32(control::OFF_NEXT_RING)
                .load(Ordering::Acquire)
                .min(next[place].saturating_add(65_536))
                .min(end);
            new.extend(next[place]..asked);
            next[place] = next[place].max(asked);
        }
        new
    }

    /// Numbers of the next rings, by place of the page.
    pub(crate) fn asked_rings(&self) -> Vec<u32> {
        let next = |page: &ControlPage| {
            page.field_u32(control::OFF_NEXT_RING)
                .load(Ordering::Acquire)
        };
        self.pages().map(next).collect()
    }

    /// Gives a finished ring's segments back to the budget.
    pub fn give_back(&self, ring: u32, segments: u32) {
        let place = match self.doors.len() {
            0 => 0,
            doors => (ring / RINGS_OF_A_DOOR).min(doors as u32 - 1),
        };
        let Some(page) = self.pages().nth(place as usize) else {
            return;
        };
        let used = page.field_u32(control::OFF_SEGMENTS_USED);
        // The programs write here too: never below zero.
        let _ = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            Some(used.saturating_sub(segments))
        });
    }

    /// Segments the programs hold, and may hold.
    #[must_use]
    pub fn segments(&self) -> (u32, u32) {
        (
            self.sum(control::OFF_SEGMENTS_USED),
            self.sum(control::OFF_BUDGET_SEGMENTS),
        )
    }

    /// Switches all measuring points on or off.
    pub fn switch(&self, on: bool) {
        for page in self.pages() {
            let code = if on {
                control::ALL | page.serial
            } else {
                control::NONE
            };
            page.field_u32(control::OFF_ON)
                .store(code, Ordering::SeqCst);
        }
    }

    /// Whether an event stays on while only some are.
    pub(crate) fn keep(&self, event: u16, is_kept: bool) {
        for page in self.pages() {
            page.keep(event, is_kept);
        }
    }
}

/// A control page that is mapped.
#[derive(Debug)]
pub(crate) struct ControlPage {
    base: *mut u8,
    /// What `on` holds beside the mode: the session's number, where it has one.
    pub(crate) serial: u32,
}

// SAFETY: the page is accessed through atomics only.
unsafe impl Send for ControlPage {}

impl ControlPage {
    /// At `base`, whose first [`control::BYTES`] bytes are mapped as long as it is
    /// used.
    pub(crate) const fn at(base: *mut u8) -> Self {
        Self { base, serial: 0 }
    }

    fn keep(&self, event: u16, is_kept: bool) {
        let place = control::OFF_SWITCHED + usize::from(event / 8);
        // SAFETY: a bit for each event lies within the mapped file.
        let byte = unsafe { AtomicU8::from_ptr(self.base.add(place)) };
        let bit = 1 << (event % 8);
        if is_kept {
            byte.fetch_and(!bit, Ordering::Relaxed);
        } else {
            byte.fetch_or(bit, Ordering::Relaxed);
        }
    }

    pub(crate) fn field_u32(&self, offset: usize) -> &AtomicU32 {
        assert!((offset as u64) < control::BYTES && offset.is_multiple_of(4));
        // SAFETY: within the page, aligned.
        unsafe { AtomicU32::from_ptr(self.base.add(offset).cast()) }
    }

    pub(crate) fn field_u64(&self, offset: usize) -> &AtomicU64 {
        assert!((offset as u64) < control::BYTES && offset.is_multiple_of(8));
        // SAFETY: within the page, aligned.
        unsafe { AtomicU64::from_ptr(self.base.add(offset).cast()) }
    }

    /// Of [`open_control`].
    pub(crate) fn unmap(self) {
        // SAFETY: mapped in `open_control`; `self` was the last to use it.
        let _ = unsafe { rustix::mm::munmap(self.base.cast(), control::BYTES as usize) };
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
    let page = ControlPage::at(page);
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
        for page in self.pages() {
            page.field_u32(control::OFF_COLLECTOR_ALIVE)
                .store(0, Ordering::Relaxed);
        }
        self.close_doors();
        // SAFETY: the page mapped in `create`; nothing borrows it any more.
        let _ = unsafe { rustix::mm::munmap(self.page.base.cast(), control::BYTES as usize) };
        // A program may just be making a file there.
        let removed = |_: &u32| fs::remove_dir_all(&self.dir).is_ok() || !self.dir.exists();
        let _ = (0..10).find(removed);
    }
}

fn waited_for(dir: &Path, overflow: Overflow) -> Result<Option<SessionLock>, TraceError> {
    if overflow != Overflow::Block {
        return Ok(None);
    }
    let lock = SessionLock::open(dir)?;
    lock.share();
    Ok(Some(lock))
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

pub(crate) fn map(file: &File, bytes: usize) -> rustix::io::Result<*mut u8> {
    map_as(file, bytes, ProtFlags::READ | ProtFlags::WRITE)
}

pub(crate) fn map_as(file: &File, bytes: usize, allowed: ProtFlags) -> rustix::io::Result<*mut u8> {
    // SAFETY: a new mapping at an address of the kernel's choice.
    unsafe {
        rustix::mm::mmap(
            null_mut(),
            bytes,
            allowed,
            MapFlags::SHARED,
            file.as_fd(),
            0,
        )
        .map(<*mut core::ffi::c_void>::cast)
    }
}

/// Takes away what a killed recorder has left: memory of rings that a program has
/// mapped still, and the directory.
fn remove_left_behind(dir: &Path, owner: u32) {
    let is_ours = (dir.file_name())
        .is_some_and(|name| name.as_encoded_bytes().starts_with(b"undertick-"))
        && fs::symlink_metadata(dir).is_ok_and(|about| about.is_dir() && about.uid() == owner);
    if !is_ours {
        return;
    }
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = (name.to_str())
            .and_then(|name| name.strip_prefix(layout::RING_PREFIX))
            .and_then(|number| u32::from_str_radix(number, 16).ok());
        if let Some(Ok(Some(ring))) = number.map(|number| RingMap::open(dir, number, owner)) {
            ring.give_back_memory();
        }
    }
    let _ = fs::remove_dir_all(dir);
}
