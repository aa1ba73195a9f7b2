//! Replays the lives of tasks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use undertick_document::{TaskLife, TaskPolled, TaskReport, TaskState, TaskTimes, TaskWaker};
use undertick_estimate::SignedHistogram;
use undertick_format::manifest::Manifest;

use super::TaskNames;
use super::behind::{Window, Windows};
use super::reader::{Entry, Records, TaskChange, Thread};
use crate::states::facts;

/// Most tasks of a name that are listed.
const MOST_LISTED: usize = 10;
/// Most names whose lives are explained.
const MOST_EXPLAINED: usize = 16;
/// Most names of tasks that a queued task waited behind.
const MOST_BEHIND: usize = 3;
/// Most wakers of a name that are listed.
const MOST_WAKERS: usize = 16;

/// Replays all lives; a row for each name.
pub(super) fn rows(records: Records, names: &TaskNames, manifest: &Manifest) -> Vec<TaskReport> {
    let last = records.last;
    let mut all: BTreeMap<u16, Totals> = BTreeMap::new();
    let again = records.clone();
    let (entries, threads) = records.sorted();
    // Tasks of different processes may have the same number.
    let mut lives: Vec<Life> = Vec::new();
    let mut number = None;
    for entry in entries {
        if number != Some(entry.number) {
            number = Some(entry.number);
            for life in lives.drain(..) {
                life.end(TaskState::Live, last, &mut all);
            }
        }
        let has_polls = names.has_polls[usize::from(entry.name)];
        step(&mut lives, &entry, has_polls, &mut all);
    }
    for life in lives {
        life.end(TaskState::Live, last, &mut all);
    }
    let mut windows = Windows::new(queued(&all));
    if !windows.is_empty() {
        again.sorted().0.for_each(|entry| windows.take(&entry));
    }
    let describe = Describe::new((names, &threads, manifest), windows);
    let mut rows: Vec<TaskReport> = (all.into_iter())
        .map(|(name, totals)| totals.row(name, &describe))
        .collect();
    rows.sort_by(|a, b| (b.lifetime.total_ns).total_cmp(&a.lifetime.total_ns));
    rows
}

/// The longest time for which each listed task was queued, of the names with the longest lives in total.
fn queued(all: &BTreeMap<u16, Totals>) -> Vec<Window> {
    let mut names: Vec<&Totals> = all.values().collect();
    names.sort_by_key(|totals| Reverse(totals.lifetime.total));
    let listed = names.into_iter().take(MOST_EXPLAINED);
    (listed.flat_map(|totals| &totals.longest))
        .map(|(life, _)| Window {
            pid: life.pid,
            number: life.number,
            start: life.longest_queue_end.saturating_sub(life.longest_queue),
            end: life.longest_queue_end,
            polled: BTreeMap::new(),
        })
        .collect()
}

/// Takes the next record of a number.
fn step(lives: &mut Vec<Life>, entry: &Entry, has_polls: bool, all: &mut BTreeMap<u16, Totals>) {
    let known = (lives.iter()).position(|life| (life.pid, life.name) == (entry.pid, entry.name));
    match (entry.change, known) {
        (TaskChange::New, Some(at)) => {
            let before = std::mem::replace(&mut lives[at], Life::new(entry, false));
            before.end(TaskState::Unknown, i64::MIN, all);
        }
        (TaskChange::New, None) => lives.push(Life::new(entry, false)),
        (TaskChange::Done | TaskChange::Cancelled, Some(at)) => {
            let state = match entry.change {
                TaskChange::Done => TaskState::Done,
                _ => TaskState::Cancelled,
            };
            lives.swap_remove(at).end(state, entry.ts, all);
        }
        // Callbacks of a runtime may report the ends of what is no task.
        (TaskChange::Done | TaskChange::Cancelled, None) if has_polls => {}
        // The record of an end whose task has none of its begin.
        (TaskChange::Done | TaskChange::Cancelled, None) => {
            let state = match entry.change {
                TaskChange::Done => TaskState::Done,
                _ => TaskState::Cancelled,
            };
            Life::new(entry, true).end(state, entry.ts, all);
        }
        (TaskChange::Woken, Some(at)) => lives[at].wake(entry, all.entry(entry.name).or_default()),
        // A waker may outlive its task.
        (TaskChange::Woken, None) => {}
        (TaskChange::Polled(end), Some(at)) => {
            lives[at].poll(entry, end, all.entry(entry.name).or_default());
        }
        (TaskChange::Polled(end), None) => {
            let mut life = Life::new(entry, true);
            life.poll(entry, end, all.entry(entry.name).or_default());
            lives.push(life);
        }
    }
}

/// What a task that is not being polled waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rests {
    Idle,
    Queued,
}

/// A task that lives.
#[derive(Clone, Copy, Debug)]
struct Life {
    number: u64,
    name: u16,
    pid: i32,
    born: i64,
    begun_before: bool,
    rests: Rests,
    /// Since when, ticks: its birth, its last wake, or the end of its last poll.
    since: i64,
    busy: i64,
    idle: i64,
    queued: i64,
    longest_queue: i64,
    /// When that ended.
    longest_queue_end: i64,
    longest_idle: i64,
    /// What ended that: the task that was being polled, and the thread.
    woken_by: Option<(Option<u16>, u32)>,
    polls: u64,
    thread: u32,
}

impl Life {
    fn new(entry: &Entry, begun_before: bool) -> Self {
        Self {
            number: entry.number,
            name: entry.name,
            pid: entry.pid,
            born: entry.ts,
            begun_before,
            rests: Rests::Queued,
            since: entry.ts,
            busy: 0,
            idle: 0,
            queued: 0,
            longest_queue: 0,
            longest_queue_end: entry.ts,
            longest_idle: 0,
            woken_by: None,
            polls: 0,
            thread: entry.thread,
        }
    }

    /// Passes the time until `ts`; returns how long that was.
    fn rest_until(&mut self, ts: i64) -> i64 {
        let ticks = ts.saturating_sub(self.since).max(0);
        match self.rests {
            Rests::Idle => {
                self.idle = self.idle.saturating_add(ticks);
                if ticks > self.longest_idle {
                    (self.longest_idle, self.woken_by) = (ticks, None);
                }
            }
            Rests::Queued => {
                self.queued = self.queued.saturating_add(ticks);
                if ticks > self.longest_queue {
                    (self.longest_queue, self.longest_queue_end) = (ticks, ts);
                }
            }
        }
        self.since = self.since.max(ts);
        ticks
    }

    fn wake(&mut self, entry: &Entry, totals: &mut Totals) {
        if self.rests == Rests::Queued {
            return;
        }
        // A wake during a poll counts from its end on.
        let ticks = self.rest_until(entry.ts);
        if ticks > 0 && ticks == self.longest_idle {
            self.woken_by = Some((entry.by, entry.thread));
        }
        self.rests = Rests::Queued;
        totals.wakes += 1;
        *totals.wakers.entry((entry.by, entry.thread)).or_default() += 1;
    }

    fn poll(&mut self, entry: &Entry, end: i64, totals: &mut Totals) {
        let was = self.rests;
        let ticks = self.rest_until(entry.ts);
        match was {
            Rests::Queued if !(self.begun_before && self.polls == 0) => totals.queue.record(ticks),
            Rests::Queued => {}
            Rests::Idle => totals.unwoken += 1,
        }
        let busy = end.saturating_sub(self.since).max(0);
        totals.poll.record(busy);
        totals.polls += 1;
        totals.moved += u64::from(self.polls > 0 && self.thread != entry.thread);
        self.busy = self.busy.saturating_add(busy);
        self.polls += 1;
        self.thread = entry.thread;
        self.since = self.since.max(end);
        self.rests = Rests::Idle;
    }

    fn end(mut self, state: TaskState, ts: i64, all: &mut BTreeMap<u16, Totals>) {
        // What ends in a poll ends with it.
        if state != TaskState::Done || self.polls == 0 {
            self.rest_until(ts);
        }
        let lifetime = self.lifetime();
        let totals = all.entry(self.name).or_default();
        totals.tasks += 1;
        *match state {
            TaskState::Done => &mut totals.done,
            TaskState::Cancelled => &mut totals.cancelled,
            TaskState::Live => &mut totals.live,
            TaskState::Unknown => &mut totals.unknown,
        } += 1;
        totals.begun_before += u64::from(self.begun_before);
        let is_whole =
            !self.begun_before && matches!(state, TaskState::Done | TaskState::Cancelled);
        let parts = [
            (&mut totals.lifetime, lifetime),
            (&mut totals.busy, self.busy),
            (&mut totals.idle, self.idle),
            (&mut totals.queued, self.queued),
        ];
        for (of, ticks) in parts {
            match is_whole {
                true => of.record(ticks),
                false => of.total += i128::from(ticks),
            }
        }
        totals.list(self, state);
    }

    fn lifetime(&self) -> i64 {
        self.since.saturating_sub(self.born)
    }
}

/// Durations, ticks.
#[derive(Debug, Default)]
struct Times {
    total: i128,
    spread: SignedHistogram,
    most: i64,
}

impl Times {
    fn record(&mut self, ticks: i64) {
        self.total += i128::from(ticks);
        self.spread.record(ticks);
        self.most = self.most.max(ticks);
    }

    fn document(&self, ns_per_tick: f64) -> TaskTimes {
        let n = self.spread.n();
        let [median, p99] = self.spread.quantiles([0.5, 0.99]);
        let ns = |ticks: i64| (n > 0).then(|| ticks.min(self.most) as f64 * ns_per_tick);
        TaskTimes {
            total_ns: self.total as f64 * ns_per_tick,
            n,
            median_ns: ns(median),
            p99_ns: ns(p99),
            max_ns: ns(self.most),
        }
    }
}

/// All tasks of a name.
#[derive(Debug, Default)]
struct Totals {
    tasks: u64,
    done: u64,
    cancelled: u64,
    live: u64,
    unknown: u64,
    begun_before: u64,
    polls: u64,
    moved: u64,
    wakes: u64,
    unwoken: u64,
    lifetime: Times,
    busy: Times,
    idle: Times,
    queued: Times,
    poll: Times,
    queue: Times,
    /// By the task that was being polled and the thread.
    wakers: BTreeMap<(Option<u16>, u32), u64>,
    /// The longest first.
    longest: Vec<(Life, TaskState)>,
}

impl Totals {
    /// Keeps a life if it is one of the longest.
    fn list(&mut self, life: Life, state: TaskState) {
        let at = (self.longest).partition_point(|(other, _)| other.lifetime() >= life.lifetime());
        if at < MOST_LISTED {
            self.longest.insert(at, (life, state));
            self.longest.truncate(MOST_LISTED);
        }
    }

    fn row(self, name: u16, describe: &Describe<'_>) -> TaskReport {
        let ns = describe.ns_per_tick;
        let has_polls = (describe.names.has_polls.get(usize::from(name))).is_some_and(|has| *has);
        let known = |times: &Times| has_polls.then(|| times.document(ns));
        TaskReport {
            name: describe.task(name),
            tasks: self.tasks,
            done: self.done,
            cancelled: self.cancelled,
            live: self.live,
            begun_before: self.begun_before,
            end_unknown: self.unknown,
            polls: self.polls,
            moved: self.moved,
            wakes: self.wakes,
            unwoken_polls: self.unwoken,
            lifetime: self.lifetime.document(ns),
            busy: known(&self.busy),
            idle: known(&self.idle),
            queued: known(&self.queued),
            poll: known(&self.poll),
            queue: known(&self.queue),
            wakers: describe.wakers(&self.wakers),
            longest: (self.longest.iter())
                .map(|(life, state)| describe.life(life, *state, has_polls))
                .collect(),
        }
    }
}

/// What the document needs beside ticks.
struct Describe<'a> {
    names: &'a TaskNames,
    threads: &'a [Thread],
    roles: HashMap<i32, String>,
    ns_per_tick: f64,
    began: i64,
    windows: Windows,
}

impl<'a> Describe<'a> {
    fn new(
        (names, threads, manifest): (&'a TaskNames, &'a [Thread], &Manifest),
        windows: Windows,
    ) -> Self {
        Self {
            names,
            threads,
            roles: facts::roles(manifest),
            ns_per_tick: manifest.clock.ns_per_tick(),
            began: (manifest.clock.anchors.first()).map_or(0, |anchor| anchor.ticks),
            windows,
        }
    }

    fn task(&self, name: u16) -> String {
        (self.names.names.get(usize::from(name))).map_or_else(String::new, String::clone)
    }

    /// The name of a task, or else that of the thread.
    fn waker(&self, (by, thread): (Option<u16>, u32)) -> (Option<String>, Option<String>) {
        let task = by.map(|by| self.task(by));
        let thread = match (&task, self.threads.get(thread as usize)) {
            (Some(_), _) | (None, None) => None,
            (None, Some(thread)) => Some(match self.roles.get(&thread.tid) {
                Some(role) => role.clone(),
                None => format!("thread {}", thread.tid),
            }),
        };
        (task, thread)
    }

    /// What was polled while a task was queued for its longest time.
    fn behind(&self, life: &Life) -> Vec<TaskPolled> {
        let window = (self.windows).find(life.pid, life.number, life.longest_queue_end);
        let polled = window.iter().flat_map(|window| &window.polled);
        let ns = |ticks: i64| ticks as f64 * self.ns_per_tick;
        let mut all: Vec<TaskPolled> = polled
            .map(|(&name, polled)| TaskPolled {
                task: self.task(name),
                polled_ns: ns(polled.within),
                longest_ns: ns(polled.longest),
            })
            .collect();
        all.sort_by(|a, b| b.polled_ns.total_cmp(&a.polled_ns));
        all.truncate(MOST_BEHIND);
        all
    }

    /// Wakers, of threads with one name together.
    fn wakers(&self, wakers: &BTreeMap<(Option<u16>, u32), u64>) -> Vec<TaskWaker> {
        let mut all: BTreeMap<(Option<String>, Option<String>), u64> = BTreeMap::new();
        for (&waker, &wakes) in wakers {
            *all.entry(self.waker(waker)).or_default() += wakes;
        }
        let mut all: Vec<TaskWaker> = (all.into_iter())
            .map(|((task, thread), wakes)| TaskWaker {
                task,
                thread,
                wakes,
            })
            .collect();
        all.sort_by_key(|waker| Reverse(waker.wakes));
        all.truncate(MOST_WAKERS);
        all
    }

    fn life(&self, life: &Life, state: TaskState, has_polls: bool) -> TaskLife {
        let ns = |ticks: i64| ticks as f64 * self.ns_per_tick;
        let known = |ticks: i64| has_polls.then(|| ns(ticks));
        TaskLife {
            number: life.number,
            pid: life.pid,
            start_ns: ns(life.born.saturating_sub(self.began)),
            lifetime_ns: ns(life.lifetime()),
            busy_ns: known(life.busy),
            idle_ns: known(life.idle),
            queued_ns: known(life.queued),
            longest_queue_ns: known(life.longest_queue),
            queued_behind: self.behind(life),
            longest_idle_ns: known(life.longest_idle),
            woken_by: life.woken_by.map(|waker| {
                let (task, thread) = self.waker(waker);
                TaskWaker {
                    task,
                    thread,
                    wakes: 1,
                }
            }),
            polls: life.polls,
            state,
        }
    }
}
