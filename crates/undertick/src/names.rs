//! The event numbers of names. A process has one number for each name, in all its executables and
//! libraries together, whichever registers it first. The same as in undertick.h, and shared with
//! the libraries that include it.
//!
//! **Method.** A table at an address that nothing else takes holds the hash of each name at the
//! place of its number, the first free one from where the hash points. So a name also has the same
//! number in nearly all processes.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use undertick_ring::layout::names::{self, FIRST_NUMBER, OTHERS};

use crate::instance::{READ_WRITE, is_readable};
use crate::process::{append_name, session};

/// Address of the table.
const NAMES_AT: usize = 0x2000_5555_0000;
/// "UTNAME01", after the last entry.
const MAGIC: u64 = 0x3130_454d_414e_5455;
const NAMES: usize = (OTHERS - FIRST_NUMBER) as usize;

/// Whether the name of the number for all other names has been written to the trace.
static OTHERS_ARE_TOLD: AtomicBool = AtomicBool::new(false);

/// Hashes by number; then the magic.
pub(crate) type Table = [AtomicU64; NAMES + 1];

/// Returns the number of a name. The name is written to the trace if it is new, or if `tells`:
/// another instance may have been unloaded, with the names that it gave.
#[cold]
pub(crate) fn number(name: &str, mut tells: bool) -> u16 {
    let Some(session) = session() else {
        return OTHERS;
    };
    let hash = hash(name.as_bytes());
    let table = session.names().map_or(&[][..], |table| &table[..NAMES]);
    for place in 0..table.len() {
        let place = (hash.wrapping_add(place as u64) % NAMES as u64) as usize;
        let put = table[place].compare_exchange(0, hash, Ordering::Relaxed, Ordering::Relaxed);
        match put {
            Ok(_) => tells = true,
            Err(found) if found == hash => {}
            Err(_) => continue,
        }
        let number = FIRST_NUMBER + place as u16;
        if tells {
            append_name(names::EVENT, number, name);
        }
        return number;
    }
    if !OTHERS_ARE_TOLD.swap(true, Ordering::Relaxed) {
        append_name(names::EVENT, OTHERS, "(other names)");
    }
    OTHERS
}

/// Computes the FNV-1a hash; never 0.
fn hash(name: &[u8]) -> u64 {
    let hash = name.iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash.max(1)
}

/// Returns the table, mapped by the first instance; `None`: it cannot be mapped, for the same
/// reasons as the registry.
pub(crate) fn table() -> Option<&'static Table> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    let there = NAMES_AT as *mut libc::c_void;
    // SAFETY: replaces nothing; what it made elsewhere is unmapped. What is there is for
    // tables alone.
    let table = unsafe {
        let at = libc::mmap(there, size_of::<Table>(), READ_WRITE, flags, -1, 0);
        if at == libc::MAP_FAILED {
            if *libc::__errno_location() != libc::EEXIST || !is_readable(there) {
                return None;
            }
        } else if at == there {
            let _ = at as usize; // its address is used below
        } else {
            libc::munmap(at, size_of::<Table>()); // kernels before 4.17: somewhere else
            return None;
        }
        &*(NAMES_AT as *const Table)
    };
    match table[NAMES].compare_exchange(0, MAGIC, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) | Err(MAGIC) => Some(table),
        Err(_) => None,
    }
}
