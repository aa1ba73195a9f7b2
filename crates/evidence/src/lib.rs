//! What took a thread's time while it was measured, from the kernel's events.
//!
//! **Question.** A sample lasted from one reading to another. What else had the CPU, for how long, and how
//! much of that is unknown?
//!
//! ```
//! use undertick_evidence::{Cause, Evidence};
//! use undertick_format::schema::{Kind, off};
//!
//! // Exact times, five ticks in a microsecond; thread 7 is preempted from tick 100 to tick 150.
//! let mut evidence = Evidence::with_error(0, 5);
//! evidence.push(Kind::SwitchOut as i8, 0, 7, 100, off::PREEMPTED);
//! evidence.push(Kind::SwitchIn as i8, 0, 7, 150, 0);
//! evidence.select(7);
//! // The caches are cold afterwards, for at most 5 us: that is too long for a short sample.
//! assert_eq!(evidence.causes_in(90, 160).dropped_for(), Some(Cause::Preempted));
//! let causes = evidence.causes_in(90, 1000);
//! assert_eq!(causes.disturbance(), Some(Cause::Preempted));
//! assert_eq!((causes.by_others(), causes.dropped_for()), (50, None));
//! ```
//!
//! **Method.** Rows of the kernel are pushed in order of time, then samples are asked for thread by
//! thread, in order of their ends. A disturbance has a known time, and an unknown part beside it: a
//! sample is dropped only where that part exceeds a twentieth of what is left of it.
//!
//! **Caveats.** What the kernel lost is counted and not guessed. A thread that no row is about has no
//! causes.

mod cause;
mod pieces;

use std::collections::HashMap;
use std::sync::Arc;

use undertick_format::schema::{Kind, off};

pub use cause::Cause;
use cause::{AFTER_INTERRUPT_US, Hit};
pub use cause::{CAUSES, Timer};
pub use pieces::Piece;

/// Samples that took over this many times the smallest one, with no recorded cause, are counted as
/// unexplained (TRAMS drops them).
pub const UNEXPLAINED_RATIO: f64 = 4.0;

/// Soft interrupts that a system call raises: the network's two, those of block devices and of
/// tasklets.
const RAISED_BY_CALLS: [i32; 4] = [2, 3, 4, 6];
/// A sample stays if, without the disturbance, it is at least this many times as long as the
/// unknown part of the disturbance: 5 %.
const TIMES_BESIDE: i64 = 20;

/// The disturbances and other causes in one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleCauses {
    /// Bit `c` for cause `c`.
    causes: u16,
    /// Ticks inside the sample, by cause: a soft interrupt on top of an interrupt counts for
    /// both.
    pub ticks: [i64; CAUSES],
    /// Ticks inside the sample with at least one disturbance.
    by_others: i64,
    /// Ticks inside the sample with at least one cause of any kind.
    taken: i64,
    /// Most ticks that one disturbance may have taken beyond what is known of it.
    beside: i64,
    /// The sample is too short for the unknown part of its disturbances.
    too_short: bool,
}

impl SampleCauses {
    /// The value for most samples, so that nothing is computed for each of them.
    pub const NOTHING: Self = Self {
        causes: 0,
        ticks: [0; CAUSES],
        by_others: 0,
        taken: 0,
        beside: 0,
        too_short: false,
    };

    /// Whether this cause is in it.
    #[must_use]
    #[inline]
    pub fn has(&self, cause: Cause) -> bool {
        self.causes & (1 << cause as u8) != 0
    }

    /// The disturbance that comes first in [`Cause::ALL`]; `None` if it was not disturbed.
    #[must_use]
    #[inline]
    pub fn disturbance(&self) -> Option<Cause> {
        Cause::ALL
            .into_iter()
            .find(|c| c.disturbs() && self.has(*c))
    }

    /// The disturbance for which the sample is dropped, because too much of it is unknown. For
    /// other samples, [`Self::by_others`] is subtracted.
    #[must_use]
    #[inline]
    pub fn dropped_for(&self) -> Option<Cause> {
        self.disturbance().filter(|_| self.too_short)
    }

    /// Whether a page fault hit it.
    #[must_use]
    #[inline]
    pub fn has_fault(&self) -> bool {
        self.has(Cause::Fault)
    }

    /// Whether the thread was off its CPU, for any reason.
    #[must_use]
    #[inline]
    pub fn was_off(&self) -> bool {
        [
            Cause::Preempted,
            Cause::Switched,
            Cause::Waited,
            Cause::OwnThread,
        ]
        .into_iter()
        .any(|c| self.has(c))
    }

    /// Ticks of the sample during which its thread did not run, waiting included: at most its length.
    #[must_use]
    #[inline]
    pub fn taken(&self) -> i64 {
        self.taken
    }

    /// Ticks of the sample during which its thread had given the CPU away itself.
    #[must_use]
    #[inline]
    pub fn off_cpu(&self) -> i128 {
        [Cause::Waited, Cause::OwnThread]
            .into_iter()
            .map(|cause| i128::from(self.ticks[cause as usize]))
            .sum()
    }

    /// Ticks of the sample during which something else had the CPU, unless the thread gave it
    /// away itself: at most its length.
    #[must_use]
    #[inline]
    pub fn by_others(&self) -> i64 {
        self.by_others
    }

    /// Decides whether the unknown part of the disturbances is too long for a sample of that
    /// length.
    fn judge(&mut self, ticks: i64) {
        let least = self.beside.saturating_mul(TIMES_BESIDE);
        self.too_short = ticks.saturating_sub(self.by_others) < least;
    }

    /// Whether there is no cause.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.causes == 0
    }
}

/// A stretch during which a thread is off its CPU.
#[derive(Clone, Copy, Debug)]
struct Off {
    since: i64,
    cause: Cause,
    /// Another thread of the program has come on that CPU in its place.
    to_own: bool,
}

impl Off {
    /// Ends the stretch at `end`. `from_own`: in place of another thread of the program, or
    /// elsewhere. Which thread follows another on a CPU is known where both are rows of one
    /// switch, with one time. What another program had in between is unknown, so both ends must
    /// be the program's.
    fn until(self, end: i64, from_own: bool, per_us: i64) -> Hit {
        let cause = match self.cause {
            Cause::Preempted if self.to_own && from_own => Cause::OwnThread,
            cause => cause,
        };
        Hit::new(cause, self.since, end, per_us)
    }
}

/// Hits of one thread.
#[derive(Clone, Debug, Default)]
struct Thread {
    hits: Vec<Hit>,
    /// Latest end of the hits up to each one.
    reach: Vec<i64>,
    off: Option<Off>,
    /// End of the last interrupt, and of the soft interrupts that followed it.
    interrupted_until: Option<i64>,
}

/// Position of the last query of a thread: queries come in order.
#[derive(Clone, Copy, Debug, Default)]
struct QueryCursor {
    /// Number of hits that start up to `seen`.
    cursor: usize,
    seen: i64,
}

/// Rows of the kernel, by thread. A copy shares the rows.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    threads: Arc<Vec<Thread>>,
    place_of: Arc<HashMap<i32, usize>>,
    /// The thread of the next samples, and the position in its hits.
    current: Option<usize>,
    query: QueryCursor,
    /// The last thread that left a CPU, and the last that continued on another one, with the
    /// times.
    left: Option<(i32, i64)>,
    migrated: Option<(i32, i64)>,
    /// What is known of the timer's interrupt.
    timer: Option<Timer>,
    /// Bound on the error of the kernel's times against the program's, ticks.
    error: i64,
    /// Ticks in a microsecond, at least 1.
    per_us: i64,
    settled: bool,
    /// Rows that were used.
    pub rows: u64,
    /// Records that the sources lost.
    pub lost: u64,
    /// Time that the hypervisor took from all CPUs, ns.
    pub stolen_ns: u64,
}

impl Evidence {
    /// Makes evidence whose times have errors up to `error` ticks; `per_us` ticks are a
    /// microsecond.
    #[must_use]
    pub fn with_error(error: i64, per_us: i64) -> Self {
        Self {
            error: error.max(0),
            per_us: per_us.max(1),
            ..Self::default()
        }
    }

    /// Adds what the timer's interrupt takes beyond its rows.
    #[must_use]
    pub fn with_timer(self, timer: Option<Timer>) -> Self {
        Self { timer, ..self }
    }

    /// Adds a row of the kernel. `ts` is in ticks; `payload` depends on `kind` (a reason, or a length in ticks).
    /// Rows must come in order of time.
    pub fn push(&mut self, kind: i8, event: i32, tid: i32, ts: i64, payload: i64) {
        let Some(kind) = Kind::from_code(kind) else {
            return;
        };
        let per_us = self.per_us;
        let hit =
            |cause: Cause, ticks: i64| Hit::new(cause, ts, ts.saturating_add(ticks.max(0)), per_us);
        let hit = match kind {
            Kind::SwitchOut => {
                let cause = match payload {
                    off::WAITS | off::BLOCKED | off::STOPPED => Cause::Waited,
                    off::PREEMPTED => Cause::Preempted,
                    _ => Cause::Switched,
                };
                self.thread(tid).off = Some(Off {
                    since: ts,
                    cause,
                    to_own: false,
                });
                self.left = Some((tid, ts));
                self.rows += 1;
                return;
            }
            Kind::SwitchIn => {
                let is_elsewhere = self.migrated == Some((tid, ts));
                let left = (self.left.take()).filter(|&(other, then)| then == ts && other != tid);
                if let Some(off) = left.and_then(|(other, _)| self.thread(other).off.as_mut()) {
                    off.to_own = true;
                }
                match self.thread(tid).off.take() {
                    Some(off) => off.until(ts, left.is_some() || is_elsewhere, per_us),
                    None => return,
                }
            }
            Kind::Migrate => {
                self.migrated = Some((tid, ts));
                hit(Cause::Migrated, 0)
            }
            Kind::Interrupt => {
                let hit = hit(Cause::Interrupt, payload);
                let until = &mut self.thread(tid).interrupted_until;
                *until = (*until).max(Some(hit.end));
                match self.timer {
                    Some(timer) => timer.widen(event, hit),
                    None => hit,
                }
            }
            Kind::SoftInterrupt => {
                let after = self.per_us.saturating_mul(AFTER_INTERRUPT_US);
                let until = &mut self.thread(tid).interrupted_until;
                let follows = until.is_some_and(|end| ts <= end.saturating_add(after));
                if follows || !RAISED_BY_CALLS.contains(&event) {
                    let hit = hit(Cause::SoftInterrupt, payload);
                    if follows {
                        *until = (*until).max(Some(hit.end));
                    }
                    hit
                } else {
                    hit(Cause::OwnSoftInterrupt, payload)
                }
            }
            Kind::Fault => hit(Cause::Fault, payload),
            Kind::Steal => {
                self.stolen_ns = self.stolen_ns.saturating_add(payload.max(0).unsigned_abs());
                return;
            }
            Kind::KernelGap => {
                self.lost = self.lost.saturating_add(payload.max(0).unsigned_abs());
                return;
            }
            _ => return,
        };
        self.rows += 1;
        self.settled = false;
        self.thread(tid).hits.push(hit);
    }

    fn thread(&mut self, tid: i32) -> &mut Thread {
        let threads = Arc::make_mut(&mut self.threads);
        let place = *Arc::make_mut(&mut self.place_of)
            .entry(tid)
            .or_insert_with(|| {
                threads.push(Thread::default());
                threads.len() - 1
            });
        &mut threads[place]
    }

    /// A number of microseconds in ticks.
    #[must_use]
    pub fn ticks_of_us(&self, us: i64) -> i64 {
        us.saturating_mul(self.per_us)
    }

    /// Bound on the error of the kernel's times against the program's, ticks.
    #[must_use]
    #[inline]
    pub fn error(&self) -> i64 {
        self.error
    }

    /// Whether any row says something of a thread.
    #[must_use]
    #[inline]
    pub fn is_there(&self) -> bool {
        self.rows > 0
    }

    /// Announces that the next samples are from this thread.
    pub fn select(&mut self, tid: i32) {
        self.settle();
        self.current = self.place_of.get(&tid).copied();
        self.query = QueryCursor::default();
    }

    /// Prepares the rows for queries: call it, or [`Self::select`], after the last [`Self::push`].
    pub fn settle(&mut self) {
        if self.settled {
            return;
        }
        let per_us = self.per_us;
        for thread in Arc::make_mut(&mut self.threads) {
            if let Some(off) = thread.off.take() {
                // The thread never came back.
                thread.hits.push(off.until(i64::MAX, true, per_us));
            }
            thread.hits.sort_by_key(|hit| hit.start);
            let mut latest = i64::MIN;
            thread.reach = (thread.hits.iter())
                .map(|hit| {
                    latest = latest.max(hit.end);
                    latest
                })
                .collect();
        }
        self.settled = true;
    }

    /// Whether anything may have hit the selected thread between these readings.
    ///
    /// # Panics
    /// If rows were pushed after the last [`Self::select`] or [`Self::settle`].
    #[must_use]
    #[inline]
    pub fn is_anything(&self, start: i64, end: i64) -> bool {
        let Some(place) = self.current else {
            return false;
        };
        let thread = &self.threads[place];
        let until = end.saturating_add(self.error);
        let begun = thread.hits.partition_point(|hit| hit.start <= until);
        begun > 0 && thread.reach[begun - 1] >= start.saturating_sub(self.error)
    }

    /// The causes in the sample from `start` to `end` of the selected thread. What may lie in it,
    /// because the kernel's times are not exact, counts.
    ///
    /// # Panics
    /// If rows were pushed after the last [`Self::select`] or [`Self::settle`].
    #[inline]
    pub fn causes_in(&mut self, start: i64, end: i64) -> SampleCauses {
        let error = self.error;
        match self.current {
            Some(place) => {
                let mut found = self.threads[place].causes_in(&mut self.query, start, end, error);
                if !found.is_empty() {
                    found.judge(end.saturating_sub(start));
                }
                found
            }
            None => SampleCauses::NOTHING,
        }
    }
}

impl Thread {
    #[inline]
    fn causes_in(&self, query: &mut QueryCursor, start: i64, end: i64, error: i64) -> SampleCauses {
        let until = end.saturating_add(error);
        if until < query.seen {
            query.cursor = 0;
        }
        query.seen = until;
        // Samples end in order, so this moves by a few hits at a time.
        query.cursor += if query.cursor == 0 {
            self.hits.partition_point(|hit| hit.start <= until)
        } else {
            let rest = &self.hits[query.cursor..];
            rest.iter().take_while(|hit| hit.start <= until).count()
        };
        let from = start.saturating_sub(error);
        let mut found = SampleCauses::NOTHING;
        let mut at = query.cursor;
        while at > 0 && self.reach[at - 1] >= from {
            at -= 1;
            let hit = &self.hits[at];
            if hit.end >= from {
                found.causes |= 1 << hit.cause as u8;
                found.beside = found.beside.max(hit.beside);
                let inside = hit.end.min(end).saturating_sub(hit.start.max(start));
                found.ticks[hit.cause as usize] += inside.max(0);
            }
        }
        if !found.is_empty() {
            let hits = || self.hits[at..query.cursor].iter();
            found.taken = covered(hits(), start, end);
            found.by_others = covered(hits().filter(|hit| hit.cause.disturbs()), start, end);
        }
        found
    }
}

/// Ticks from `start` to `end` that at least one of the hits covers; hits are ordered by their
/// starts.
fn covered<'a>(hits: impl Iterator<Item = &'a Hit>, start: i64, end: i64) -> i64 {
    let mut until = start;
    let mut ticks = 0_i64;
    for hit in hits {
        let (from, to) = (hit.start.max(until), hit.end.min(end));
        if to > from {
            ticks = ticks.saturating_add(to.saturating_sub(from));
            until = to;
        }
    }
    ticks
}

#[cfg(test)]
mod tests;
