//! A thread's rings and the fast path.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence};

use undertick_ring::layout::{control, ring};
use undertick_ring::mark;
use undertick_ring::{DeschedFlag, Kind, Mapped, Overflow, Record, Writer, state};

use crate::clock;
use crate::giving_up;
use crate::pool::{Pool, close_ring};
use crate::process::{self, Session};
use crate::ring_allocation::Supply;
use crate::sampled;
use crate::session_switch::{self, is_on};

/// How the clock is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Waits for nothing.
    Plain,
    /// Waits for everything before it; used for spans.
    Waiting,
    /// Serialised, with as little as possible between it and the work.
    Ordered,
    /// Two waiting readings; the difference is the payload.
    Pair,
    /// Two serialised readings, the second one the timestamp.
    PairBefore,
    /// Two serialised readings, the first one the timestamp.
    PairAfter,
}

/// The kernel's `struct rseq`, limited to the fields needed here.
#[repr(C)]
struct Rseq {
    cpu_id_start: AtomicU32,
    cpu_id: AtomicU32,
    rseq_cs: AtomicU64,
}

/// Replacement where there is none: CPU unknown, never armed.
static NO_RSEQ: Rseq = Rseq {
    cpu_id_start: AtomicU32::new(u32::MAX),
    cpu_id: AtomicU32::new(u32::MAX),
    rseq_cs: AtomicU64::new(0),
};

pub(crate) struct OneRing {
    pub(crate) retry_in: u32,
    /// The pool of the ring; `None`: there is no ring.
    pub(crate) pool: Option<&'static Pool>,
    /// A segment that was taken but got no pages.
    pub(crate) spare: Option<u32>,
    pub(crate) writer: Writer<Mapped>,
}

impl OneRing {
    pub(crate) const fn new() -> Self {
        // SAFETY: no segment is ever taken from it: the state is NoRing.
        let nowhere = unsafe { Mapped::new(null_mut(), null_mut(), 0, 0) };
        Self {
            retry_in: 0,
            pool: None,
            spare: None,
            writer: Writer::new(nowhere, Overflow::Drop, 0),
        }
    }

    /// Returns the state that an interrupting handler examines: see [`undertick_ring::state`].
    #[inline(always)]
    pub(crate) fn state(&self) -> u32 {
        // SAFETY: a field of our own.
        unsafe { (&raw const self.writer.state).read_volatile() }
    }

    #[inline(always)]
    pub(crate) fn set_state(&mut self, state: u32) {
        compiler_fence(Ordering::SeqCst);
        // SAFETY: as above.
        unsafe { (&raw mut self.writer.state).write_volatile(state) };
        compiler_fence(Ordering::SeqCst);
    }

    /// Sets the state and returns the previous one, in one instruction.
    pub(crate) fn swap_state(&mut self, state: u32) -> u32 {
        // SAFETY: a field of our own, aligned.
        let field = unsafe { AtomicU32::from_ptr(&raw mut self.writer.state) };
        let was = field.swap(state, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        was
    }

    /// Marks the ring as being written by the frame that executes this; a handler that interrupts
    /// it uses the other ring. The low half of the stack pointer shows later whether that frame
    /// still exists.
    #[inline(always)]
    pub(crate) fn enter(&mut self) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: one store to a field of our own.
        unsafe {
            core::arch::asm!(
                "mov dword ptr [{ring} + {state}], esp",
                ring = in(reg) &raw mut *self,
                state = const core::mem::offset_of!(Self, writer.state),
                options(nostack, preserves_flags)
            );
        }
        #[cfg(not(target_arch = "x86_64"))]
        self.set_state(giving_up::stack_pointer());
        compiler_fence(Ordering::SeqCst);
    }
}

pub(crate) struct Thread {
    rseq: *const Rseq,
    pub(crate) own: OneRing,
    /// The ring of handlers that interrupt a write to `own`.
    pub(crate) nested: OneRing,
    pub(crate) sampling: sampled::Sampling,
    /// Value of the switch while all events are recorded of the session that this thread has
    /// joined.
    pub(crate) on: u32,
    pub(crate) leaving: session_switch::Leaving,
    /// Number of points that found `own` being written.
    pub(crate) interrupted: u32,
    /// Number of times that the thread's destructor was called.
    pub(crate) ends: u32,
}

thread_local! {
    pub(crate) static THREAD: UnsafeCell<Thread> = const {
        UnsafeCell::new(Thread {
            rseq: &raw const NO_RSEQ,
            own: OneRing::new(),
            nested: OneRing::new(),
            sampling: sampled::Sampling::NONE,
            on: control::ALL,
            leaving: session_switch::Leaving::NONE,
            interrupted: 0,
            ends: 0,
        })
    };
}

/// Records one event.
#[inline(always)]
pub fn record(kind: Kind, event: u16, payload: u32, reading: Reading) {
    if is_first(kind, reading) {
        return record_end(kind, event, payload, reading);
    }
    let on = process::switch();
    if on == control::NONE {
        return; // before the thread's own memory is looked for
    }
    // Only the address comes out of the closure: with the work in it, `with` is
    // not inlined and an event costs 2.5 ns more.
    let thread = THREAD.with(UnsafeCell::get);
    // SAFETY: the calling thread's.
    if !unsafe { is_on(thread, on, event) } {
        return;
    }
    let Some(session) = process::current() else {
        return record_first(kind, event, payload, reading, giving_up::stack_pointer());
    };
    // SAFETY: this thread's own, and the thread is running. A signal handler may
    // come in anywhere: it sees the state and touches `own` only when that is
    // Ready.
    unsafe {
        let own = &raw mut (*thread).own;
        if (*own).state() == state::READY && session.is_surely_same_process() {
            (*own).enter();
            // Not earlier: a handler that interrupts before this may fill the segment.
            if !(*own).writer.needs_room() {
                let rseq = &*(*thread).rseq;
                let writer = &mut (*own).writer;
                put(session, rseq, writer, kind, event, payload, reading);
                if kind == Kind::BeginOrdered {
                    clock::fence();
                }
                return;
            }
            (*own).set_state(state::READY);
        }
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
            giving_up::stack_pointer(),
        );
    }
}

/// Returns whether the clock is read before any other check: at the end of a span.
#[inline(always)]
fn is_first(kind: Kind, reading: Reading) -> bool {
    kind == Kind::EndOrdered || (kind == Kind::End && reading == Reading::Waiting)
}

/// Returns whether the clock is read as the last step before the store: at the begin of a span.
#[inline(always)]
fn is_last(kind: Kind, reading: Reading) -> bool {
    kind == Kind::BeginOrdered || (kind == Kind::Begin && reading == Reading::Waiting)
}

/// Records the end of a span: the clock is read before any other check, even whether to record.
#[inline(always)]
fn record_end(kind: Kind, event: u16, payload: u32, reading: Reading) {
    let thread = THREAD.with(UnsafeCell::get);
    // SAFETY: as `record`.
    unsafe {
        let own = &raw mut (*thread).own;
        if (*own).state() == state::READY
            && let Some(session) = process::current()
            // Points that are switched off must not read the clock: the difference is their cost.
            && (reading != Reading::Waiting || session_switch::is_on_here(thread, session, event))
        {
            (*own).enter();
            let readings = read(session, reading);
            compiler_fence(Ordering::SeqCst);
            if session_switch::is_on_here(thread, session, event)
                && session.is_surely_same_process()
                && state::is_writing((*own).state())
                && !(*own).writer.needs_room()
            {
                let rseq = &*(*thread).rseq;
                let words = finish(session, rseq, kind, event, payload, reading, readings);
                (*own).writer.put(words);
            } else {
                let end = (kind, event, payload, reading);
                record_end_slow(session, thread, end, readings);
            }
        } else if is_on(thread, process::switch(), event) {
            let here = giving_up::stack_pointer();
            record_first(kind, event, payload, reading, here);
        }
    }
}

/// Records an end whose clock was read before it was known that recording is off, that this is the
/// first event of a forked child, or that the segment is full.
///
/// # Safety
/// `thread` is the calling thread's.
#[cold]
#[inline(never)]
unsafe fn record_end_slow(
    session: &'static Session,
    thread: *mut Thread,
    (kind, event, payload, reading): (Kind, u16, u32, Reading),
    readings: Readings,
) {
    // SAFETY: as `record`.
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

/// Records an event with a 64-bit payload.
#[inline(always)]
pub fn record_wide(event: u16, value: u64) {
    let on = process::switch();
    if on == control::NONE {
        return;
    }
    THREAD.with(|thread| {
        // SAFETY: as `record`; the slow path looks at every state.
        unsafe {
            if is_on(thread.get(), on, event)
                && let Some(session) = process::session()
            {
                let here = giving_up::stack_pointer();
                record_slow(session, thread.get(), Job::Wide { event, value }, here);
            }
        }
    });
}

#[cold]
#[inline(never)]
fn record_first(kind: Kind, event: u16, payload: u32, reading: Reading, here: u32) {
    let Some(session) = process::session() else {
        return;
    };
    let thread = THREAD.with(UnsafeCell::get);
    // SAFETY: as `record`.
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

/// Records an end of a span in the thread's ring, whose state is "writing", or drops and counts it.
///
/// # Safety
/// `thread` is the calling thread's.
#[inline(always)]
pub(crate) unsafe fn put_in_own(
    session: &'static Session,
    thread: *mut Thread,
    kind: Kind,
    event: u16,
    payload: u32,
) {
    // SAFETY: handlers that come in leave a ring alone that is being written.
    unsafe {
        let own = &raw mut (*thread).own;
        let rseq = &*(*thread).rseq;
        if (*own).writer.needs_room() {
            (*own).set_state(state::READY);
            return record_slow(
                session,
                thread,
                Job::One {
                    kind,
                    event,
                    payload,
                    reading: Reading::Waiting,
                    early: None,
                },
                giving_up::stack_pointer(),
            );
        }
        let writer = &mut (*own).writer;
        put(
            session,
            rseq,
            writer,
            kind,
            event,
            payload,
            Reading::Waiting,
        );
    }
}

/// Reads the clock and writes the record. The order matters.
///
/// A reading of an event, a next or a pair lies between two checks of the mark (the one here and
/// that of the previous record), so that the flag describes exactly the time since the previous
/// record.
///
/// Almost nothing of the recorder lies inside a span, because its code and data may be cold. At the
/// begin of a span the clock is read as the last step before the store (and a fence after a
/// serialised reading makes the span start from one and the same state). At the end it is read
/// before anything else is done ([`record_end`]). So at a begin the check of the mark precedes the
/// reading: a deschedule between the two is flagged by the next record, a few nanoseconds too late,
/// never too early.
#[inline(always)]
fn put(
    session: &Session,
    rseq: &Rseq,
    writer: &mut Writer<Mapped>,
    kind: Kind,
    event: u16,
    payload: u32,
    reading: Reading,
) {
    if is_last(kind, reading) {
        let look = look(session, rseq, reading, Readings::NONE);
        let tail = Record {
            ts: 0,
            payload,
            event,
            cpu: look.cpu,
            kind,
            descheduled: look.flag,
        }
        .to_words()[1];
        writer.put_last(|| {
            let readings = read(session, reading);
            let more = match reading {
                Reading::PairBefore => readings.first.wrapping_sub(readings.second) as u32,
                _ => payload,
            };
            [readings.first, tail | u64::from(more)]
        });
    } else {
        writer.put(sample(session, rseq, kind, event, payload, reading));
    }
}

/// Makes the record's two words, with the clock read first.
#[inline(always)]
fn sample(
    session: &Session,
    rseq: &Rseq,
    kind: Kind,
    event: u16,
    payload: u32,
    reading: Reading,
) -> [u64; 2] {
    let readings = read(session, reading);
    compiler_fence(Ordering::SeqCst);
    finish(session, rseq, kind, event, payload, reading, readings)
}

/// Makes the record's two words, from a clock that was already read.
#[inline(always)]
fn finish(
    session: &Session,
    rseq: &Rseq,
    kind: Kind,
    event: u16,
    payload: u32,
    reading: Reading,
    readings: Readings,
) -> [u64; 2] {
    let look = look(session, rseq, reading, readings);
    let payload = match reading {
        Reading::Plain | Reading::Waiting | Reading::Ordered | Reading::PairBefore => payload,
        Reading::Pair | Reading::PairAfter => {
            look.readings.second.wrapping_sub(look.readings.first) as u32
        }
    };
    Record {
        ts: look.readings.first,
        payload,
        event,
        cpu: look.cpu,
        kind,
        descheduled: look.flag,
    }
    .to_words()
}

/// The clock readings of a point.
#[derive(Clone, Copy)]
pub(crate) struct Readings {
    /// The timestamp.
    first: u64,
    /// The other reading of a pair, otherwise 0.
    second: u64,
    /// The CPU, if the timestamp's own instruction gave it.
    cpu: Option<u32>,
}

impl Readings {
    const NONE: Self = Self::new(0, 0);

    #[inline(always)]
    const fn new(first: u64, second: u64) -> Self {
        Self {
            first,
            second,
            cpu: None,
        }
    }
}

/// Result of a check of the mark; the readings are new ones if it was gone.
struct Look {
    flag: DeschedFlag,
    cpu: u16,
    readings: Readings,
}

#[inline(always)]
fn look(session: &Session, rseq: &Rseq, reading: Reading, readings: Readings) -> Look {
    let (mut flag, mut readings) = (DeschedFlag::No, readings);
    if rseq.rseq_cs.load(Ordering::Relaxed) != session.armed {
        (flag, readings) = rearm(session, rseq, reading, readings);
    }
    let cpu = match readings.cpu {
        Some(cpu) => cpu,
        None => rseq.cpu_id.load(Ordering::Relaxed),
    };
    Look {
        flag,
        cpu: cpu.min(u32::from(Record::CPU_UNKNOWN)) as u16,
        readings,
    }
}

#[inline(always)]
fn read(session: &Session, reading: Reading) -> Readings {
    if session.clock() != clock::COUNTER {
        let (first, second) = read_system(session, reading);
        return Readings::new(first, second);
    }
    match reading {
        Reading::Plain => Readings::new(clock::counter(), 0),
        Reading::Ordered => Readings::new(clock::counter_after().0, 0),
        Reading::Waiting => {
            let (first, cpu) = clock::counter_after();
            Readings {
                cpu,
                ..Readings::new(first, 0)
            }
        }
        Reading::Pair => {
            let (first, _) = clock::counter_after();
            let (second, cpu) = clock::counter_after();
            Readings {
                cpu,
                ..Readings::new(first, second)
            }
        }
        Reading::PairBefore => {
            let (first, second) = clock::counter_pair();
            Readings::new(second, first)
        }
        Reading::PairAfter => {
            let (first, second) = clock::counter_pair();
            Readings::new(first, second)
        }
    }
}

#[cold]
#[inline(never)]
fn read_system(session: &Session, reading: Reading) -> (u64, u64) {
    let first = clock::system(session.clock());
    match reading {
        Reading::Plain | Reading::Waiting | Reading::Ordered => (first, 0),
        Reading::Pair | Reading::PairAfter => (first, clock::system(session.clock())),
        Reading::PairBefore => (clock::system(session.clock()), first),
    }
}

/// Handles a mark that is not ours any more: the kernel cleared it, or other code uses `rseq_cs`.
/// Sets it again and reads the clock again, so that the reading lies after what the flag describes.
#[cold]
#[inline(never)]
fn rearm(
    session: &Session,
    rseq: &Rseq,
    reading: Reading,
    first: Readings,
) -> (DeschedFlag, Readings) {
    if core::ptr::eq(rseq, &raw const NO_RSEQ) {
        return (DeschedFlag::Unknown, first);
    }
    let (mut flag, mut readings) = (DeschedFlag::No, first);
    for _ in 0..16 {
        match rseq.rseq_cs.load(Ordering::Relaxed) {
            seen if seen == session.armed => break,
            0 => flag = DeschedFlag::Yes,
            _ if flag == DeschedFlag::No => flag = DeschedFlag::Unknown,
            _ => {}
        }
        rseq.rseq_cs.store(session.armed, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        readings = read(session, reading);
        compiler_fence(Ordering::SeqCst);
    }
    (flag, readings)
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

/// Sets the scheduler's mark for the calling thread.
///
/// # Safety
/// `thread` is the calling thread's.
pub(crate) unsafe fn arm(session: &Session, thread: *mut Thread) {
    if let Some(area) = mark::area() {
        let rseq = area.cast::<Rseq>();
        // SAFETY: the C library's registered area of this thread.
        unsafe {
            if ((*rseq).cpu_id.load(Ordering::Relaxed) as i32) >= 0 {
                (*rseq).rseq_cs.store(session.armed, Ordering::Relaxed);
                (*thread).rseq = rseq;
            }
        }
    }
}

/// Maximum number of times that the destructors of a thread are called.
const DESTRUCTOR_ROUNDS: u32 = 4;

/// Makes a key whose destructor closes the rings of a thread that ends.
pub fn make_key() -> Option<libc::pthread_key_t> {
    let mut key = 0;
    // SAFETY: `key` is valid for writing.
    (unsafe { libc::pthread_key_create(&raw mut key, Some(end_of_thread)) } == 0).then_some(key)
}

/// Ends a thread: its rings are complete. Later destructors may record, so it asks to be called
/// again, as often as destructors are (`PTHREAD_DESTRUCTOR_ITERATIONS`); events after the last time
/// are counted as lost. A handler may run at any instruction: nothing is unmapped that it could
/// still find.
unsafe extern "C" fn end_of_thread(thread: *mut c_void) {
    let thread = thread.cast::<Thread>();
    let Some(session) = process::current() else {
        return;
    };
    // SAFETY: called by the thread itself, with what it gave to the key; its
    // static memory is there until after the destructors.
    unsafe {
        (*thread).ends += 1;
        let is_last = (*thread).ends >= DESTRUCTOR_ROUNDS;
        if !session.is_same_process() {
            session_switch::forget(session, thread);
        }
        let both = [&raw mut (*thread).own, &raw mut (*thread).nested];
        for one in both {
            let was = (*one).swap_state(state::ENDED);
            giving_up::account(session, one, was);
        }
        (*thread).sampling.forget(session);
        (*thread).leaving.let_go(session);
        for one in both {
            let (memory, pool) = (*(*one).writer.memory(), (*one).pool);
            let mut none = OneRing::new();
            none.writer.state = state::ENDED;
            one.write_volatile(none);
            compiler_fence(Ordering::SeqCst);
            let Some(pool) = pool else {
                continue;
            };
            close_ring(session, &memory, giving_up::is_joined(session, thread));
            session.wiped().leave(pool);
        }
        if !is_last && session.at_end_of_thread(thread.cast::<c_void>()) {
            for one in both.into_iter().rev() {
                (*one).set_state(state::NO_RING);
            }
        }
    }
}
