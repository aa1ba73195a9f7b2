//! The session directory: what the collector and the programs share while a
//! recording runs.

mod attach_pages;
mod place;
mod reopen;
mod settings;

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub use settings::{DEFAULT_RING_BYTES, Settings};
use undertick_clock::ClockId;
use undertick_format::TraceError;
use undertick_format::files::MANIFEST_FILE;
use undertick_memory::attach_page::AttachPage;
use undertick_memory::control_page::ControlPage;
use undertick_memory::pool::Pool;
use undertick_memory::pool_map::PoolMap;
pub use undertick_memory::session_dir::SessionDir;
use undertick_memory::session_lock::SessionLock;
use undertick_ring::layout::{self, SEGMENT_BYTES, control};

use crate::names::Names;
use crate::sampled;
pub use crate::session_identity::of_recording;

pub(crate) use place::parent_of;
use place::{budget, make_pool, place, waited_for};
pub(crate) use reopen::Files;

/// A session directory; removed when dropped.
pub struct Session {
    dir: SessionDir,
    page: ControlPage,
    /// The control page as it was made: the program may replace the file in the directory.
    control: File,
    /// The log of names, likewise.
    names: File,
    /// The attach pages of programs that were started without a session; they replace the control
    /// page.
    attach_pages: Vec<AttachPage>,
    /// User that owns the rings.
    owner: u32,
    /// The directory stays when the value is dropped.
    is_kept: bool,
    /// The last state that [`Self::switch`] set.
    is_on: AtomicBool,
    settings: Settings,
    budget_bytes: u64,
    /// The memory in which the rings lie.
    pool_map: Arc<PoolMap>,
    /// The pool, until the collector takes it.
    pool: Mutex<Option<Pool>>,
    /// Held while writers may wait for us; a free lock tells them that we were killed.
    _waited_for: Option<SessionLock>,
    /// Warnings about how the session was set up.
    pub warnings: Vec<String>,
}

impl Session {
    /// Makes a session directory, 0700, with its control page.
    ///
    /// # Errors
    /// There is no room, or the directory cannot be made.
    pub fn create(settings: Settings) -> Result<Self, TraceError> {
        let us = rustix::process::getuid().as_raw();
        Self::create_for(settings, Vec::new(), (us, None))
    }

    /// Makes a session for a program that is already running, owned by its user and group.
    /// Recording does not begin before [`Self::enter`].
    ///
    /// # Errors
    /// As [`Self::create`].
    pub(crate) fn create_for(
        settings: Settings,
        attach_pages: Vec<AttachPage>,
        (owner, group): (u32, Option<u32>),
    ) -> Result<Self, TraceError> {
        let mut warnings = Vec::new();
        let (parent, free) = place(&settings, &mut warnings)?;
        let budget_bytes = budget(&settings, &parent, free)?;
        let dir = SessionDir::make(&parent)?;
        dir.lock(); // ours alone: the directory is new
        let made = Self::files(&dir).and_then(|files| Ok((files, make_pool(&dir, budget_bytes)?)));
        let ((control, page, names), pool) = made.inspect_err(|_| dir.remove_all())?;
        let waited_for = waited_for(&dir, settings.overflow)?;
        let session = Self {
            dir,
            page,
            control,
            names,
            attach_pages,
            owner,
            is_kept: false,
            is_on: AtomicBool::new(false),
            settings,
            budget_bytes,
            pool_map: Arc::clone(pool.map()),
            pool: Mutex::new(Some(pool)),
            _waited_for: waited_for,
            warnings,
        };
        if owner != rustix::process::getuid().as_raw() {
            let owner = (Some(owner), group);
            session.dir.give_to(owner)?;
            for (name, file) in [
                (layout::NAMES_FILE, &session.names),
                (layout::CONTROL_FILE, &session.control),
                (layout::POOL_FILE, session.pool_map.file()),
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
        for attach_page in &session.attach_pages {
            session.prepare(attach_page)?;
        }
        if session.attach_pages.is_empty() {
            session.switch(true);
        }
        Ok(session)
    }

    /// Makes the control page, mapped, and the log of names in an empty directory.
    fn files(dir: &SessionDir) -> Result<(File, ControlPage, File), TraceError> {
        let path = dir.path().join(layout::CONTROL_FILE);
        let file = dir.create(layout::CONTROL_FILE)?;
        file.set_len(control::BYTES)
            .map_err(TraceError::io(&path, "cannot set its size"))?;
        let names = dir.create(layout::NAMES_FILE)?;
        let page =
            ControlPage::map(&file).map_err(|e| TraceError::io(&path, "cannot map")(e.into()))?;
        Ok((file, page, names))
    }

    /// Returns the names that the program gave, by event and by thread.
    pub(crate) fn names(&self) -> Names {
        let (mut log, _) = crate::names::log(&self.dir, &self.names);
        log.extend(
            self.attach_pages
                .iter()
                .flat_map(|attach_page| attach_page.names().0),
        );
        let mut names = crate::names::parse_log(&log);
        if !self.is_attached() {
            (names.events).extend(crate::functions::names(self.dir.path()));
        }
        names
    }

    /// The largest possible number of names in the log: the shortest takes 16 bytes.
    pub(crate) fn most_names(&self) -> u64 {
        self.names.metadata().map_or(0, |about| about.len() / 16)
    }

    /// Shortens the log of names if it has become long ([`crate::names::shorten`]).
    pub(crate) fn shorten_names(&self, is_wanted: impl Fn(i32, Option<i32>) -> bool) {
        crate::names::shorten(&self.dir, &self.names, is_wanted);
    }

    /// Returns descriptions of changes made to the session from outside during the recording.
    pub(crate) fn damage(&self) -> Vec<String> {
        let mut found = Vec::new();
        let place = self.dir.path().display();
        if self.page.is_cut() {
            found.push(format!(
                "{}: the program cut the session's control page short: rings that it made after that are not recorded",
                self.dir.path().join(layout::CONTROL_FILE).display()
            ));
        }
        if !self.dir.is_in_its_place() {
            found.push(format!(
                "{place}: the session directory was removed or moved while it was recorded: threads that began after that got no ring, and names given after that are not kept"
            ));
        }
        if self.was_switched_off() {
            found.push(format!(
                "{place}: something else than this recorder switched the recording off: what the program passed after that is not recorded"
            ));
        }
        found
    }

    /// Whether points are off although [`Self::switch`] did not switch them off.
    fn was_switched_off(&self) -> bool {
        let is_off = |page: &ControlPage| {
            let on = page.field_u32(control::OFF_ON).load(Ordering::Relaxed);
            on & control::MODE == control::NONE
        };
        self.is_on.load(Ordering::Relaxed) && self.pages().any(is_off)
    }

    /// Keeps the directory for `undertick record --finish`, with the manifest in it; returns
    /// whether that succeeded.
    pub(crate) fn keep_with(&mut self, manifest: &[u8]) -> bool {
        self.is_kept =
            self.dir.is_in_its_place() && self.dir.replace(MANIFEST_FILE, manifest).is_ok();
        self.is_kept
    }

    /// The number of names lost because an attach page, or the program's file size limit, had no
    /// room for them.
    pub(crate) fn names_lost(&self) -> u32 {
        let of_attach_pages: u32 = self
            .attach_pages
            .iter()
            .map(|attach_page| attach_page.names().1)
            .sum();
        let of_log = self.page.field_u32(control::OFF_NAMES_LOST);
        of_attach_pages.saturating_add(of_log.load(Ordering::Relaxed))
    }

    /// Maps the pages by which points are switched once more.
    pub(crate) fn pages_again(&self) -> Result<Vec<ControlPage>, TraceError> {
        if self.attach_pages.is_empty() {
            let path = || self.dir.path().join(layout::CONTROL_FILE);
            let page = ControlPage::map(&self.control);
            return Ok(vec![
                page.map_err(|e| TraceError::io(&path(), "cannot map")(e.into()))?,
            ]);
        }
        self.attach_pages
            .iter()
            .map(AttachPage::map_control_page)
            .collect()
    }

    /// The control pages to which the programs write.
    fn pages(&self) -> impl Iterator<Item = &ControlPage> {
        let own = self.attach_pages.is_empty().then_some(&self.page);
        own.into_iter()
            .chain(self.attach_pages.iter().map(AttachPage::control_page))
    }

    /// Whether the recorded program was already running, and so may continue afterwards.
    pub(crate) const fn is_attached(&self) -> bool {
        !self.attach_pages.is_empty()
    }

    fn fill_control(&self, page: &ControlPage) {
        let segments = |bytes: u64| (bytes / SEGMENT_BYTES).clamp(2, u64::from(u32::MAX)) as u32;
        let clock = match self.settings.clock {
            ClockId::Tsc | ClockId::Cntvct => 1,
            ClockId::Monotonic => 3,
            // No other clock is chosen for recording.
            ClockId::MonotonicRaw
            | ClockId::Boottime
            | ClockId::MonotonicCoarse
            | ClockId::Realtime => 2,
        };
        for (offset, value) in [
            (control::OFF_VERSION, layout::VERSION),
            (control::OFF_SEGMENT_BYTES, SEGMENT_BYTES as u32),
            (control::OFF_CLOCK, clock),
            (control::OFF_OVERFLOW, self.settings.overflow as u32),
            // At least two: one is filled while the other is drained.
            (
                control::OFF_RING_SEGMENTS,
                segments(self.settings.ring_bytes),
            ),
            (control::OFF_BUDGET_SEGMENTS, self.pool_map.shape().segments),
            (control::OFF_HEADS, self.pool_map.shape().heads),
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

    /// The directory as it was opened, even if the program has replaced it at its path.
    pub(crate) const fn opened_dir(&self) -> &SessionDir {
        &self.dir
    }

    /// The most memory that all rings may take together, bytes.
    #[must_use]
    pub const fn budget_bytes(&self) -> u64 {
        self.budget_bytes
    }

    /// The settings of the session.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Events lost because their thread could get no ring.
    #[must_use]
    pub fn lost_no_ring(&self) -> u64 {
        self.pages()
            .map(ControlPage::lost_no_ring)
            .fold(0, u64::saturating_add)
    }

    /// Releases every thread that waits for the collector.
    pub(crate) fn let_go(&self) {
        self.pages().for_each(ControlPage::let_go);
    }

    /// Takes the pool; there is one collector, and it calls this once.
    pub(crate) fn take_pool(&self) -> Pool {
        let pool = self
            .pool
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        pool.unwrap_or_else(|| Pool::recover(Arc::clone(&self.pool_map)))
    }

    /// Switches all measuring points on or off.
    pub fn switch(&self, on: bool) {
        self.is_on.store(on, Ordering::Relaxed);
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

impl Drop for Session {
    fn drop(&mut self) {
        // Programs that continue stop writing, and threads that wait are released.
        self.switch(false);
        self.let_go();
        self.leave_attach_pages();
        if self.is_attached() && !self.is_kept {
            self.pool_map.empty(); // the program has it mapped still
        }
        // SAFETY: nothing borrows of the session any more; others have mapped the page themselves.
        unsafe { self.page.unmap() };
        if !self.is_kept {
            self.dir.remove_all();
        }
    }
}
