//! A session's control page, as mapped by a recorder.

use std::fs::File;
use std::os::fd::AsFd;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags};
use undertick_format::TraceError;
use undertick_ring::layout::{self, control};

use crate::cut_files::Watched;
use crate::session_dir::SessionDir;

/// A mapped control page.
#[derive(Debug)]
pub struct ControlPage {
    base: *mut u8,
    /// The content of `on` beside the mode: the session's number, where it has one.
    pub serial: u32,
    /// The program can truncate the file.
    cut: Watched,
}

// SAFETY: the page is accessed through atomics only.
unsafe impl Send for ControlPage {}

impl ControlPage {
    /// Makes a page at `base`, where `bytes`, at least [`control::BYTES`], of a file are mapped.
    ///
    /// # Safety
    /// The mapping stays as long as the value is used, and nothing but atomics access it.
    pub unsafe fn at(base: *mut u8, bytes: usize) -> Self {
        // SAFETY: as the caller says.
        let cut = unsafe { Watched::new(base, bytes) };
        let serial = 0;
        Self { base, serial, cut }
    }

    /// Maps the page of a file; see [`Self::unmap`].
    pub fn map(file: &File) -> rustix::io::Result<Self> {
        let bytes = control::BYTES as usize;
        let base = map(file, bytes)?;
        // SAFETY: just mapped; the caller, which unmaps it by `unmap`, has the only value.
        Ok(unsafe { Self::at(base, bytes) })
    }

    /// Whether the program truncated the file, and zeros were read in place of its content.
    pub fn is_cut(&self) -> bool {
        self.cut.is_cut()
    }

    /// Stops watching the mapping for truncation.
    pub fn end(&self) {
        self.cut.end();
    }

    /// Sets whether an event stays on while the others are switched off.
    pub fn keep(&self, event: u16, is_kept: bool) {
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

    /// The field of 32 bits at an offset of [`control`].
    ///
    /// # Panics
    /// If no such field lies there.
    pub fn field_u32(&self, offset: usize) -> &AtomicU32 {
        assert!((offset as u64) < control::BYTES && offset.is_multiple_of(4));
        // SAFETY: within the page, aligned.
        unsafe { AtomicU32::from_ptr(self.base.add(offset).cast()) }
    }

    /// The field of 64 bits at an offset of [`control`].
    ///
    /// # Panics
    /// If no such field lies there.
    pub fn field_u64(&self, offset: usize) -> &AtomicU64 {
        assert!((offset as u64) < control::BYTES && offset.is_multiple_of(8));
        // SAFETY: within the page, aligned.
        unsafe { AtomicU64::from_ptr(self.base.add(offset).cast()) }
    }

    /// Releases every thread that waits for the collector.
    pub fn let_go(&self) {
        self.field_u32(control::OFF_COLLECTOR_ALIVE)
            .store(0, Ordering::Relaxed);
    }

    /// Events lost because their thread could get no ring.
    pub fn lost_no_ring(&self) -> u64 {
        self.field_u64(control::OFF_LOST_NO_RING)
            .load(Ordering::Relaxed)
    }

    /// Unmaps what [`Self::map`] mapped.
    ///
    /// # Safety
    /// The page and what was borrowed of it are not used any more.
    pub unsafe fn unmap(&self) {
        self.end();
        // SAFETY: mapped in `map`; by contract nothing uses it any more.
        let _ = unsafe { rustix::mm::munmap(self.base.cast(), control::BYTES as usize) };
    }
}

/// Opens the control page of a session that another process made; also returns its file.
pub fn open_control(dir: &SessionDir) -> Result<(File, ControlPage), TraceError> {
    let path = dir.path().join(layout::CONTROL_FILE);
    let owner = dir.owner().unwrap_or(u32::MAX);
    let gone = || TraceError::damaged(&path, "it is gone");
    let file = (dir.file(layout::CONTROL_FILE, owner)?).ok_or_else(gone)?;
    let bytes = file
        .metadata()
        .map_err(TraceError::io(&path, "cannot look at"))?
        .len();
    if bytes != control::BYTES {
        return Err(TraceError::damaged(&path, "not a session's control page"));
    }
    let page =
        ControlPage::map(&file).map_err(|e| TraceError::io(&path, "cannot map")(e.into()))?;
    let magic = page.field_u64(control::OFF_MAGIC).load(Ordering::Acquire);
    let version = page.field_u32(control::OFF_VERSION).load(Ordering::Relaxed);
    if (magic, version) == (control::MAGIC, layout::VERSION) {
        return Ok((file, page));
    }
    // SAFETY: its fields were read, and it goes with this function.
    unsafe { page.unmap() };
    Err(match magic {
        control::MAGIC => TraceError::other_version(&path),
        _ => TraceError::damaged(&path, "not a control page"),
    })
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
