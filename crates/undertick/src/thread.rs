//! A thread's rings and the fast path.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence};

use undertick_ring::layout::{SEGMENT_BYTES, control, ring};
use undertick_ring::mark;
use undertick_ring::{DeschedFlag, Kind, Mapped, Memory, Overflow, Record, Writer};

use crate::clock;
use crate::joining::{self, is_on};
use crate::making::{Supply, make_ring};
use crate::process::{self, Session};
use crate::sampled;

/// How the clock is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    Plain,
    Ordered,
    /// Two plain readings; the difference is the payload.
    Pair,
    /// Two serialised readings, the second one the timestamp.
    PairBefore,
    /// Two serialised readings, the first one the timestamp.
    PairAfter,
}

/// The kernel's `struct rseq`, as far as it is needed here.
#[repr(C)]
struct Rseq {
    cpu_id_start: AtomicU32,
    cpu_id: AtomicU32,
    rseq_cs: AtomicU64,
}

/// Stands in where there is none: CPU unknown, never armed.
static NO_RSEQ: Rseq = Rseq {
    cpu_id_start: AtomicU32::new(u32::MAX),
    cpu_id: AtomicU32::new(u32::MAX),
    rseq_cs: AtomicU64::new(0),
};

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    NoRing,
    Making,
    /// Between two events.
    Ready,
    /// In the middle of one: a signal handler must use the other ring.
    Writing,
}

pub(crate) struct OneRing {
    pub(crate) state: State,
    pub(crate) retry_in: u32,
    pub(crate) writer: Writer<Mapped>,
}

impl OneRing {
    pub(crate) const fn new() -> Self {
        // SAFETY: no segment is ever taken from it: the state is NoRing.
        let nowhere = unsafe { Mapped::new(null_mut(), 0) };
        Self {
            state: State::NoRing,
            retry_in: 0,
            writer: Writer::new(nowhere, Overflow::Drop, 0),
        }
    }
}

pub(crate) struct Thread {
    rseq: *const Rseq,
    pub(crate) own: OneRing,
    /// For handlers that interrupt a write to `own`.
    pub(crate) nested: OneRing,
    pub(crate) sampling: sampled::Sampling,
    /// What the switch holds while all is recorded of the session that this
    /// thread has joined.
    pub(crate) on: u32,
    pub(crate) leaving: joining::Leaving,
}

thread_local! {
    pub(crate) static THREAD: UnsafeCell<Thread> = const {
        UnsafeCell::new(Thread {
            rseq: &raw const NO_RSEQ,
            own: OneRing::new(),
            nested: OneRing::new(),
            sampling: sampled::Sampling::NONE,
            on: control::ALL,
            leaving: joining::Leaving::NONE,
        })
    };
}

/// Records one event.
#[inline(always)]
pub fn record(kind: Kind, event: u16, payload: u32, reading: Reading) {
    if kind == Kind::EndOrdered {
        return record_end(event, reading);
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
        return record_first(kind, event, payload, reading);
    };
    // SAFETY: this thread's own, and the thread is running. A signal handler may
    // come in anywhere: it sees the state and touches `own` only when that is
    // Ready.
    unsafe {
        let own = &raw mut (*thread).own;
        if (*own).state == State::Ready
            && session.same_process().load(Ordering::Relaxed) != 0
            && !(*own).writer.needs_segment()
        {
            (&raw mut (*own).state).write_volatile(State::Writing);
            compiler_fence(Ordering::SeqCst);
            let rseq = &*(*thread).rseq;
            put(
                session,
                rseq,
                &mut (*own).writer,
                kind,
                event,
                payload,
                reading,
            );
            compiler_fence(Ordering::SeqCst);
            (&raw mut (*own).state).write_volatile(State::Ready);
            if kind == Kind::BeginOrdered {
                clock::fence();
            }
        } else {
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
            );
        }
    }
}

/// Records the end of a serialised section: the clock is read before anything
/// else is asked, even whether to record.
#[inline(always)]
fn record_end(event: u16, reading: Reading) {
    let thread = THREAD.with(UnsafeCell::get);
    // SAFETY: as `record`.
    unsafe {
        let own = &raw mut (*thread).own;
        if (*own).state == State::Ready
            && let Some(session) = process::current()
        {
            (&raw mut (*own).state).write_volatile(State::Writing);
            compiler_fence(Ordering::SeqCst);
            let readings = read(session, reading);
            compiler_fence(Ordering::SeqCst);
            if joining::is_on_here(thread, session, event)
                && session.same_process().load(Ordering::Relaxed) != 0
                && (&raw const (*own).state).read_volatile() == State::Writing
                && !(*own).writer.needs_segment()
            {
                let rseq = &*(*thread).rseq;
                let kind = Kind::EndOrdered;
                let words = finish(session, rseq, kind, event, 0, reading, readings);
                (*own).writer.put(words);
                compiler_fence(Ordering::SeqCst);
                (&raw mut (*own).state).write_volatile(State::Ready);
            } else {
                record_end_slow(session, thread, event, reading, readings);
            }
        } else if is_on(thread, process::switch(), event) {
            record_first(Kind::EndOrdered, event, 0, reading);
        }
    }
}

/// An end that was read before it was known that recording is off, that this
/// is the first event of a forked child, or that the segment is full.
///
/// # Safety
/// `thread` is the calling thread's.
#[cold]
#[inline(never)]
unsafe fn record_end_slow(
    session: &'static Session,
    thread: *mut Thread,
    event: u16,
    reading: Reading,
    readings: (u64, u64),
) {
    // SAFETY: as `record`.
    unsafe {
        let own = &raw mut (*thread).own;
        // A handler that came in after a fork has left a state of its own, and
        // records later than the reading.
        let interrupted = (&raw const (*own).state).read_volatile() != State::Writing;
        if !interrupted {
            (&raw mut (*own).state).write_volatile(State::Ready);
        }
        if is_on(thread, process::switch(), event) {
            record_slow(
                session,
                thread,
                Job::One {
                    kind: Kind::EndOrdered,
                    event,
                    payload: 0,
                    reading,
                    early: (!interrupted).then_some(readings),
                },
            );
        }
    }
}

/// Records an event with a 64-bit payload.
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
                record_slow(session, thread.get(), Job::Wide { event, value });
            }
        }
    });
}

#[cold]
#[inline(never)]
fn record_first(kind: Kind, event: u16, payload: u32, reading: Reading) {
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
            );
        }
    }
}

/// Records a plain event in the thread's ring, whose state is "writing", or
/// drops and counts it.
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
        if (*own).writer.needs_segment() {
            (&raw mut (*own).state).write_volatile(State::Ready);
            return record_slow(
                session,
                thread,
                Job::One {
                    kind,
                    event,
                    payload,
                    reading: Reading::Plain,
                    early: None,
                },
            );
        }
        let writer = &mut (*own).writer;
        put(session, rseq, writer, kind, event, payload, Reading::Plain);
        compiler_fence(Ordering::SeqCst);
        (&raw mut (*own).state).write_volatile(State::Ready);
    }
}

/// Reads the clock and writes the record. The order matters.
///
/// A plain reading lies between two looks at the mark (the one here and that of
/// the record before), so that the flag is about exactly the time since the
/// record before.
///
/// A serialised reading is for sections so short that the recorder's own
/// instructions show: at the begin of one the clock is read when nothing is left
/// to do but to store it (and a fence after that makes the section start from
/// one and the same state), at the end before anything else is done
/// ([`record_end`]). The begin's look at the mark then comes before its reading:
/// a deschedule between the two is flagged by the record after, a few
/// nanoseconds too late, never too early.
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
    if kind == Kind::BeginOrdered {
        let look = look(session, rseq, reading, (0, 0));
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
            let payload = match reading {
                Reading::PairBefore => readings.0.wrapping_sub(readings.1) as u32,
                _ => payload,
            };
            [readings.0, tail | u64::from(payload)]
        });
    } else {
        writer.put(sample(session, rseq, kind, event, payload, reading));
    }
}

/// The record's two words, the clock read first.
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

/// The record's two words, the clock having been read.
#[inline(always)]
fn finish(
    session: &Session,
    rseq: &Rseq,
    kind: Kind,
    event: u16,
    payload: u32,
    reading: Reading,
    readings: (u64, u64),
) -> [u64; 2] {
    let look = look(session, rseq, reading, readings);
    let payload = match reading {
        Reading::Plain | Reading::Ordered | Reading::PairBefore => payload,
        Reading::Pair | Reading::PairAfter => look.readings.1.wrapping_sub(look.readings.0) as u32,
    };
    Record {
        ts: look.readings.0,
        payload,
        event,
        cpu: look.cpu,
        kind,
        descheduled: look.flag,
    }
    .to_words()
}

/// What a look at the mark found; the readings are new ones if it was gone.
struct Look {
    flag: DeschedFlag,
    cpu: u16,
    readings: (u64, u64),
}

#[inline(always)]
fn look(session: &Session, rseq: &Rseq, reading: Reading, readings: (u64, u64)) -> Look {
    let (mut flag, mut readings) = (DeschedFlag::No, readings);
    if rseq.rseq_cs.load(Ordering::Relaxed) != session.armed {
        (flag, readings) = rearm(session, rseq, reading, readings);
    }
    let cpu = rseq.cpu_id.load(Ordering::Relaxed);
    Look {
        flag,
        cpu: cpu.min(u32::from(Record::CPU_UNKNOWN)) as u16,
        readings,
    }
}

#[inline(always)]
fn read(session: &Session, reading: Reading) -> (u64, u64) {
    if session.clock() != clock::COUNTER {
        return read_system(session, reading);
    }
    match reading {
        Reading::Plain => (clock::counter(), 0),
        Reading::Ordered => (clock::counter_after(), 0),
        Reading::Pair => (clock::counter(), clock::counter()),
        Reading::PairBefore => {
            let (first, second) = clock::counter_pair();
            (second, first)
        }
        Reading::PairAfter => clock::counter_pair(),
    }
}

#[cold]
#[inline(never)]
fn read_system(session: &Session, reading: Reading) -> (u64, u64) {
    let first = clock::system(session.clock());
    match reading {
        Reading::Plain | Reading::Ordered => (first, 0),
        Reading::Pair | Reading::PairAfter => (first, clock::system(session.clock())),
        Reading::PairBefore => (clock::system(session.clock()), first),
    }
}

/// The mark is not ours any more: the kernel cleared it, or someone else uses
/// `rseq_cs`. Sets it again and reads the clock anew, so that the reading lies
/// after what the flag tells of.
#[cold]
#[inline(never)]
fn rearm(
    session: &Session,
    rseq: &Rseq,
    reading: Reading,
    first: (u64, u64),
) -> (DeschedFlag, (u64, u64)) {
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
        early: Option<(u64, u64)>,
    },
    Wide {
        event: u16,
        value: u64,
    },
    /// A sampled span begins; not counted yet.
    Sampled {
        event: u16,
    },
}

/// The first event of a thread or of a forked child, a full segment, a wide
/// event, a handler that interrupted a write.
///
/// # Safety
/// `thread` is the calling thread's.
#[cold]
#[inline(never)]
pub(crate) unsafe fn record_slow(session: &'static Session, thread: *mut Thread, job: Job) {
    // SAFETY: the calling thread's; which ring is free to use is told by the
    // states, which a handler that comes in between leaves as it found them.
    unsafe {
        if session.same_process().load(Ordering::Relaxed) == 0 {
            // First event after fork: rings of our own.
            joining::forget(session, thread);
        }
        let is_nested = matches!((*thread).own.state, State::Writing | State::Making);
        let one = if is_nested {
            &raw mut (*thread).nested
        } else {
            &raw mut (*thread).own
        };
        match (*one).state {
            State::Making | State::Writing => return session.count_lost(),
            State::NoRing if (*one).retry_in > 0 => {
                (*one).retry_in -= 1;
                return session.count_lost();
            }
            State::NoRing => {
                (&raw mut (*one).state).write_volatile(State::Making);
                if !is_nested {
                    arm(session, thread);
                }
                let Some((memory, policy)) = make_ring(session, is_nested) else {
                    (*one).retry_in = 4096;
                    (*one).state = State::NoRing;
                    return session.count_lost();
                };
                let first = session
                    .field_u32(control::OFF_RING_SEGMENTS)
                    .load(Ordering::Relaxed);
                (*one).writer = Writer::new(memory, policy, first);
                session.at_end_of_thread(thread.cast::<c_void>());
            }
            State::Ready => {}
        }
        (&raw mut (*one).state).write_volatile(State::Writing);
        compiler_fence(Ordering::SeqCst);
        let writer = &mut (*one).writer;
        let rseq = &*(*thread).rseq;
        let mut source = Supply {
            session,
            memory: *writer.memory(),
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
                        let room = if writer.needs_segment() {
                            writer.next_segment(&mut source)
                        } else {
                            Ok(())
                        };
                        let (kind, reading) = (Kind::Begin, Reading::Plain);
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
                let room = if writer.needs_segment() {
                    writer.next_segment(&mut source)
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
        if result.is_err() {
            writer
                .memory()
                .field_u64(ring::OFF_DROPPED)
                .store(writer.dropped(), Ordering::Relaxed);
        }
        compiler_fence(Ordering::SeqCst);
        (&raw mut (*one).state).write_volatile(State::Ready);
    }
}

unsafe fn arm(session: &Session, thread: *mut Thread) {
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

/// A key whose destructor closes the rings of a thread that ends.
pub fn make_key() -> Option<libc::pthread_key_t> {
    let mut key = 0;
    // SAFETY: `key` is valid for writing.
    (unsafe { libc::pthread_key_create(&raw mut key, Some(end_of_thread)) } == 0).then_some(key)
}

unsafe extern "C" fn end_of_thread(thread: *mut c_void) {
    let thread = thread.cast::<Thread>();
    let Some(session) = process::current() else {
        return;
    };
    if session.same_process().load(Ordering::Relaxed) == 0 {
        return;
    }
    // SAFETY: called by the thread itself, with what it gave to the key; its
    // static memory is there until after the destructors.
    unsafe {
        (*thread).sampling.forget();
        (*thread).leaving.unmap();
        // After its session a ring has no memory: a store would take some.
        let is_over = session.door().is_some() && process::switch() ^ (*thread).on > control::MODE;
        for one in [&raw mut (*thread).own, &raw mut (*thread).nested] {
            if (*one).state != State::Ready {
                continue;
            }
            let memory = *(*one).writer.memory();
            let bytes = memory.max_segments();
            (*one) = OneRing::new();
            if !is_over {
                memory
                    .field_u32(ring::OFF_STATE)
                    .store(ring::STATE_CLOSED, Ordering::Release);
            }
            libc::munmap(
                memory.base().cast(),
                (bytes as usize + 1) * SEGMENT_BYTES as usize,
            );
        }
    }
}
