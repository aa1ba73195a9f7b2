//! What hit a thread while it was being measured, by the kernel's own events.

use std::collections::HashMap;
use std::sync::Arc;

use undertick_trace::manifest::InterruptCost;
use undertick_trace::schema::Kind;

/// Things that fall into a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Another program ran on the CPU although the thread could have.
    Preempted,
    /// Taken off the CPU, and not known why.
    Switched,
    Interrupt,
    SoftInterrupt,
    /// It went on on another CPU.
    Migrated,
    Fault,
    /// It gave its CPU away itself: it waited, slept or yielded.
    Waited,
    /// A soft interrupt that its own system call raised: a packet that it sends to itself is
    /// delivered there.
    OwnSoftInterrupt,
    /// Another thread of the program ran on the CPU although this one could have.
    OwnThread,
}

/// Samples over this many times the least that nothing explains are counted
/// (TRAMS drops them).
pub(crate) const UNEXPLAINED_RATIO: f64 = 4.0;

/// How many causes there are.
pub(crate) const CAUSES: usize = 9;

/// Soft interrupts that a system call raises: the network's two, block devices' and tasklets'.
const RAISED_BY_CALLS: [i32; 4] = [2, 3, 4, 6];
/// A soft interrupt that starts at most so long after an interrupt, or after another one that
/// did, was raised by that, us.
const AFTER_INTERRUPT_US: i64 = 2;
/// What a disturbance costs beside the time that the kernel's events give it: entry and exit of
/// an interrupt, where that was not measured, us.
const INTERRUPT_BESIDE_US: i64 = 1;
/// Two switches, or a move to another CPU, and the caches that are cold after it, us.
const SWITCH_BESIDE_US: i64 = 5;
/// A sample keeps its place if without the disturbance it is at least this many times as long as
/// what is not known of that: 5 %.
const TIMES_BESIDE: i64 = 20;

impl Cause {
    /// In the order in which a sample that several fell into is put down to one.
    pub(crate) const ALL: [Self; CAUSES] = [
        Self::Preempted,
        Self::Switched,
        Self::Interrupt,
        Self::SoftInterrupt,
        Self::Migrated,
        Self::Fault,
        Self::Waited,
        Self::OwnSoftInterrupt,
        Self::OwnThread,
    ];

    /// As the report calls it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Preempted => "preempted",
            Self::Switched => "switched",
            Self::Interrupt => "interrupt",
            Self::SoftInterrupt => "softirq",
            Self::Migrated => "migration",
            Self::Fault => "fault",
            Self::Waited => "waited",
            Self::OwnSoftInterrupt => "own softirq",
            Self::OwnThread => "own thread",
        }
    }

    /// Whether it disturbs a sample from outside. Waiting, also for a CPU that another of its
    /// threads has, page faults and what its own calls raise are what the program does: they
    /// are flagged.
    pub(crate) const fn disturbs(self) -> bool {
        !matches!(
            self,
            Self::Fault | Self::Waited | Self::OwnSoftInterrupt | Self::OwnThread
        )
    }

    /// What it costs a sample beside the time that the kernel's events give it, us.
    const fn beside_us(self) -> i64 {
        match self {
            Self::Interrupt | Self::SoftInterrupt => INTERRUPT_BESIDE_US,
            Self::Preempted | Self::Switched | Self::Migrated => SWITCH_BESIDE_US,
            Self::Fault | Self::Waited | Self::OwnSoftInterrupt | Self::OwnThread => 0,
        }
    }
}

/// Time during which something else had the thread's CPU.
#[derive(Clone, Copy, Debug)]
struct Hit {
    start: i64,
    /// The same as `start` where only a point is known.
    end: i64,
    cause: Cause,
    /// Ticks of it that may lie outside of that.
    beside: i64,
}

/// What the timer's interrupt takes beside the time that rows of the kernel give it, ticks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timer {
    event: i32,
    before: i64,
    after: i64,
    spread: i64,
}

impl Timer {
    pub(crate) fn new(cost: &InterruptCost, ns_per_tick: f64) -> Self {
        // A manifest may say anything: at most a second, and nothing below 0.
        let ticks = |ns: f64| (ns.clamp(0.0, 1e9) / ns_per_tick).round() as i64;
        Self {
            event: cost.event,
            before: ticks(cost.before_ns.value),
            after: ticks(cost.after_ns.value),
            spread: ticks(cost.spread_ns),
        }
    }

    /// The interrupt with all that it takes. Of others nothing is known but that they may take
    /// as much beside.
    fn widen(self, event: i32, hit: Hit, per_us: i64) -> Hit {
        if event == self.event {
            Hit {
                start: hit.start.saturating_sub(self.before),
                end: hit.end.saturating_add(self.after),
                beside: self.spread.max(per_us.saturating_mul(INTERRUPT_BESIDE_US)),
                ..hit
            }
        } else {
            let beside = self.before.saturating_add(self.after).max(hit.beside);
            Hit { beside, ..hit }
        }
    }
}

/// What fell into one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Bit `c` for cause `c`.
    causes: u16,
    /// Ticks inside the sample, by cause: a soft interrupt on top of an interrupt counts
    /// for both.
    pub(crate) ticks: [i64; CAUSES],
    /// Ticks inside the sample during which any disturbance was there.
    by_others: i64,
    /// The same of all causes.
    taken: i64,
    /// The most ticks that one disturbance may have taken beside what is known of it.
    beside: i64,
    /// It is too short for what is not known of its disturbances.
    too_short: bool,
}

impl Found {
    /// Of most samples, so that nothing is filled in for each of them.
    pub(crate) const NOTHING: Self = Self {
        causes: 0,
        ticks: [0; CAUSES],
        by_others: 0,
        taken: 0,
        beside: 0,
        too_short: false,
    };

    pub(crate) fn has(&self, cause: Cause) -> bool {
        self.causes & (1 << cause as u8) != 0
    }

    /// What disturbed the sample.
    pub(crate) fn disturbance(&self) -> Option<Cause> {
        Cause::ALL
            .into_iter()
            .find(|c| c.disturbs() && self.has(*c))
    }

    /// What the sample is dropped for: a disturbance of which too much is not known. From
    /// others its time is taken off ([`Self::by_others`]).
    pub(crate) fn dropped_for(&self) -> Option<Cause> {
        self.disturbance().filter(|_| self.too_short)
    }

    /// Whether the thread was off its CPU, for whatever reason.
    pub(crate) fn was_off(&self) -> bool {
        [
            Cause::Preempted,
            Cause::Switched,
            Cause::Waited,
            Cause::OwnThread,
        ]
        .into_iter()
        .any(|c| self.has(c))
    }

    /// Ticks of the sample that it did not run, waiting included: at most its length.
    pub(crate) fn taken(&self) -> i64 {
        self.taken
    }

    /// Ticks of the sample that something else had the CPU, which the thread did not give
    /// away itself: at most its length.
    pub(crate) fn by_others(&self) -> i64 {
        self.by_others
    }

    /// Whether what is not known of the disturbances is too much for a sample of that length.
    fn judge(&mut self, ticks: i64) {
        let least = self.beside.saturating_mul(TIMES_BESIDE);
        self.too_short = ticks.saturating_sub(self.by_others) < least;
    }

    /// Whether there is anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.causes == 0
    }
}

/// A thread is off its CPU.
#[derive(Clone, Copy, Debug)]
struct Off {
    since: i64,
    cause: Cause,
    /// Another thread of the program has come on there in its place.
    to_own: bool,
}

impl Off {
    /// Until then; `from_own`: in place of another thread of the program, or elsewhere. Who
    /// comes on after who was on the CPU is known where both are rows of one switch, of one
    /// time; what another program had in between is not known, so both ends must be of ours.
    fn until(self, end: i64, from_own: bool, per_us: i64) -> Hit {
        let cause = match self.cause {
            Cause::Preempted if self.to_own && from_own => Cause::OwnThread,
            cause => cause,
        };
        Hit {
            start: self.since,
            end,
            cause,
            beside: cause.beside_us().saturating_mul(per_us),
        }
    }
}

/// Hits of one thread.
#[derive(Clone, Debug, Default)]
struct Thread {
    hits: Vec<Hit>,
    /// Latest end of the hits up to each.
    reach: Vec<i64>,
    off: Option<Off>,
    /// End of the last interrupt, and of the soft interrupts that followed it.
    interrupted_until: Option<i64>,
}

/// Where the last question about a thread was: they come in order.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// Hits that start up to `seen`.
    cursor: usize,
    seen: i64,
}

/// Rows of the kernel, by thread. A copy shares the rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    threads: Arc<Vec<Thread>>,
    place_of: Arc<HashMap<i32, usize>>,
    /// The thread whose samples come now, and how far along it.
    current: Option<usize>,
    at: Place,
    /// The last thread that left a CPU, and the last that went on on another one, with when.
    left: Option<(i32, i64)>,
    migrated: Option<(i32, i64)>,
    /// What is known of the timer's interrupt.
    timer: Option<Timer>,
    /// How far the kernel's times may be off against the program's, ticks.
    error: i64,
    /// Ticks in a microsecond, at least 1.
    per_us: i64,
    settled: bool,
    /// Rows that were of use.
    pub(crate) rows: u64,
    /// Records that the sources lost.
    pub(crate) lost: u64,
    /// Time that the hypervisor took from all CPUs, ns.
    pub(crate) stolen_ns: u64,
}

impl Evidence {
    /// Evidence whose times may be off by `error` ticks; `per_us` ticks are a microsecond.
    pub(crate) fn with_error(error: i64, per_us: i64) -> Self {
        Self {
            error: error.max(0),
            per_us: per_us.max(1),
            ..Self::default()
        }
    }

    /// With what the timer's interrupt takes beside its rows.
    pub(crate) fn with_timer(self, timer: Option<Timer>) -> Self {
        Self { timer, ..self }
    }

    /// A row of the kernel; in order of time.
    pub(crate) fn push(&mut self, kind: i8, event: i32, tid: i32, ts: i64, payload: i64) {
        let Some(kind) = Kind::from_code(kind) else {
            return;
        };
        let per_us = self.per_us;
        let hit = |cause: Cause, ticks: i64| Hit {
            start: ts,
            end: ts.saturating_add(ticks.max(0)),
            cause,
            beside: cause.beside_us().saturating_mul(per_us),
        };
        let hit = match kind {
            Kind::SwitchOut => {
                let cause = match payload {
                    0 => Cause::Waited,
                    1 => Cause::Preempted,
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
                    Some(timer) => timer.widen(event, hit, per_us),
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

    /// Whether there are any rows that say something of a thread.
    #[inline]
    pub(crate) fn is_there(&self) -> bool {
        self.rows > 0
    }

    /// The samples that come now are of this thread.
    pub(crate) fn select(&mut self, tid: i32) {
        self.settle();
        self.current = self.place_of.get(&tid).copied();
        self.at = Place::default();
    }

    /// All rows are there: those of the kernel come before all others.
    pub(crate) fn settle(&mut self) {
        if self.settled {
            return;
        }
        let per_us = self.per_us;
        for thread in Arc::make_mut(&mut self.threads) {
            if let Some(off) = thread.off.take() {
                // It never came back.
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

    /// Whether anything may have hit the thread selected between these readings.
    pub(crate) fn is_anything(&self, start: i64, end: i64) -> bool {
        let Some(place) = self.current else {
            return false;
        };
        let thread = &self.threads[place];
        let until = end.saturating_add(self.error);
        let begun = thread.hits.partition_point(|hit| hit.start <= until);
        begun > 0 && thread.reach[begun - 1] >= start.saturating_sub(self.error)
    }

    /// What fell into the sample from `start` to `end` of the thread selected.
    /// What may lie in it, because the kernel's times are not exact, counts.
    #[inline]
    pub(crate) fn of(&mut self, start: i64, end: i64) -> Found {
        let error = self.error;
        match self.current {
            Some(place) => {
                let mut found = self.threads[place].of(&mut self.at, start, end, error);
                if !found.is_empty() {
                    found.judge(end.saturating_sub(start));
                }
                found
            }
            None => Found::NOTHING,
        }
    }
}

impl Thread {
    #[inline]
    fn of(&self, place: &mut Place, start: i64, end: i64, error: i64) -> Found {
        let until = end.saturating_add(error);
        if until < place.seen {
            place.cursor = 0;
        }
        place.seen = until;
        // Samples end in order, so this moves on by a few at a time.
        place.cursor += if place.cursor == 0 {
            self.hits.partition_point(|hit| hit.start <= until)
        } else {
            let rest = &self.hits[place.cursor..];
            rest.iter().take_while(|hit| hit.start <= until).count()
        };
        let from = start.saturating_sub(error);
        let mut found = Found::NOTHING;
        let mut at = place.cursor;
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
            let hits = || self.hits[at..place.cursor].iter();
            found.taken = covered(hits(), start, end);
            found.by_others = covered(hits().filter(|hit| hit.cause.disturbs()), start, end);
        }
        found
    }
}

/// Ticks from `start` to `end` that any of the hits covers; they come in the order of their
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
mod tests {
    use super::*;

    fn evidence(rows: &[(Kind, i32, i64, i64)]) -> Evidence {
        let mut evidence = Evidence::with_error(0, 5);
        for &(kind, tid, ts, payload) in rows {
            evidence.push(kind as i8, 1, tid, ts, payload);
        }
        evidence
    }

    fn causes(found: &Found) -> Vec<Cause> {
        (Cause::ALL.into_iter()).filter(|c| found.has(*c)).collect()
    }

    #[test]
    fn each_cause_with_its_time() {
        let mut e = evidence(&[
            (Kind::SwitchOut, 7, 100, 1),
            (Kind::SwitchIn, 7, 150, 0),
            (Kind::SwitchOut, 7, 200, 0),
            (Kind::SwitchIn, 7, 280, 0),
            (Kind::Interrupt, 7, 300, 20),
            (Kind::SoftInterrupt, 7, 310, 5),
            (Kind::Migrate, 7, 400, 1),
            (Kind::Fault, 7, 500, -1),
            (Kind::SwitchOut, 7, 600, 2),
            (Kind::SwitchIn, 7, 640, 0),
        ]);
        e.select(7);
        for (start, end, cause, ticks) in [
            (90, 110, Cause::Preempted, 10),
            (110, 190, Cause::Preempted, 40),
            (190, 290, Cause::Waited, 80),
            (390, 410, Cause::Migrated, 0),
            (490, 510, Cause::Fault, 0),
            (590, 700, Cause::Switched, 40),
        ] {
            let found = e.of(start, end);
            assert_eq!(causes(&found), [cause], "{start}");
            assert_eq!(found.ticks[cause as usize], ticks, "{start}");
            assert_eq!(found.ticks.iter().sum::<i64>(), ticks, "{start}");
            assert_eq!(found.taken(), ticks, "{start}");
            let by_others = if cause.disturbs() { ticks } else { 0 };
            assert_eq!(found.by_others(), by_others, "{start}");
        }
        let both = e.of(305, 312);
        assert_eq!(causes(&both), [Cause::Interrupt, Cause::SoftInterrupt]);
        assert_eq!(both.ticks[Cause::Interrupt as usize], 7);
        assert_eq!(both.ticks[Cause::SoftInterrupt as usize], 2);
        // The soft interrupt lies in the interrupt: 7 ticks in all, not 9.
        assert_eq!((both.taken(), both.by_others()), (7, 7));
        assert_eq!(both.disturbance(), Some(Cause::Interrupt));
        // Of 95 to 320: preempted 50, waited 80, interrupted 20.
        let long = e.of(95, 320);
        assert_eq!((long.taken(), long.by_others()), (150, 70));
        assert!(e.of(151, 199).is_empty() && e.of(700, 1000).is_empty());
    }

    /// A long absence under which short interrupts of other times lie: the walk
    /// back must not stop at the short ones.
    #[test]
    fn outer_samples_and_long_absences() {
        let mut rows = vec![(Kind::SwitchOut, 7, 10, 0), (Kind::SwitchIn, 7, 1000, 0)];
        rows.extend((1..50).map(|i| (Kind::Interrupt, 7, 1000 + 10 * i, 2)));
        let mut e = evidence(&rows);
        e.select(7);
        // Inner samples first, as they end.
        assert_eq!(causes(&e.of(1490, 1491)), [Cause::Interrupt]);
        assert!(e.of(1493, 1495).is_empty());
        let outer = e.of(5, 2000);
        assert_eq!(causes(&outer), [Cause::Interrupt, Cause::Waited]);
        assert_eq!(outer.ticks[Cause::Interrupt as usize], 49 * 2);
        assert_eq!(outer.ticks[Cause::Waited as usize], 990);
        assert_eq!(outer.disturbance(), Some(Cause::Interrupt));
        // Back in time: another ring of the same thread.
        assert_eq!(causes(&e.of(20, 30)), [Cause::Waited]);
        assert_eq!(e.of(20, 30).disturbance(), None);
    }

    #[test]
    fn threads_are_apart_and_the_error_reaches_further() {
        let mut e = evidence(&[
            (Kind::Interrupt, 7, 100, 10),
            (Kind::Interrupt, 8, 500, 10),
            (Kind::SwitchOut, 8, 900, 0),
        ]);
        e.select(8);
        assert!(e.of(90, 120).is_empty());
        assert!(!e.of(490, 505).is_empty());
        // Never came back.
        assert!(e.of(5000, 6000).has(Cause::Waited));
        e.select(7);
        assert!(e.of(80, 99).is_empty() && e.of(111, 120).is_empty());
        e.select(9);
        assert!(e.of(0, 1000).is_empty());
        let mut e = Evidence::with_error(15, 5);
        e.push(Kind::Interrupt as i8, 0, 7, 100, 10);
        e.select(7);
        assert!(e.of(70, 84).is_empty() && e.of(126, 130).is_empty());
        for (start, end) in [(70, 85), (125, 130)] {
            let found = e.of(start, end);
            assert!(found.has(Cause::Interrupt), "{start}");
            assert_eq!(found.ticks, [0; CAUSES], "{start}");
        }
    }

    /// Vector 3 receives from the network. At 100 it comes from a call of the thread's own;
    /// at 218 right after an interrupt, and at 232 after that; at 300 it is another thread that
    /// was interrupted. Vector 1 is the timer's, which no call raises.
    #[test]
    fn what_its_own_calls_raise_is_its_own() {
        let mut e = Evidence::with_error(0, 5);
        for (kind, event, tid, ts, ticks) in [
            (Kind::SoftInterrupt, 3, 7, 100, 20),
            (Kind::Interrupt, 5, 7, 200, 10),
            (Kind::SoftInterrupt, 3, 7, 218, 5),
            (Kind::SoftInterrupt, 3, 7, 232, 5),
            (Kind::Interrupt, 5, 8, 290, 5),
            (Kind::SoftInterrupt, 3, 7, 300, 5),
            (Kind::SoftInterrupt, 1, 7, 400, 5),
            (Kind::SoftInterrupt, 7, 7, 500, 5),
        ] {
            e.push(kind as i8, event, tid, ts, ticks);
        }
        e.select(7);
        for (start, cause) in [
            (100, Cause::OwnSoftInterrupt),
            (218, Cause::SoftInterrupt),
            (232, Cause::SoftInterrupt),
            (300, Cause::OwnSoftInterrupt),
            (400, Cause::SoftInterrupt),
            (500, Cause::SoftInterrupt),
        ] {
            let found = e.of(start - 2, start + 4);
            assert_eq!(causes(&found), [cause], "{start}");
            let disturbance = (cause == Cause::SoftInterrupt).then_some(cause);
            assert_eq!(found.disturbance(), disturbance, "{start}");
        }
    }

    /// 5 ticks are a microsecond: without an interrupt's 10 ticks a sample has to be 100 long,
    /// 20 times the microsecond that nobody sees; 500 where it was preempted or migrated. What
    /// is of the thread's own doing asks for nothing.
    #[test]
    fn what_is_long_beside_a_disturbance_stays() {
        let mut e = evidence(&[
            (Kind::Interrupt, 7, 1_000, 10),
            (Kind::SwitchOut, 7, 2_000, 1),
            (Kind::SwitchIn, 7, 3_000, 0),
            (Kind::Migrate, 7, 5_000, 1),
            (Kind::SwitchOut, 7, 7_000, 0),
            (Kind::SwitchIn, 7, 7_500, 0),
        ]);
        e.select(7);
        for (start, ticks, by_others, dropped_for) in [
            (995, 109, 10, Some(Cause::Interrupt)),
            (995, 110, 10, None),
            (1_900, 1_499, 1_000, Some(Cause::Preempted)),
            (1_900, 1_500, 1_000, None),
            // All of it was taken.
            (2_000, 1_000, 1_000, Some(Cause::Preempted)),
            (4_990, 499, 0, Some(Cause::Migrated)),
            (4_990, 500, 0, None),
            (6_999, 502, 0, None),
        ] {
            let found = e.of(start, start + ticks);
            assert_eq!(found.by_others(), by_others, "{start} {ticks}");
            assert_eq!(found.dropped_for(), dropped_for, "{start} {ticks}");
        }
    }

    /// Thread 7 is taken off its CPU six times: for thread 8, which hands it back; for another
    /// program; for 8, after which another program had it; for 8, and goes on elsewhere; for
    /// another program and then for 8; for 8 until the recording ends. What 8 waits for is its own.
    #[test]
    fn a_thread_of_the_program_is_no_disturbance() {
        let mut e = evidence(&[
            (Kind::SwitchOut, 7, 100, 1),
            (Kind::SwitchIn, 8, 100, 0),
            (Kind::SwitchOut, 8, 150, 0),
            (Kind::SwitchIn, 7, 150, 0),
            (Kind::SwitchOut, 7, 1_000, 1),
            (Kind::SwitchIn, 7, 1_050, 0),
            (Kind::SwitchOut, 7, 2_000, 1),
            (Kind::SwitchIn, 8, 2_000, 0),
            (Kind::SwitchOut, 8, 2_020, 0),
            (Kind::SwitchIn, 7, 2_050, 0),
            (Kind::SwitchOut, 7, 3_000, 1),
            (Kind::SwitchIn, 8, 3_000, 0),
            (Kind::Migrate, 7, 3_050, 1),
            (Kind::SwitchIn, 7, 3_050, 0),
            (Kind::SwitchOut, 8, 4_000, 0),
            (Kind::SwitchOut, 7, 4_200, 1),
            (Kind::SwitchIn, 8, 4_230, 0),
            (Kind::SwitchOut, 8, 4_250, 0),
            (Kind::SwitchIn, 7, 4_250, 0),
            (Kind::SwitchOut, 7, 5_000, 1),
            (Kind::SwitchIn, 8, 5_000, 0),
        ]);
        e.select(7);
        for (start, expected) in [
            (90, &[Cause::OwnThread][..]),
            (990, &[Cause::Preempted]),
            (1_990, &[Cause::Preempted]),
            (2_990, &[Cause::Migrated, Cause::OwnThread]),
            (4_190, &[Cause::Preempted]),
            (4_990, &[Cause::OwnThread]),
        ] {
            let found = e.of(start, start + 100);
            assert_eq!(causes(&found), expected, "{start}");
            assert!(found.was_off(), "{start}");
            let by_others = if expected[0] == Cause::Preempted {
                50
            } else {
                0
            };
            assert_eq!(found.by_others(), by_others, "{start}");
        }
        e.select(8);
        assert_eq!(causes(&e.of(160, 1_000)), [Cause::Waited]);
    }

    /// 5 ticks are a microsecond. The timer's interrupt takes 40 ticks before the kernel knows of
    /// it and 10 after it, give or take 7: of a sample from 900 to 2 000 it had 40 + 30 + 10, and
    /// one of 140 others is long enough for what is not known, one of 139 not. Another interrupt
    /// may take those 50 beside its own 30: it needs 1000.
    #[test]
    fn a_timer_takes_more_than_the_kernel_knows() {
        let timer = Timer {
            event: 9,
            before: 40,
            after: 10,
            spread: 7,
        };
        let mut e = Evidence::with_error(0, 5).with_timer(Some(timer));
        for (event, ts) in [(9, 1_000), (3, 3_000)] {
            e.push(Kind::Interrupt as i8, event, 7, ts, 30);
        }
        e.select(7);
        for (start, end, by_others, is_dropped) in [
            (900, 2_000, 80, false),
            (900, 900 + 80 + 140, 80, false),
            (900, 900 + 80 + 139, 80, true),
            // They end and begin while the kernel does not know yet, or no longer.
            (500, 970, 10, false),
            (1_035, 2_000, 5, false),
            (1_041, 2_000, 0, false),
            (2_000, 2_000 + 30 + 1_000, 30, false),
            (2_001, 2_000 + 30 + 1_000, 30, true),
        ] {
            let found = e.of(start, end);
            assert_eq!(found.by_others(), by_others, "{start} {end}");
            assert_eq!(found.dropped_for().is_some(), is_dropped, "{start} {end}");
        }
    }

    #[test]
    fn what_is_of_no_thread_is_added_up() {
        let e = evidence(&[
            (Kind::Steal, 0, 10, 400),
            (Kind::Steal, 0, 20, 100),
            (Kind::KernelGap, 0, 30, 7),
            (Kind::Frequency, 0, 40, 2_800_000),
            (Kind::SwitchIn, 7, 50, 0),
        ]);
        assert_eq!((e.stolen_ns, e.lost, e.rows), (500, 7, 0));
        assert!(!e.is_there());
    }
}
