//! The attach pages of a session: through them it records programs that were started without one.

use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;

use undertick_format::TraceError;
use undertick_memory::attach_page::AttachPage;
use undertick_ring::layout::{self, control};

use super::Session;
use super::place::remove_left_behind;
use crate::sampled;

impl Session {
    /// Prepares the control page of an attach page; nothing is recorded with it yet.
    pub(super) fn prepare(&self, attach_page: &AttachPage) -> Result<(), TraceError> {
        let page = attach_page.control_page();
        page.field_u32(control::OFF_ON)
            .store(control::NONE, Ordering::SeqCst);
        if let Some(dir) = attach_page.left_behind() {
            remove_left_behind(&dir, self.owner);
            attach_page.leave();
        }
        self.fill_control(page);
        page.field_u32(control::OFF_ONE_IN)
            .store(0, Ordering::Relaxed);
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

    /// Enters by the attach pages: from here on the program's points can be switched.
    ///
    /// # Errors
    /// The directory's name is too long.
    pub(crate) fn enter(&mut self) -> Result<(), TraceError> {
        let names: Vec<u8> = self
            .attach_pages
            .iter()
            .flat_map(|attach_page| attach_page.names().0)
            .collect();
        let path = self.dir.path().join(layout::NAMES_FILE);
        (self.names.write_all_at(&names, 0)).map_err(TraceError::io(&path, "cannot write"))?;
        for attach_page in &mut self.attach_pages {
            attach_page.enter(self.dir.path())?;
        }
        Ok(())
    }

    /// Keeps the program from making more rings.
    pub(crate) fn leave_attach_pages(&self) {
        self.attach_pages.iter().for_each(AttachPage::leave);
    }

    /// Passes sampling rates that were requested during the recording to the attach pages.
    pub(crate) fn pass_rates_on(&self) {
        for attach_page in &self.attach_pages {
            sampled::copy(&self.page, attach_page.control_page());
        }
    }

    /// Writes the state of the attach pages to the session directory, for observers.
    pub(crate) fn write_attach_page_state(&self) {
        if !self.is_attached() {
            return;
        }
        let names: Vec<u8> = self
            .attach_pages
            .iter()
            .flat_map(|attach_page| attach_page.names().0)
            .collect();
        let about = self.names.metadata();
        if about.is_ok_and(|about| about.len() != names.len() as u64) {
            let _ = self.names.write_all_at(&names, 0);
        }
        self.page
            .field_u64(control::OFF_LOST_NO_RING)
            .store(self.lost_no_ring(), Ordering::Relaxed);
    }
}
