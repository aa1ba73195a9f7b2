//! Turns records in order of time into rows about threads.
//!
//! Where tracefs ran, it tells which threads are the program's (from its exec on, with the
//! threads they create), and its switches are the rows. Perf's switches are compared with them,
//! and added where tracefs lacks them. Without tracefs, perf's switches are the rows.
//!
//! A thread that continues on another CPU than its last one makes a separate row. The kernel's
//! own record of a migration is made by the thread that causes it, and is missed when that is not
//! a thread of the program.

use std::collections::{BTreeMap, HashMap};

use undertick_format::manifest::{Balance, Comparison, OtherThread};
use undertick_format::schema::Kind;

use super::compare::{Compare, Switch, SwitchSource};
use super::order::Order;
use super::raw::{Record, RecordKind};
use super::rows::Row;

/// State of a thread.
#[derive(Clone, Copy, Debug)]
struct Thread {
    pid: i32,
    last_cpu: i16,
    on: Option<bool>,
    /// It has begun to end: perf records no more of it.
    ends: bool,
}

/// Which sources ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sources {
    pub(super) perf: bool,
    pub(super) tracefs: bool,
}

/// Most threads of other programs that are named.
const MOST_OTHERS: usize = 1024;
/// Largest distance of two records of one switch, ns. The kernel lets nothing come in between,
/// but a hypervisor may take the CPU away there.
pub(super) const APART_NS: i64 = 250_000_000;
/// How much earlier perf's record may be, ns: far more than the error of its clock.
pub(super) const EARLY_NS: i64 = 5_000;

/// The program's threads.
#[derive(Debug)]
pub(super) struct Threads {
    sources: Sources,
    threads: HashMap<i32, Thread>,
    /// The program has been executed.
    started: bool,
    compare: Compare,
    apart: i64,
    rows: Order<Row>,
    balance: Balance,
    /// Names of threads of other programs, and those of them that took a CPU of the program's.
    names: HashMap<i32, String>,
    others: BTreeMap<i32, String>,
}

/// What the records said beside the rows.
#[derive(Debug)]
pub(super) struct Found {
    /// Comparison of the two sources, where both ran.
    pub(super) comparison: Option<Comparison>,
    pub(super) balance: Balance,
    /// Threads of other programs that took a CPU of the program's.
    pub(super) others: Vec<OtherThread>,
}

impl Threads {
    /// `apart`, `early`: [`APART_NS`] and [`EARLY_NS`] in ticks.
    pub(super) fn new(sources: Sources, apart: i64, early: i64) -> Self {
        Self {
            sources,
            threads: HashMap::new(),
            started: !sources.tracefs,
            compare: Compare::new(apart, early),
            apart,
            rows: Order::new(0),
            balance: Balance::default(),
            names: HashMap::new(),
            others: BTreeMap::new(),
        }
    }

    /// Takes the next record; complete rows are passed to `out`.
    pub(super) fn take(&mut self, ticks: i64, record: &Record, mut out: impl FnMut(Row)) {
        let mut alone = Vec::new();
        self.compare.pass(ticks, |switch| alone.push(switch));
        alone.into_iter().for_each(|switch| self.add(switch));
        if record.kind.is_tracefs() && !self.sources.tracefs {
            return; // it is not known whose they are
        }
        match record.kind {
            RecordKind::PerfIn | RecordKind::PerfOut => self.perf(ticks, record),
            RecordKind::PerfLost if !self.sources.tracefs => {
                self.of_no_thread(ticks, record, Kind::KernelGap)
            }
            RecordKind::Switch => self.switch(ticks, record),
            RecordKind::Waking => {
                self.of_thread(ticks, record, Kind::Waking, i64::from(record.pid))
            }
            RecordKind::Interrupt => self.of_thread(ticks, record, Kind::Interrupt, record.payload),
            RecordKind::SoftInterrupt => {
                self.of_thread(ticks, record, Kind::SoftInterrupt, record.payload);
            }
            RecordKind::Fault => self.of_thread(ticks, record, Kind::Fault, -1),
            RecordKind::Frequency => self.of_no_thread(ticks, record, Kind::Frequency),
            RecordKind::TracefsLost => self.of_no_thread(ticks, record, Kind::KernelGap),
            RecordKind::Steal => self.of_no_thread(ticks, record, Kind::Steal),
            RecordKind::Epoch => self.of_no_thread(ticks, record, Kind::Epoch),
            RecordKind::Stack => self.sampled(ticks, record),
            RecordKind::Name => {
                self.names.insert(record.tid, record.name());
            }
            RecordKind::NewTask => self.new_task(record),
            RecordKind::Exec => {
                self.started = true;
                self.threads.entry(record.tid).or_insert(unseen(record.tid));
            }
            RecordKind::Exit => {
                if let Some(thread) = self.threads.get_mut(&record.tid) {
                    thread.ends = true;
                }
            }
            RecordKind::Round | RecordKind::Anchor | RecordKind::PerfLost => {}
        }
        // Switches that only the second source recorded come this much later.
        let complete = ticks.saturating_sub(self.apart.saturating_mul(3));
        let (threads, balance) = (&mut self.threads, &mut self.balance);
        self.rows
            .before(complete, |_, row| settle(row, threads, balance, &mut out));
    }

    /// Passes on the remaining rows; returns the results.
    pub(super) fn finish(mut self, ns_per_tick: f64, mut out: impl FnMut(Row)) -> Found {
        let mut alone = Vec::new();
        let sources = ["tracefs", "perf"];
        let comparison = (self.compare).finish(sources, ns_per_tick, |switch| alone.push(switch));
        alone.into_iter().for_each(|switch| self.add(switch));
        let (threads, balance) = (&mut self.threads, &mut self.balance);
        self.rows
            .rest(|_, row| settle(row, threads, balance, &mut out));
        let both = self.sources.perf && self.sources.tracefs;
        Found {
            comparison: both.then_some(comparison),
            balance: self.balance,
            others: (self.others.into_iter())
                .map(|(tid, name)| OtherThread { tid, name })
                .collect(),
        }
    }

    fn perf(&mut self, ticks: i64, record: &Record) {
        let into = record.kind == RecordKind::PerfIn;
        if !self.sources.tracefs {
            let thread = self.threads.entry(record.tid);
            thread.or_insert(unseen(record.pid)).pid = record.pid;
            let row = switched(ticks, (record.tid, 0), record.cpu, into, record.payload);
            return self.row(row);
        }
        // Before the exec and while a thread ends, only one of the two sources records switches.
        let known = self.threads.get(&record.tid);
        if !self.started || known.is_none_or(|thread| thread.ends) {
            return;
        }
        let switch = Switch {
            ticks,
            tid: record.tid,
            cpu: record.cpu,
            into,
            runnable: !into && record.payload != 0,
        };
        self.compare.take(SwitchSource::Second, switch);
    }

    fn switch(&mut self, ticks: i64, record: &Record) {
        if !self.started {
            return;
        }
        let runnable = record.is_preemption();
        for (tid, into) in [(record.tid, false), (record.pid, true)] {
            let Some(thread) = self.threads.get(&tid) else {
                continue;
            };
            let ends = thread.ends;
            let runnable = !into && runnable;
            let payload = if into { 0 } else { record.why_off() };
            let next = if into { 0 } else { record.pid };
            if runnable {
                self.note_other(next);
            }
            self.row(switched(ticks, (tid, next), record.cpu, into, payload));
            if self.sources.perf && !ends {
                let switch = Switch {
                    ticks,
                    tid,
                    cpu: record.cpu,
                    into,
                    runnable,
                };
                self.compare.take(SwitchSource::First, switch);
            }
        }
    }

    /// Notes the name of a thread that took a CPU of the program's.
    fn note_other(&mut self, tid: i32) {
        if self.others.len() < MOST_OTHERS
            && !self.threads.contains_key(&tid)
            && let Some(name) = self.names.get(&tid)
        {
            self.others.insert(tid, name.clone());
        }
    }

    /// Adds a switch that only perf recorded.
    fn add(&mut self, switch: Switch) {
        let payload = i64::from(switch.runnable);
        let Switch {
            ticks,
            tid,
            cpu,
            into,
            ..
        } = switch;
        self.row(switched(ticks, (tid, 0), cpu, into, payload));
    }

    fn new_task(&mut self, record: &Record) {
        let Some(parent) = self.threads.get(&record.pid) else {
            return;
        };
        let pid = if record.a == 1 {
            parent.pid
        } else {
            record.tid
        };
        self.threads.insert(record.tid, unseen(pid));
    }

    fn sampled(&mut self, ticks: i64, record: &Record) {
        if !self.sources.tracefs {
            self.threads.entry(record.tid).or_insert(unseen(record.pid));
        }
        self.of_thread(ticks, record, Kind::Stack, record.payload);
    }

    fn of_thread(&mut self, ticks: i64, record: &Record, kind: Kind, payload: i64) {
        if self.started && self.threads.contains_key(&record.tid) {
            self.row(Row {
                ticks,
                pid: 0,
                tid: record.tid,
                cpu: record.cpu,
                kind,
                event: if kind == Kind::Waking { 0 } else { record.a },
                payload,
            });
        }
    }

    fn of_no_thread(&mut self, ticks: i64, record: &Record, kind: Kind) {
        self.row(Row {
            ticks,
            pid: 0,
            tid: 0,
            cpu: record.cpu,
            kind,
            event: if kind == Kind::Epoch { record.a } else { 0 },
            payload: record.payload,
        });
    }

    fn row(&mut self, row: Row) {
        self.rows.push(row.ticks, row);
    }
}

const fn unseen(pid: i32) -> Thread {
    Thread {
        pid,
        last_cpu: -1,
        on: None,
        ends: false,
    }
}

/// A switch of thread `tid`; `next`: the thread that comes in its place, 0 where it is not known.
const fn switched(ticks: i64, (tid, next): (i32, i32), cpu: i16, into: bool, payload: i64) -> Row {
    let kind = if into {
        Kind::SwitchIn
    } else {
        Kind::SwitchOut
    };
    Row {
        ticks,
        pid: 0,
        tid,
        cpu,
        kind,
        event: next,
        payload,
    }
}

/// Fills in the process, adds migrations, and keeps the account of each thread.
fn settle(
    mut row: Row,
    threads: &mut HashMap<i32, Thread>,
    balance: &mut Balance,
    out: &mut impl FnMut(Row),
) {
    let Some(thread) = threads.get_mut(&row.tid) else {
        return out(row);
    };
    row.pid = thread.pid;
    let into = row.kind == Kind::SwitchIn;
    if into || row.kind == Kind::SwitchOut {
        if into {
            balance.switches_in += 1;
            balance.missing_out += u64::from(thread.on == Some(true));
        } else {
            balance.switches_out += 1;
            balance.missing_in += u64::from(thread.on == Some(false));
        }
        thread.on = Some(into);
        let from = std::mem::replace(&mut thread.last_cpu, row.cpu);
        // Also where a switch in is missing: the thread went off the CPU onto which it must have
        // come.
        if from >= 0 && from != row.cpu {
            out(Row {
                kind: Kind::Migrate,
                event: 0,
                payload: i64::from(from),
                ..row
            });
        }
    }
    out(row);
}

#[cfg(test)]
#[path = "threads_tests.rs"]
mod tests;
