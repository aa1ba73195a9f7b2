//! Records of the libraries that a program preloads (`record --with`): `docs/format.md`, section 13.

/// The smallest number of an event of theirs; they are in rings of their own.
pub const FIRST_EVENT: u16 = 0xfff0;

/// Names of the events, from [`FIRST_EVENT`] on.
const NAMES: [&str; 11] = [
    "allocations",
    "wait for a mutex",
    "wait for a lock to read",
    "wait for a lock to write",
    "wait for a condition",
    "wait for a semaphore",
    "holder of the lock",
    "end of the wait",
    "signal of a condition",
    "post of a semaphore",
    "allocations (few)",
];
const ALLOCATIONS: u16 = FIRST_EVENT;
const HOLDER: u16 = FIRST_EVENT + 6;
const END: u16 = FIRST_EVENT + 7;
const SIGNAL: u16 = FIRST_EVENT + 8;
const POST: u16 = FIRST_EVENT + 9;
const FEW_ALLOCATIONS: u16 = FIRST_EVENT + 10;
/// Bits of the bytes and of the calls in a record of allocations, and in one of few.
const BITS: (u32, u32) = (42, 11);
const FEW_BITS: (u32, u32) = (20, 6);

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitKind {
    /// `pthread_mutex_lock` and its kin.
    Mutex,
    /// A read-write lock, to read.
    Read,
    /// A read-write lock, to write.
    Write,
    /// `pthread_cond_wait` and its kin.
    Condition,
    /// `sem_wait` and its kin.
    Semaphore,
}

impl WaitKind {
    const ALL: [Self; 5] = [
        Self::Mutex,
        Self::Read,
        Self::Write,
        Self::Condition,
        Self::Semaphore,
    ];
}

/// Calls of the functions for memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocations {
    /// Calls that allocate: `malloc`, `calloc`, `realloc` and their kin.
    pub calls: u64,
    /// The bytes that they requested; of one record at most 2^42 - 1.
    pub bytes: u64,
    /// Calls that free: `free`, and `realloc` of memory.
    pub frees: u64,
}

impl Allocations {
    fn from_bits(bits: u64, (of_bytes, of_calls): (u32, u32)) -> Self {
        Self {
            bytes: bits & ((1 << of_bytes) - 1),
            calls: (bits >> of_bytes) & ((1 << of_calls) - 1),
            frees: bits >> (of_bytes + of_calls),
        }
    }
}

/// A record of a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// What its thread allocated since the record before in its ring; other calls begin here.
    Allocations(Allocations),
    /// A wait begins, for what lies at this address.
    Wait(WaitKind, u64),
    /// The thread that holds what the wait that has just begun is for.
    Holder(i32),
    /// The wait ends. 0: its thread has what it waited for; else the number of the error.
    End(i32),
    /// A thread wakes those that wait for the condition or the semaphore at this address.
    Wake(WaitKind, u64),
}

impl Record {
    /// The meaning of an instant in one of the libraries' rings; `None`: it is none of theirs.
    #[must_use]
    pub fn from_event(event: u16, payload: i64) -> Option<Self> {
        let bits = payload as u64;
        Some(match event {
            ALLOCATIONS => Self::Allocations(Allocations::from_bits(bits, BITS)),
            FEW_ALLOCATIONS => Self::Allocations(Allocations::from_bits(bits, FEW_BITS)),
            HOLDER => Self::Holder(i32::try_from(payload).ok()?),
            END => Self::End(i32::try_from(payload).ok()?),
            SIGNAL => Self::Wake(WaitKind::Condition, bits),
            POST => Self::Wake(WaitKind::Semaphore, bits),
            _ => {
                let kind = event.checked_sub(FIRST_EVENT + 1)?;
                Self::Wait(*WaitKind::ALL.get(usize::from(kind))?, bits)
            }
        })
    }
}

/// The name of an event of the libraries.
#[must_use]
pub fn name(event: u16) -> Option<&'static str> {
    let at = event.checked_sub(FIRST_EVENT)?;
    NAMES.get(usize::from(at)).copied()
}

#[cfg(test)]
mod tests {
    use super::{Allocations, FIRST_EVENT, Record, name};

    #[test]
    fn the_counts_of_the_largest_record_are_separate() {
        let payload = (1023_u64 << 53) | (1023 << 42) | ((1 << 42) - 1);
        let all = Allocations {
            calls: 1023,
            bytes: (1 << 42) - 1,
            frees: 1023,
        };
        let read = Record::from_event(0xfff0, payload as i64);
        assert_eq!(read, Some(Record::Allocations(all)));
        let payload = (63_u64 << 26) | (62 << 20) | ((1 << 20) - 1);
        let few = Allocations {
            calls: 62,
            bytes: (1 << 20) - 1,
            frees: 63,
        };
        let read = Record::from_event(0xfffa, payload as i64);
        assert_eq!(read, Some(Record::Allocations(few)));
    }

    #[test]
    fn other_events_are_none() {
        for event in [0, 1, FIRST_EVENT - 1, FIRST_EVENT + 11, u16::MAX] {
            assert_eq!(Record::from_event(event, 0), None);
            assert_eq!(name(event), None);
        }
        assert_eq!(
            Record::from_event(FIRST_EVENT + 6, -1),
            Some(Record::Holder(-1))
        );
        assert_eq!(Record::from_event(FIRST_EVENT + 6, 1 << 40), None);
    }
}
