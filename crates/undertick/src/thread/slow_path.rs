//! What the fast path does not do: the first event of a thread, a full segment, a wide event, a
//! write that a signal handler interrupted.

use core::sync::atomic::Ordering;

use undertick_ring::layout::ring;
use undertick_ring::{Kind, Record, state};

use super::reading::{Reading, Readings};
use super::record_words::{finish, put, sample};
use super::{Thread, own_memory};
use crate::giving_up;
use crate::process::{self, Session};
use crate::ring_allocation::Supply;
use crate::sampled;
use crate::session_switch::is_on;

/// Records an end whose clock was read before it was known that recording is off, that this is the
/// first event of a forked child, or that the segment is full.
///
/// # Safety
/// `thread` is the calling thread's.
#[cold]
#[inline(never)]
pub(super) unsafe fn record_end_slow(
    session: &'static Session,
    thread: *mut Thread,
    (kind, event, payload, reading): (Kind, u16, u32, Reading),
    readings: Readings,
) {
    // SAFETY: as `thread::record`.
    unsafe {
        let own = &raw mut (*thread).own;
        // A handler that ran after a fork has left its own state, and records later than the
        // reading.
        let interrupted = !state::is_writing((*own).state());
        if !interrupted {
            (*own).set_state(state::READY);
        }
        if is_on(thread, process::switch(), event) {
            record_slow(
                session,
                thread,
                Job::One {
                    kind,
                    event,
                    payload,
                    reading,
                    early: (!interrupted).then_some(readings),
                },
                giving_up::stack_pointer(),
            );
        }
    }
}

#[cold]
#[inline(never)]
pub(super) fn record_first(kind: Kind, event: u16, payload: u32, reading: Reading, here: u32) {
    let Some(session) = process::session() else {
        return;
    };
    let thread = own_memory();
    // SAFETY: as `thread::record`.
    unsafe {
        if is_on(thread, process::switch(), event) {
            record_slow(
                session,
                thread,
                Job::One {
                    kind,
                    event,
                    payload,
                    reading,
                    early: None,
                },
                here,
            );
        }
    }
}

pub(crate) enum Job {
    One {
        kind: Kind,
        event: u16,
        payload: u32,
        reading: Reading,
        /// Taken before it was known that the segment is full.
        early: Option<Readings>,
    },
    Wide {
        event: u16,
        value: u64,
    },
    /// The begin of a sampled span that is not counted yet.
    Sampled {
        event: u16,
    },
}

/// Records the first event of a thread or of a forked child, at a full segment, a wide event, in a
/// handler that interrupted a write, and the first event after a jump out of such a handler. `here`
/// is the stack pointer of the point.
///
/// # Safety
/// `thread` is the calling thread's.
#[cold]
#[inline(never)]
pub(crate) unsafe fn record_slow(
    session: &'static Session,
    thread: *mut Thread,
    job: Job,
    here: u32,
) {
    // SAFETY: the calling thread's; which ring is free to use is told by the
    // states, which a handler that comes in between leaves as it found them.
    unsafe {
        let Some(one) = giving_up::choose(session, thread, here) else {
            return session.count_lost();
        };
        let is_nested = !core::ptr::eq(one, &raw const (*thread).own);
        let Some(pool) = (*one).pool else {
            return session.count_lost();
        };
        (*one).set_state(here);
        let writer = &mut (*one).writer;
        let rseq = &*(*thread).rseq;
        let mut source = Supply {
            session,
            memory: *writer.memory(),
            pool,
            is_first: writer.allocated() == 0,
            spare: (*one).spare,
            index: 0,
            waits: 0,
        };
        let result = match job {
            Job::Wide { event, value } => {
                let words = sample(
                    session,
                    rseq,
                    Kind::Instant,
                    event,
                    value as u32,
                    Reading::Plain,
                );
                writer.put_wide(Record::from_words(words), value, &mut source)
            }
            Job::Sampled { event } => {
                let is_own = !is_nested;
                match sampled::begun(session, thread, writer.memory(), event, is_own, false, true) {
                    0 => Ok(()),
                    stands_for => {
                        let room = if writer.needs_room() {
                            writer.find_room(&mut source)
                        } else {
                            Ok(())
                        };
                        let (kind, reading) = (Kind::Begin, Reading::Waiting);
                        room.map(|()| {
                            put(session, rseq, writer, kind, event, stands_for, reading);
                        })
                    }
                }
            }
            Job::One {
                kind,
                event,
                payload,
                reading,
                early,
            } => {
                let room = if writer.needs_room() {
                    writer.find_room(&mut source)
                } else {
                    Ok(())
                };
                room.map(|()| match early {
                    Some(readings) => writer.put(finish(
                        session, rseq, kind, event, payload, reading, readings,
                    )),
                    None => put(session, rseq, writer, kind, event, payload, reading),
                })
            }
        };
        (*one).spare = source.spare;
        if result.is_err() {
            writer
                .memory()
                .field_u64(ring::OFF_DROPPED)
                .store(writer.dropped(), Ordering::Relaxed);
            writer.finish_dropped();
        } else if state::is_writing((*one).state()) {
            (*one).set_state(state::READY); // a sampled span that was only counted
        }
    }
}
