//! Memory regions: created, touched, filled, freed.

mod limits;
mod map;

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use self::map::Mapped;
use super::Act;
use super::fail::{because, fail};
use crate::script::{Pages, RegionKind};

/// Touching a region writes one byte in each of these: small pages.
const TOUCHED_BYTES: usize = 4096;

/// A region of one process. Its acts share its address; it is freed when the last of them is
/// dropped.
#[derive(Clone, Debug)]
pub(crate) struct Region(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    name: String,
    bytes: usize,
    kind: RegionKind,
    pages: Pages,
    mapped: Cell<Option<Mapped>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(mapped) = self.mapped.get() {
            mapped.unmap();
        }
    }
}

impl Region {
    /// Makes a region that is not allocated yet; a static one is allocated at once.
    ///
    /// # Errors
    /// The machine has not enough memory, no memory of that kind, or no huge pages for it.
    pub(crate) fn new(name: &str, bytes: u64, kind: RegionKind, pages: Pages) -> io::Result<Self> {
        let explain = |error: io::Error| because(&format!("region {name:?}"), &error);
        limits::check(bytes, kind, pages).map_err(explain)?;
        let bytes = usize::try_from(bytes.max(1)).map_err(io::Error::other)?;
        let mapped = match kind {
            RegionKind::Static => Some(map::map(bytes, kind, pages).map_err(explain)?),
            _ => None,
        };
        Ok(Self(Rc::new(Inner {
            name: name.to_owned(),
            bytes,
            kind,
            pages,
            mapped: Cell::new(mapped),
        })))
    }

    /// Allocates it, untouched.
    pub(crate) fn create(&self) -> Act {
        let region = Rc::clone(&self.0);
        if region.kind == RegionKind::Static {
            return Box::new(|| ());
        }
        Box::new(move || {
            if region.mapped.get().is_some() {
                fail(&region.name, "created again before it was freed");
            }
            match map::map(region.bytes, region.kind, region.pages) {
                Ok(mapped) => region.mapped.set(Some(mapped)),
                Err(error) => fail(&region.name, error),
            }
        })
    }

    /// Writes one byte in each 4 KiB.
    pub(crate) fn touch(&self) -> Act {
        let region = Rc::clone(&self.0);
        Box::new(move || {
            let at = region.begin();
            for offset in (0..region.bytes).step_by(TOUCHED_BYTES) {
                // SAFETY: inside the mapping. Volatile: each is written.
                unsafe { at.add(offset).write_volatile(1) };
            }
        })
    }

    /// Writes all words of 8 bytes.
    pub(crate) fn fill(&self) -> Act {
        let region = Rc::clone(&self.0);
        Box::new(move || {
            let at = region.begin().cast::<u64>();
            for word in 0..region.bytes.div_ceil(8) {
                // SAFETY: inside the mapping, which ends with a page. Volatile:
                // each is written.
                unsafe { at.add(word).write_volatile(word as u64) };
            }
        })
    }

    /// Frees it.
    pub(crate) fn free(&self) -> Act {
        let region = Rc::clone(&self.0);
        if region.kind == RegionKind::Static {
            return Box::new(|| ());
        }
        Box::new(move || match region.mapped.take() {
            Some(mapped) => mapped.unmap(),
            None => fail(&region.name, "freed before it was created"),
        })
    }
}

impl Inner {
    #[inline(always)]
    fn begin(&self) -> *mut u8 {
        match self.mapped.get() {
            Some(mapped) => mapped.begin(),
            None => fail(&self.name, "used before it was created"),
        }
    }
}

#[cfg(test)]
mod tests;
