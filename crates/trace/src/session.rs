//! The session directory: what the collector and the programs share while a
//! recording runs.

use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags};
use undertick_clock::ClockId;
use undertick_ring::Overflow;
use undertick_ring::layout::{self, SEGMENT_BYTES, control};

use crate::TraceError;
use crate::cut_files::Watched;
use crate::door::Door;
use crate::manifest::{Name, Thread};
pub use crate::ring_map::RingMap;
use crate::sampled::{self, Rate};
pub use crate::session_dir::SessionDir;
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
    dir: SessionDir,
    page: ControlPage,
    /// Control page and log of names, as they were made: the program may put something
    /// else in their place.
    control: File,
    /// See `control`.
    names: File,
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
pub(crate) const RINGS_OF_A_DOOR: u32 = 1 << 20;

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
        let dir = SessionDir::make(&parent)?;
        let files = Self::files(&dir).inspect_err(|_| dir.remove_all());
        let (control, page, names) = files?;
        let waited_for = waited_for(&dir, settings.overflow)?;
        let session = Self {
            dir,
            page,
            control,
            names,
            doors,
            owner,
            settings,
            budget_bytes,
            _waited_for: waited_for,
            warnings,
        };
        if owner != rustix::process::getuid().as_raw() {
            let owner = (Some(owner), group);
            session.dir.give_to(owner)?;
            for (name, file) in [
                (layout::NAMES_FILE, &session.names),
                (layout::CONTROL_FILE, &session.control),
            ] {
                let path = session.dir.path().join(name);
                std::os::unix::fs::fchown(file.as_fd(), owner.0, owner.1).map_err(
                    TraceError::io(&path, "cannot be given to the program's user"),
                )?;
            }
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

    /// The control page, mapped, and the names log of a directory that is empty yet.
    fn files(dir: &SessionDir) -> Result<(File, ControlPage, File), TraceError> {
        let path = dir.path().join(layout::CONTROL_FILE);
        let file = dir.create(layout::CONTROL_FILE)?;
        file.set_len(control::BYTES)
            .map_err(TraceError::io(&path, "cannot set its size"))?;
        let names = dir.create(layout::NAMES_FILE)?;
        let page =
            ControlPage::of(&file).map_err(|e| TraceError::io(&path, "cannot map")(e.into()))?;
        Ok((file, page, names))
    }

    /// The session of a recorder that was killed, and the doors that lead to it.
    ///
    /// # Errors
    /// It is not there, or not of this version.
    pub(crate) fn reopen(
        path: &Path,
        doors: Vec<Door>,
        told: &crate::manifest::Recorder,
        clock: ClockId,
    ) -> Result<Self, TraceError> {
        let dir = SessionDir::open(path).map_err(TraceError::io(path, "cannot open"))?;
        let owner = dir.owner().unwrap_or(u32::MAX);
        let page = open_control(path)?;
        let file = |name: &str| {
            let missing = || TraceError::damaged(&path.join(name), "it is gone");
            dir.file(name, owner)?.ok_or_else(missing)
        };
        let (control, names) = (file(layout::CONTROL_FILE)?, file(layout::NAMES_FILE)?);
        let code = page.field_u32(control::OFF_OVERFLOW);
        let overflow = Overflow::from_code(code.load(Ordering::Relaxed)).ok_or_else(|| {
            TraceError::damaged(&path.join(layout::CONTROL_FILE), "no such overflow policy")
        })?;
        let waited_for = waited_for(&dir, overflow)?;
        let session = Self {
            dir,
            page,
            control,
            names,
            doors,
            owner,
            settings: Settings {
                overflow,
                ring_bytes: told.ring_bytes,
                budget_bytes: Some(told.budget_bytes),
                ..Settings::growing(clock)
            },
            budget_bytes: told.budget_bytes,
            _waited_for: waited_for,
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
        let path = self.dir.path().join(layout::NAMES_FILE);
        (self.names.write_all_at(&names, 0)).map_err(TraceError::io(&path, "cannot write"))?;
        for door in &mut self.doors {
            door.enter(self.dir.path())?;
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
        let (mut log, _) = crate::names::log(&self.dir, &self.names);
        log.extend(self.doors.iter().flat_map(|door| door.names().0));
        let (mut events, threads) = crate::names::parse(&log);
        if !self.is_attached() {
            events.extend(crate::functions::names(self.dir.path()));
        }
        (events, threads)
    }

    /// Shortens the log of names if it has become long ([`crate::names::shorten`]).
    pub(crate) fn shorten_names(&self, is_wanted: impl Fn(i32, Option<i32>) -> bool) {
        crate::names::shorten(&self.dir, &self.names, is_wanted);
    }

    /// What the program did to the session's own files.
    pub(crate) fn damage(&self) -> Option<String> {
        self.page.cut.is_cut().then(|| {
            format!(
                "{}: the program cut the session's control page short: rings that it made after that are not recorded",
                self.dir.path().join(layout::CONTROL_FILE).display()
            )
        })
    }

    /// Says in the session directory what stands at the doors, for who looks from outside.
    pub(crate) fn tell_of_doors(&self) {
        if !self.is_attached() {
            return;
        }
        let names: Vec<u8> = self.doors.iter().flat_map(|door| door.names().0).collect();
        let about = self.names.metadata();
        if about.is_ok_and(|about| about.len() != names.len() as u64) {
            let _ = self.names.write_all_at(&names, 0);
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
            let path = || self.dir.path().join(layout::CONTROL_FILE);
            let page = ControlPage::of(&self.control);
            return Ok(vec![
                page.map_err(|e| TraceError::io(&path(), "cannot map")(e.into()))?,
            ]);
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
        let segments = |bytes: u64| (bytes / SEGMENT_BYTES).clamp(2, u64::from(u32::MAX)) as u32;
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
                segments(self.settings.ring_bytes),
            ),
            (control::OFF_BUDGET_SEGMENTS, self.budget_segments()),
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
        self.dir.path()
    }

    /// The same, whatever the program has put in its place.
    pub(crate) const fn opened_dir(&self) -> &SessionDir {
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

    /// Segments the programs hold, as they say, and may hold.
    #[must_use]
    pub fn segments(&self) -> (u32, u32) {
        let doors = (self.doors.len() as u32).max(1);
        (
            self.sum(control::OFF_SEGMENTS_USED),
            self.budget_segments().saturating_mul(doors),
        )
    }

    /// What the pages say, which programs can write to.
    fn budget_segments(&self) -> u32 {
        let doors = (self.doors.len() as u64).max(1);
        let segments = self.budget_bytes / doors / SEGMENT_BYTES;
        segments.clamp(2, u64::from(u32::MAX)) as u32
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
    /// The file is the program's to cut.
    cut: Watched,
}

// SAFETY: the page is accessed through atomics only.
unsafe impl Send for ControlPage {}

impl ControlPage {
    /// At `base`, where `bytes`, at least [`control::BYTES`], of a file are mapped.
    ///
    /// # Safety
    /// The mapping stays as long as the value is used, and nothing but atomics access it.
    pub(crate) unsafe fn at(base: *mut u8, bytes: usize) -> Self {
        // SAFETY: as the caller says.
        let cut = unsafe { Watched::new(base, bytes) };
        let serial = 0;
        Self { base, serial, cut }
    }

    /// Maps the page of a file; see [`Self::unmap`].
    pub(crate) fn of(file: &File) -> rustix::io::Result<Self> {
        let bytes = control::BYTES as usize;
        let base = map(file, bytes)?;
        // SAFETY: just mapped; who unmaps it, by `unmap`, has the only value.
        Ok(unsafe { Self::at(base, bytes) })
    }

    /// The mapping ends.
    pub(crate) fn end(&self) {
        self.cut.end();
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

    /// What [`Self::of`] mapped.
    pub(crate) fn unmap(&self) {
        self.end();
        // SAFETY: mapped in `of`; nothing borrows it any more.
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
    let page = ControlPage::of(&file).map_err(|e| TraceError::io(&path, "cannot map")(e.into()))?;
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
        self.page.unmap();
        self.dir.remove_all();
    }
}

fn waited_for(dir: &SessionDir, overflow: Overflow) -> Result<Option<SessionLock>, TraceError> {
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
fn remove_left_behind(path: &Path, owner: u32) {
    let is_named_so =
        (path.file_name()).is_some_and(|name| name.as_encoded_bytes().starts_with(b"undertick-"));
    let Some(dir) = SessionDir::open(path).ok().filter(|_| is_named_so) else {
        return;
    };
    if dir.owner() != Some(owner) {
        return;
    }
    for number in dir.rings(RINGS_OF_A_DOOR as usize) {
        if let Ok(Some(ring)) = RingMap::open(&dir, number, owner) {
            ring.give_back_memory();
        }
    }
    dir.remove_all();
}
