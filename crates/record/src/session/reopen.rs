//! Takes over the session of a recorder that was killed.

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use undertick_clock::ClockId;
use undertick_format::TraceError;
use undertick_memory::attach_page::AttachPage;
use undertick_memory::control_page::{ControlPage, open_control};
use undertick_memory::pool::Pool;
use undertick_memory::pool_map::PoolMap;
use undertick_memory::session_dir::SessionDir;
use undertick_ring::Overflow;
use undertick_ring::layout::{self, control};

use super::place::waited_for;
use super::{Session, Settings};

/// The files of a session that a killed recorder left.
pub(crate) struct Files {
    control: File,
    page: ControlPage,
    names: File,
    overflow: Overflow,
    pool: PoolMap,
}

impl Files {
    /// Opens the files.
    ///
    /// # Errors
    /// [`TraceError::Damaged`]: one is gone, or is not what the recorder made.
    pub(crate) fn open(dir: &SessionDir) -> Result<Self, TraceError> {
        let owner = dir.owner().unwrap_or(u32::MAX);
        let pool = PoolMap::open(dir, true)?;
        let path = dir.path().join(layout::NAMES_FILE);
        let names = dir.file(layout::NAMES_FILE, owner)?;
        let names = names.ok_or_else(|| TraceError::damaged(&path, "it is gone"))?;
        let (control, page) = open_control(dir)?;
        let code = page.field_u32(control::OFF_OVERFLOW);
        let overflow = Overflow::from_code(code.load(Ordering::Relaxed)).ok_or_else(|| {
            let path = dir.path().join(layout::CONTROL_FILE);
            TraceError::damaged(&path, "no such overflow policy")
        })?;
        Ok(Self {
            control,
            page,
            names,
            overflow,
            pool,
        })
    }
}

impl Session {
    /// Takes over the session of a killed recorder, with the attach pages that lead to it.
    pub(crate) fn reopen(
        dir: SessionDir,
        files: Files,
        attach_pages: Vec<AttachPage>,
        told: &undertick_format::manifest::Recorder,
        clock: ClockId,
    ) -> Result<Self, TraceError> {
        let waited_for = waited_for(&dir, files.overflow)?;
        let owner = dir.owner().unwrap_or(u32::MAX);
        let pool = Pool::recover(Arc::new(files.pool));
        let session = Self {
            dir,
            page: files.page,
            control: files.control,
            names: files.names,
            attach_pages,
            owner,
            is_kept: false,
            is_on: AtomicBool::new(false),
            pool_map: Arc::clone(pool.map()),
            pool: Mutex::new(Some(pool)),
            settings: Settings {
                overflow: files.overflow,
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
}
