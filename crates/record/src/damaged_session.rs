//! What is left of a session with damaged files, for ending it.

use std::sync::atomic::Ordering;

use undertick_memory::attach_page::AttachPage;
use undertick_memory::control_page::{ControlPage, open_control};
use undertick_memory::pool_map::PoolMap;
use undertick_memory::session_dir::SessionDir;
use undertick_ring::layout::control;

use crate::names::Names;

/// See the module documentation.
pub(crate) struct Damaged {
    dir: SessionDir,
    attach_pages: Vec<AttachPage>,
    page: Option<ControlPage>,
}

impl Damaged {
    /// Makes it from the session that was taken over, and the attach pages that lead to it.
    pub(crate) fn new(dir: SessionDir, attach_pages: Vec<AttachPage>) -> Self {
        let page = open_control(&dir).ok().map(|(_, page)| page);
        Self {
            dir,
            attach_pages,
            page,
        }
    }

    fn pages(&self) -> impl Iterator<Item = &ControlPage> {
        self.page
            .iter()
            .chain(self.attach_pages.iter().map(AttachPage::control_page))
    }

    /// Makes a running program stop writing to it, and releases waiting threads; returns whether
    /// there is a page through which the program can be told.
    pub(crate) fn let_go(&self) -> bool {
        for page in self.pages() {
            page.field_u32(control::OFF_ON)
                .store(control::NONE, Ordering::SeqCst);
            page.let_go();
        }
        self.pages().next().is_some()
    }

    /// The names of events and of threads that are still known.
    pub(crate) fn names(&self) -> Names {
        let log: Vec<u8> = self
            .attach_pages
            .iter()
            .flat_map(|attach_page| attach_page.names().0)
            .collect();
        let mut names = crate::names::parse_log(&log);
        let of_log = crate::names::read(&self.dir);
        names.events.extend(of_log.events);
        names.threads.extend(of_log.threads);
        names.locks.extend(of_log.locks);
        names
    }

    /// Events that found no ring.
    pub(crate) fn lost_no_ring(&self) -> u64 {
        self.pages()
            .map(ControlPage::lost_no_ring)
            .fold(0, u64::saturating_add)
    }

    /// Removes the session.
    pub(crate) fn remove(self) {
        self.attach_pages.iter().for_each(AttachPage::leave);
        // A program that continues to run still has it mapped.
        if let Some(pool) =
            (PoolMap::open(&self.dir, true).ok()).filter(|_| !self.attach_pages.is_empty())
        {
            pool.empty();
        }
        // SAFETY: nothing borrows of this any more.
        self.page.iter().for_each(|page| unsafe { page.unmap() });
        self.dir.remove_all();
    }
}
