//! The kernel's evidence of what disturbed a part of a process's time.

use std::collections::HashMap;

use undertick_format::schema::{Kind, OWN_VECTOR};

use super::read::KernelRow;

/// What lengthens a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Another thread had the CPU although a process of the script could have run.
    Preempted,
    /// No process of the script had its CPU, and it is unknown whether one could have run.
    Switched,
    /// A hard interrupt.
    Interrupt,
    /// A soft interrupt.
    SoftInterrupt,
    /// The process was moved to another CPU.
    Migrated,
    /// A page fault.
    Fault,
    /// The process gave its CPU away itself.
    Waited,
}

pub(super) const CAUSES: usize = 7;

impl Cause {
    pub(super) const ALL: [Self; CAUSES] = [
        Self::Preempted,
        Self::Switched,
        Self::Interrupt,
        Self::SoftInterrupt,
        Self::Migrated,
        Self::Fault,
        Self::Waited,
    ];

    /// The name that the analysis of a trace uses.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Preempted => "preempted",
            Self::Switched => "switched",
            Self::Interrupt => "interrupt",
            Self::SoftInterrupt => "softirq",
            Self::Migrated => "migration",
            Self::Fault => "fault",
            Self::Waited => "waited",
        }
    }
}

/// The source of a disturbance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Nothing,
    /// A thread of the recording.
    Thread(i32),
    /// A thread that was not recorded.
    Another,
    /// An interrupt line, or with [`OWN_VECTOR`] a vector.
    Vector(i32),
    /// The CPU from which a thread came.
    Cpu(i64),
}

/// The disturbances in a part of time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Disturbances {
    /// Duration of each cause; `None`: it did not occur.
    pub(super) ticks: [Option<i64>; CAUSES],
    pub(super) by: [By; CAUSES],
}

impl Disturbances {
    const NOTHING: Self = Self {
        ticks: [None; CAUSES],
        by: [By::Nothing; CAUSES],
    };

    fn add(&mut self, cause: Cause, ticks: i64, by: By) {
        let at = cause as usize;
        // The longest of several disturbances gives its name.
        if self.ticks[at].is_none_or(|so_far| ticks > so_far) {
            self.by[at] = by;
        }
        self.ticks[at] = Some(self.ticks[at].unwrap_or(0).saturating_add(ticks));
    }

    /// Total time of all causes.
    fn taken(&self) -> i64 {
        self.ticks.iter().flatten().sum()
    }
}

/// A disturbance that interrupts a thread.
#[derive(Clone, Copy, Debug)]
struct Hit {
    start: i64,
    end: i64,
    cause: Cause,
    by: By,
}

/// A time for which a thread was off the CPU.
#[derive(Clone, Copy, Debug)]
struct Off {
    start: i64,
    end: i64,
    /// Whether the thread could have gone on.
    preempted: bool,
    cpu: i16,
}

/// The evidence about one thread.
#[derive(Debug, Default)]
struct Thread {
    hits: Vec<Hit>,
    /// Duration of the longest hit, which limits how far back a search must go.
    longest: i64,
    off: Vec<Off>,
    /// Times at which it was woken.
    woken: Vec<i64>,
}

/// The kernel rows of one repetition, by thread.
#[derive(Debug)]
pub(super) struct Evidence {
    threads: HashMap<i32, Thread>,
    /// Threads that came onto each CPU, in order of time.
    onto: HashMap<i16, Vec<(i64, i32)>>,
    /// The kernel's times may be wrong by this many ticks.
    error: i64,
    /// Maximum distance of two rows of one switch, ticks.
    apart: i64,
}

impl Evidence {
    /// `rows` must be in order of time.
    pub(super) fn new(rows: &[KernelRow], error: i64, apart: i64) -> Self {
        let mut all = Self {
            threads: HashMap::new(),
            onto: HashMap::new(),
            error,
            apart,
        };
        let mut off: HashMap<i32, Off> = HashMap::new();
        for row in rows {
            all.row(row, &mut off);
        }
        for (tid, last) in off {
            let end = i64::MAX;
            let thread = all.threads.entry(tid).or_default();
            thread.off.push(Off { end, ..last });
        }
        for thread in all.threads.values_mut() {
            thread.off.sort_by_key(|off| off.start);
            let lengths = thread.hits.iter().map(|hit| hit.end - hit.start);
            thread.longest = lengths.max().unwrap_or(0);
        }
        all
    }

    fn row(&mut self, row: &KernelRow, off: &mut HashMap<i32, Off>) {
        let KernelRow { ts, tid, cpu, .. } = *row;
        let hit = |cause, by| Hit {
            start: ts,
            end: ts.saturating_add(row.payload.max(0)),
            cause,
            by,
        };
        let point = |cause, by| Hit {
            end: ts,
            ..hit(cause, by)
        };
        let hit = match row.kind {
            Kind::SwitchOut => {
                let preempted = row.payload == 1;
                let (start, end) = (ts, ts);
                off.insert(
                    tid,
                    Off {
                        start,
                        end,
                        preempted,
                        cpu,
                    },
                );
                return;
            }
            Kind::SwitchIn => {
                self.onto.entry(cpu).or_default().push((ts, tid));
                if let Some(begun) = off.remove(&tid) {
                    let thread = self.threads.entry(tid).or_default();
                    thread.off.push(Off { end: ts, ..begun });
                }
                return;
            }
            Kind::Waking => {
                self.threads.entry(tid).or_default().woken.push(ts);
                return;
            }
            Kind::Migrate => point(Cause::Migrated, By::Cpu(row.payload)),
            Kind::Interrupt => hit(Cause::Interrupt, By::Vector(row.event)),
            Kind::SoftInterrupt => hit(Cause::SoftInterrupt, By::Vector(row.event)),
            Kind::Fault => hit(Cause::Fault, By::Nothing),
            _ => return,
        };
        self.threads.entry(tid).or_default().hits.push(hit);
    }

    /// The disturbances of a thread from `start` to `end`, and, while it was off its CPU, those of
    /// the other threads of its script.
    pub(super) fn disturbances(
        &self,
        tid: i32,
        others: &[i32],
        start: i64,
        end: i64,
    ) -> Disturbances {
        let mut found = Disturbances::NOTHING;
        let Some(thread) = self.threads.get(&tid) else {
            return found;
        };
        self.hits(thread, start, end, &mut found);
        for off in overlapping(&thread.off, start, end) {
            let (from, to) = (off.start.max(start), off.end.min(end));
            let before = found.taken();
            for other in others.iter().filter_map(|other| self.threads.get(other)) {
                self.hits(other, from, to, &mut found);
            }
            self.off(tid, off, (from, to), others, &mut found);
            if !off.preempted {
                // For the rest of the time a process of the script ran undisturbed.
                let rest = to - from - (found.taken() - before);
                found.add(Cause::Waited, rest.max(0), By::Nothing);
            }
        }
        found
    }

    /// Whether a thread other than this one came onto a CPU from `start` to `end`.
    pub(super) fn another_came(&self, tid: i32, start: i64, end: i64) -> bool {
        self.onto.values().any(|onto| {
            let first = onto.partition_point(|(ts, _)| *ts < start);
            let inside = onto[first..].iter().take_while(|(ts, _)| *ts <= end);
            inside.into_iter().any(|(_, other)| *other != tid)
        })
    }

    fn hits(&self, thread: &Thread, start: i64, end: i64, found: &mut Disturbances) {
        let (start, end) = (start - self.error, end + self.error);
        let first = (thread.hits).partition_point(|hit| hit.start + thread.longest < start);
        for hit in thread.hits[first..].iter().take_while(|h| h.start <= end) {
            if hit.end >= start {
                let inside = hit.end.min(end) - hit.start.max(start);
                found.add(hit.cause, inside.max(0), hit.by);
            }
        }
    }

    /// Adds the part of a time off the CPU in which no thread of the script ran, and the part in
    /// which another ran although this one could have.
    fn off(
        &self,
        tid: i32,
        off: &Off,
        (from, to): (i64, i64),
        others: &[i32],
        found: &mut Disturbances,
    ) {
        if off.preempted {
            let by = self.successor(tid, off);
            return found.add(Cause::Preempted, to - from, by);
        }
        for (gap_from, gap_to) in self.gaps(others, from, to) {
            // Threads that could run: woken before, or taken off their CPUs.
            let could = others.iter().filter_map(|other| self.threads.get(other));
            let runnable = could
                .filter_map(|other| {
                    let off = overlapping(&other.off, gap_from, gap_to).next()?;
                    let woken = other.woken.partition_point(|&at| at < off.start);
                    let woken = other.woken.get(woken).filter(|&&at| at < gap_to);
                    match off.preempted {
                        true => Some(off.start),
                        false => woken.copied(),
                    }
                })
                .min();
            match runnable {
                Some(since) => {
                    let long = gap_to - gap_from.max(since);
                    found.add(Cause::Preempted, long, By::Another);
                }
                None => found.add(Cause::Switched, gap_to - gap_from, By::Another),
            }
        }
    }

    /// The thread that came onto the CPU in place of another.
    fn successor(&self, tid: i32, off: &Off) -> By {
        let onto = self.onto.get(&off.cpu).map_or(&[][..], Vec::as_slice);
        let first = onto.partition_point(|(ts, _)| *ts < off.start - self.apart);
        let next = onto[first..].iter().find(|(_, other)| *other != tid);
        match next {
            Some((ts, other)) if *ts <= off.start + self.apart => By::Thread(*other),
            _ => By::Another,
        }
    }

    /// The times from `from` to `to` in which none of these threads had a CPU.
    fn gaps(&self, threads: &[i32], from: i64, to: i64) -> Vec<(i64, i64)> {
        let mut gaps = vec![(from, to)];
        for tid in threads {
            let off = self.threads.get(tid).map_or(&[][..], |t| &t.off);
            let mut both = Vec::new();
            for (start, end) in gaps {
                let inside = overlapping(off, start, end);
                both.extend(inside.map(|o| (o.start.max(start), o.end.min(end))));
            }
            gaps = both;
        }
        gaps.retain(|(start, end)| end > start);
        gaps
    }
}

/// The times off the CPU that overlap the time from `start` to `end`; they do not overlap each
/// other.
fn overlapping(off: &[Off], start: i64, end: i64) -> impl Iterator<Item = &Off> {
    let first = off.partition_point(|o| o.end <= start);
    off[first..].iter().take_while(move |o| o.start < end)
}

/// A vector in words.
pub(super) fn vector(cause: Cause, vector: i32) -> String {
    /// As the kernel numbers its softirqs.
    const SOFT: [&str; 10] = [
        "high tasklets",
        "timer",
        "network send",
        "network receive",
        "block",
        "poll",
        "tasklets",
        "scheduler",
        "high-resolution timer",
        "RCU",
    ];
    if cause == Cause::SoftInterrupt {
        let name = usize::try_from(vector).ok().and_then(|v| SOFT.get(v));
        return name.map_or_else(|| format!("vector {vector}"), |name| (*name).to_owned());
    }
    match vector & OWN_VECTOR {
        0 => format!("line {vector}"),
        _ => format!("vector {} of the CPU's own", vector - OWN_VECTOR),
    }
}
