//! Mappings of an unloaded library, left to the next one that is loaded. A program that repeatedly
//! loads and unloads a library would otherwise have more mappings each time. At its end a library
//! cannot unmap its memory, since this may be the end of the program, with threads that still
//! record. The same as in undertick.h, and shared with the libraries that include it.

use core::cell::UnsafeCell;
use core::ptr::null;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use undertick_ring::layout::{control, ring};
use undertick_ring::{Mapped, mark};

use crate::pool::Wiped;
use crate::process::map;

pub const PAGE_BYTES: usize = 4096;
/// An instance's two pages: the one that fork() wipes, and [`Instance`].
const PAGES_BYTES: usize = 2 * PAGE_BYTES;
pub(crate) const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;

/// Address of the registry, which nothing else takes.
const REGISTRY_AT: usize = 0x2000_5554_0000;
/// "UTTREG02".
const REGISTRY_MAGIC: u64 = 0x3230_4745_5254_5455;
const MOST_INSTANCES: usize = 500;
/// Flag of an entry of the registry: its instance was unloaded.
const UNLOADED: u64 = 1;

/// The instances of a process (an executable, libraries): the two pages of each.
#[repr(C)]
struct Registry {
    magic: AtomicU64,
    /// The process of the registry: a child has a copy, which says nothing about the child.
    pid: AtomicU64,
    instances: [AtomicU64; MOST_INSTANCES],
}

/// An instance's second page.
#[repr(C)]
pub struct Instance {
    /// The mark of the scheduler, [`mark::write_section`].
    section: UnsafeCell<[u64; mark::SECTION_BYTES / 8]>,
    /// The control page, its size in bytes, and for an attach page the memory after it.
    control: AtomicU64,
    control_bytes: AtomicU64,
    /// Rings that are open, see [`noted`]; 0: free.
    rings: [AtomicU64; 256],
    /// Pages of cells.
    pages: [AtomicU64; 120],
}

const _: () = assert!(size_of::<Registry>() <= PAGE_BYTES && size_of::<Instance>() <= PAGE_BYTES);

/// Replaces the first entry that holds `from` by `to`. If there is none, the mapping is not noted.
fn note(table: &[AtomicU64], from: u64, to: u64) {
    for entry in table {
        let done = entry.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
        if done.is_ok() {
            return;
        }
    }
}

/// Bits of a noted ring that hold its number, below its address.
const NUMBER_BITS: u64 = PAGE_BYTES as u64 - 1;

/// Returns the note of a ring: the address of its head, and 12 bits of its number, as the head may
/// belong to another ring later.
fn noted(head: *mut u8) -> u64 {
    // SAFETY: a head that is mapped.
    let number = unsafe { AtomicU32::from_ptr(head.add(ring::OFF_RING).cast()) };
    head as u64 | u64::from(number.load(Ordering::Relaxed)) & NUMBER_BITS
}

impl Instance {
    /// Notes a ring that is open.
    pub(crate) fn note_ring(&self, memory: &Mapped) {
        note(&self.rings, 0, noted(memory.head()));
    }

    /// Removes the note of a ring that is no longer open.
    pub(crate) fn forget_ring(&self, memory: &Mapped) {
        note(&self.rings, noted(memory.head()), 0);
    }

    /// Notes a page of cells that was mapped.
    pub(crate) fn note_page(&self, page: *mut u8) {
        note(&self.pages, 0, page as u64);
    }

    /// Unmaps a page of cells.
    ///
    /// # Safety
    /// It is one of this instance's, which nobody uses any more.
    pub(crate) unsafe fn unmap_page(&self, page: *mut u8) {
        note(&self.pages, page as u64, 0);
        // SAFETY: the caller's promise.
        unsafe { libc::munmap(page.cast(), PAGE_BYTES) };
    }

    /// Unmaps the memory that an unloaded instance has left. Rings of a session that is still
    /// running are complete.
    ///
    /// # Safety
    /// The instance was unloaded: none of its code runs any more. `wiped` is its first page.
    unsafe fn clear(&self, wiped: &Wiped) {
        let page = self.control.swap(0, Ordering::Relaxed) as usize;
        let page = page as *mut u8;
        // SAFETY: what the instance has noted is mapped, and nobody's any more.
        unsafe {
            let is_on = !page.is_null() && {
                let on = AtomicU32::from_ptr(page.add(control::OFF_ON).cast());
                on.load(Ordering::Relaxed) != control::NONE
            };
            for entry in &self.rings {
                let word = entry.swap(0, Ordering::Relaxed);
                let head = (word & !NUMBER_BITS) as *mut u8;
                if word != 0 && is_on && noted(head) == word {
                    let state = AtomicU32::from_ptr(head.add(ring::OFF_STATE).cast());
                    state.store(ring::STATE_CLOSED, Ordering::Release);
                }
            }
            wiped.clear();
            for entry in &self.pages {
                let word = entry.swap(0, Ordering::Relaxed) as usize;
                if word != 0 {
                    libc::munmap(word as *mut libc::c_void, PAGE_BYTES);
                }
            }
            if !page.is_null() {
                let bytes = self.control_bytes.load(Ordering::Relaxed) as usize;
                libc::munmap(page.cast(), bytes);
            }
        }
    }
}

/// The two private pages of this instance. A thread's `rseq_cs` may point to the second
/// one for ever, so they stay mapped.
pub struct Pages {
    first: *mut u8,
    /// Entry in the registry, if that has room.
    place: Option<&'static AtomicU64>,
    /// They do not come from an instance that was unloaded.
    are_new: bool,
}

impl Pages {
    /// Returns the pages of an instance that was unloaded, or new ones.
    pub(crate) fn take() -> Option<Self> {
        let registry = registry();
        let instances = registry.map_or(&[][..], |registry| &registry.instances);
        for place in instances {
            let found = place.load(Ordering::Acquire);
            let ours = found & !UNLOADED;
            let take = || place.compare_exchange(found, ours, Ordering::Acquire, Ordering::Relaxed);
            if found & UNLOADED == 0 || take().is_err() {
                continue;
            }
            let this = Self {
                first: ours as *mut u8,
                place: Some(place),
                are_new: false,
            };
            // SAFETY: whoever marked the entry was unloaded, and it is ours now.
            unsafe { this.instance().clear(this.wiped()) };
            return Some(this);
        }
        let first = map(
            PAGES_BYTES,
            READ_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
        )?;
        let word = first as u64;
        let is_free = |place: &&AtomicU64| {
            (place.compare_exchange(0, word, Ordering::Relaxed, Ordering::Relaxed)).is_ok()
        };
        Some(Self {
            first,
            place: instances.iter().find(is_free),
            are_new: true,
        })
    }

    /// Returns the page that fork() has to wipe.
    pub(crate) const fn first(&self) -> *mut u8 {
        self.first
    }

    /// Returns the first page as [`Wiped`].
    #[inline(always)]
    pub(crate) const fn wiped(&self) -> &'static Wiped {
        // SAFETY: mapped for ever; any bits are valid.
        unsafe { &*self.first.cast::<Wiped>() }
    }

    pub(crate) fn instance(&self) -> &'static Instance {
        // SAFETY: the second page, mapped for ever; any bits are valid.
        unsafe { &*self.first.add(PAGE_BYTES).cast::<Instance>() }
    }

    /// Notes the control page, and writes the mark's section; returns the value that `rseq_cs` must
    /// hold to point at that section.
    pub(crate) fn begin(&self, control: *mut u8, bytes: usize) -> u64 {
        let instance = self.instance();
        let address = control as u64;
        instance.control.store(address, Ordering::Relaxed);
        (instance.control_bytes).store(bytes as u64, Ordering::Relaxed);
        // SAFETY: the first bytes of the second page, which nobody has a reference to.
        unsafe { mark::write_section(self.first.add(PAGE_BYTES)) }
    }

    /// Returns the pages: this instance records nothing.
    pub(crate) fn give_back(self) {
        let word = self.first as u64 | UNLOADED;
        if let Some(place) = self.place {
            place.store(if self.are_new { 0 } else { word }, Ordering::Release);
        }
        if self.are_new {
            // SAFETY: mapped by `take`, not used any more.
            unsafe { libc::munmap(self.first.cast(), PAGES_BYTES) };
        }
    }

    /// The library is unloaded, or the program ends: the mappings are left to the next instance.
    pub(crate) fn leave(&self) {
        let Some(place) = self.place else { return };
        let word = self.first as u64;
        // Not in a child: the entry inherited from its parent is not about the child.
        let is_ours = registry_there().pid.load(Ordering::Relaxed) == u64::from(std::process::id());
        if is_ours && place.load(Ordering::Relaxed) == word {
            place.store(word | UNLOADED, Ordering::Release);
        }
    }
}

/// Returns the registry after [`registry`] has found it.
fn registry_there() -> &'static Registry {
    // SAFETY: mapped for ever, for registries alone.
    unsafe { &*(REGISTRY_AT as *const Registry) }
}

/// Returns the registry of this process; `None`: it cannot have one (little address space, another
/// mapping there, a sanitizer that uses the address).
fn registry() -> Option<&'static Registry> {
    let pid = u64::from(std::process::id());
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    let there = REGISTRY_AT as *mut libc::c_void;
    // SAFETY: replaces nothing; what it made elsewhere is unmapped.
    unsafe {
        let at = libc::mmap(there, PAGE_BYTES, READ_WRITE, flags, -1, 0);
        if at == there {
            let _ = at as usize; // its address is used by `registry_there`
            let registry = registry_there();
            registry.pid.store(pid, Ordering::Relaxed);
            registry.magic.store(REGISTRY_MAGIC, Ordering::Release);
            return Some(registry);
        }
        if at != libc::MAP_FAILED {
            libc::munmap(at, PAGE_BYTES); // kernels before 4.17: somewhere else
            return None;
        }
        if errno() != libc::EEXIST {
            return None;
        }
        if !is_readable(there) {
            return None;
        }
    }
    let registry = registry_there();
    if registry.magic.load(Ordering::Acquire) != REGISTRY_MAGIC {
        return None;
    }
    if registry.pid.load(Ordering::Relaxed) != pid {
        for place in &registry.instances {
            place.store(0, Ordering::Relaxed);
        }
        registry.pid.store(pid, Ordering::Relaxed);
    }
    Some(registry)
}

/// Returns whether a mapping at this address can be read. The kernel checks it: a wait there that
/// ends at once.
pub(crate) fn is_readable(there: *mut libc::c_void) -> bool {
    let at_once = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let wait = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the kernel reads four bytes, or says that it cannot.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            there,
            wait,
            0,
            &raw const at_once,
            null::<u8>(),
            0,
        );
    }
    matches!(errno(), libc::EAGAIN | libc::ETIMEDOUT)
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}
