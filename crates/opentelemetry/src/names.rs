//! Event numbers of span names.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Most names that have numbers: three for each, of 16383.
pub const MOST_NAMES: usize = 5000;

/// The name that stands for all further ones.
const OTHERS: &str = "(other names)";

/// The event numbers of a name, and the form in which its spans are recorded.
#[derive(Debug)]
pub struct NameState {
    /// Number of begin and end.
    pub event: u16,
    /// Number of `NAME new`.
    pub new: u16,
    /// Number of `NAME closed`.
    pub closed: u16,
    /// When a span of the name first ended elsewhere, Unix ns; 0 if none did. No other memory depends
    /// on it.
    loose_since_ns: AtomicU64,
}

impl NameState {
    fn request(name: &str) -> &'static Self {
        Box::leak(Box::new(Self {
            event: undertick::number(name),
            new: undertick::number(&format!("{name} new")),
            closed: undertick::number(&format!("{name} closed")),
            loose_since_ns: AtomicU64::new(0),
        }))
    }

    /// Whether spans of the name take the message form.
    pub fn is_loose(&self) -> bool {
        self.loose_since_ns.load(Ordering::Relaxed) != 0
    }

    /// Makes spans of the name take the message form. Returns the time until which spans may have
    /// started in the other form.
    pub fn make_loose(&self) -> SystemTime {
        /// Another thread sees the change a little later.
        const MARGIN: Duration = Duration::from_millis(10);
        let since = match self.loose_since_ns.load(Ordering::Relaxed) {
            0 => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH);
                let now = now.map_or(1, |now| now.as_nanos() as u64);
                let first = (self.loose_since_ns).compare_exchange(
                    0,
                    now,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                );
                first.err().unwrap_or(now)
            }
            since => since,
        };
        UNIX_EPOCH + Duration::from_nanos(since) + MARGIN
    }
}

type ByName = HashMap<String, &'static NameState>;

/// Names of all threads. They are never freed: there are at most [`MOST_NAMES`] and one.
static ALL: Mutex<Option<ByName>> = Mutex::new(None);

/// Slots for names that are part of the program; a power of two.
const SLOTS: usize = 64;

/// The names that a thread has met, so that it locks nothing for them.
struct Known {
    by_name: ByName,
    /// Names that live for ever, by address and length: the same bytes are the same name.
    by_address: [Option<(usize, usize, &'static NameState)>; SLOTS],
}

thread_local! {
    static KNOWN: RefCell<Known> = RefCell::new(Known {
        by_name: HashMap::new(),
        by_address: [None; SLOTS],
    });
}

/// Returns the state of a name, which is requested at its first use in the process.
#[allow(
    clippy::ptr_arg,
    reason = "a name that lives for ever is found by its address"
)]
pub fn name_state(name: &Cow<'static, str>) -> &'static NameState {
    let known = KNOWN.try_with(|known| {
        let known = &mut *known.borrow_mut();
        match name {
            Cow::Borrowed(name) => {
                let address = name.as_ptr() as usize;
                let slot = address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
                match known.by_address[slot % SLOTS] {
                    Some((at, length, state)) if (at, length) == (address, name.len()) => state,
                    _ => {
                        let state = known.by_name(name);
                        known.by_address[slot % SLOTS] = Some((address, name.len(), state));
                        state
                    }
                }
            }
            Cow::Owned(name) => known.by_name(name),
        }
    });
    // While a thread ends, its memory may be gone.
    known.unwrap_or_else(|_| of_all_threads(name))
}

impl Known {
    fn by_name(&mut self, name: &str) -> &'static NameState {
        if let Some(&state) = self.by_name.get(name) {
            return state;
        }
        let state = of_all_threads(name);
        if self.by_name.len() < MOST_NAMES {
            self.by_name.insert(name.to_owned(), state);
        }
        state
    }
}

#[cold]
fn of_all_threads(name: &str) -> &'static NameState {
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    let all = all.get_or_insert_with(HashMap::new);
    if let Some(&state) = all.get(name) {
        return state;
    }
    let name = if all.len() < MOST_NAMES { name } else { OTHERS };
    (all.entry(name.to_owned())).or_insert_with(|| NameState::request(name))
}
