//! Reads what the records of a trace say of tasks.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use undertick_analyze::Failed;
use undertick_analyze::columns::Writer;
use undertick_analyze::kinds::{BEGIN, BEGIN_ORDERED, END, END_ORDERED, GAP, INSTANT};
use undertick_analyze::parallel::available_cpus;
use undertick_analyze::spool::{Spool, Words};
use undertick_format::read::Trace;
use undertick_format::rows::RowsOfRing;
use undertick_format::tasks::TaskEvent;

use super::{Meaning, Meanings, TaskNames};
use crate::ring_rows;

/// Most tables of meanings, which take up to 256 KiB each; others are lists.
const MOST_TABLES: usize = 64;
/// Largest time, and less 0 the smallest, ticks: differences of times fit.
const MOST_TICKS: i64 = 1 << 61;
/// Most polls inside one another that a ring's thread is in.
const MOST_OPEN: usize = 1 << 12;
/// Place of all threads beyond those for which a record has room.
const UNKNOWN_THREAD: u32 = (1 << 31) - 1;

/// What happened to a task, in the order of equal times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskChange {
    New,
    Woken,
    /// Until this time.
    Polled(i64),
    Done,
    Cancelled,
}

/// A record of a task, for sorting: by number, time, and what happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) number: u64,
    pub(super) ts: i64,
    pub(super) change: TaskChange,
    /// Place of its name.
    pub(super) name: u16,
    pub(super) pid: i32,
    /// Place in [`Records::threads`] of the thread that did it.
    pub(super) thread: u32,
    /// Place of the name of the task that the thread was polling, of a wake.
    pub(super) by: Option<u16>,
}

impl Entry {
    /// The words are in the order in which records are sorted.
    fn words(&self) -> Words {
        let (order, last) = match self.change {
            TaskChange::New => (0, 0),
            TaskChange::Woken => (1, self.by.map_or(0, |by| i64::from(by) + 1)),
            TaskChange::Polled(end) => (2, end),
            TaskChange::Done => (3, 0),
            TaskChange::Cancelled => (4, 0),
        };
        // The process is that of the thread.
        let packed = order << 60 | i64::from(self.name) << 32 | i64::from(self.thread);
        [self.number as i64, self.ts, packed, last]
    }

    fn from_words([number, ts, packed, last]: Words, threads: &[Thread]) -> Self {
        let thread = (packed & i64::from(u32::MAX)) as u32;
        Self {
            number: number as u64,
            ts,
            change: match packed >> 60 {
                0 => TaskChange::New,
                1 => TaskChange::Woken,
                2 => TaskChange::Polled(last),
                3 => TaskChange::Done,
                _ => TaskChange::Cancelled,
            },
            name: (packed >> 32 & 0x1fff) as u16,
            pid: threads.get(thread as usize).map_or(0, |thread| thread.pid),
            thread,
            by: (packed >> 60 == 1 && last > 0).then(|| (last - 1) as u16),
        }
    }
}

/// A thread that wrote records of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Thread {
    pub(super) pid: i32,
    pub(super) tid: i32,
}

/// All that a trace says of tasks.
#[derive(Clone, Debug)]
pub(super) struct Records {
    spool: Spool,
    threads: Vec<Thread>,
    /// The latest time of all rows.
    pub(super) last: i64,
}

impl Records {
    pub(super) fn new(spool: Spool, threads: Threads, last: i64) -> Self {
        let threads = threads.0.into_inner().expect("no worker panics with it").1;
        Self {
            spool,
            threads,
            last,
        }
    }

    /// All of them, by task and time.
    pub(super) fn sorted(self) -> (impl Iterator<Item = Entry>, Arc<[Thread]>) {
        let threads: Arc<[Thread]> = self.threads.into();
        let known = Arc::clone(&threads);
        let entries = (self.spool.sorted()).map(move |words| Entry::from_words(words, &known));
        (entries, threads)
    }
}

/// A file may have any times.
fn within(ts: i64) -> i64 {
    ts.clamp(-MOST_TICKS, MOST_TICKS)
}

/// Threads of all workers, numbered in the order in which they come.
#[derive(Debug, Default)]
pub(super) struct Threads(Mutex<(BTreeMap<Thread, u32>, Vec<Thread>)>);

impl Threads {
    fn place(&self, thread: Thread) -> u32 {
        let mut known = self.0.lock().expect("no worker panics with it");
        let (places, all) = &mut *known;
        if let Some(&place) = places.get(&thread) {
            return place;
        }
        if all.len() as u32 >= UNKNOWN_THREAD {
            return UNKNOWN_THREAD;
        }
        all.push(thread);
        places.insert(thread, all.len() as u32 - 1);
        all.len() as u32 - 1
    }
}

/// Reads the records of a trace, in parallel.
pub(super) fn read(
    trace: &Trace,
    names: &TaskNames,
    progress: &mut dyn FnMut(f64),
) -> Result<Records, Failed> {
    let groups = trace.groups()?;
    let threads = Threads::default();
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (done, finished) = mpsc::channel::<()>();
    let readers = std::thread::scope(|scope| {
        let work = || -> Result<Reader<'_>, Failed> {
            let mut reader = Reader::new(names, &threads);
            while !failed.load(Ordering::Relaxed) {
                let Some(group) = groups.get(next.fetch_add(1, Ordering::Relaxed)) else {
                    break;
                };
                let take = |writer, rows: &RowsOfRing<'_>| reader.take(writer, rows);
                if let Err(error) = ring_rows::pass_on(trace, group, |_| true, take) {
                    failed.store(true, Ordering::Relaxed);
                    return Err(error);
                }
                let _ = done.send(());
            }
            Ok(reader)
        };
        let workers = available_cpus().min(groups.len()).max(1);
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let mut n = 0;
        while workers.iter().any(|worker| !worker.is_finished()) {
            n += usize::from(finished.recv_timeout(Duration::from_millis(50)).is_ok());
            progress(n as f64 / groups.len().max(1) as f64);
        }
        (workers.into_iter())
            .map(|worker| worker.join().expect("a worker does not panic"))
            .collect::<Result<Vec<Reader<'_>>, Failed>>()
    })?;
    let last = trace.manifest.clock.anchors.last();
    let last = last.map_or(i64::MIN, |anchor| anchor.ticks);
    let last = (readers.iter().map(|reader| reader.last)).fold(within(last), i64::max);
    let mut spool = Spool::default();
    for reader in readers {
        spool.append(reader.finish(last));
    }
    Ok(Records::new(spool, threads, last))
}

/// A span of a name of tasks that has begun.
#[derive(Clone, Copy, Debug)]
struct OpenPoll {
    event: i32,
    /// The task, by name and number; `None` where no record named it.
    task: Option<(u16, u64)>,
    start: i64,
}

/// What is known of a ring so far.
#[derive(Debug)]
struct Ring {
    thread: u32,
    meanings: Arc<Meanings>,
    /// The task that the next poll is of.
    polled: Option<(u16, u64)>,
    open: Vec<OpenPoll>,
}

/// Takes the rows of rings, each ring's in order.
pub(super) struct Reader<'a> {
    names: &'a TaskNames,
    threads: &'a Threads,
    /// By the events that mean something: most processes of a program have the same.
    meanings: HashMap<BTreeMap<u16, Meaning>, Arc<Meanings>>,
    by_pid: HashMap<i32, Arc<Meanings>>,
    rings: HashMap<i32, Ring>,
    found: Spool,
    last: i64,
}

impl<'a> Reader<'a> {
    pub(super) fn new(names: &'a TaskNames, threads: &'a Threads) -> Self {
        Self {
            names,
            threads,
            meanings: HashMap::new(),
            by_pid: HashMap::new(),
            rings: HashMap::new(),
            found: Spool::default(),
            last: i64::MIN,
        }
    }

    /// Takes rows of a ring, in order.
    pub(super) fn take(&mut self, writer: Writer, rows: &RowsOfRing<'_>) {
        let Writer { pid, tid, .. } = writer;
        let Self {
            names,
            meanings,
            by_pid,
            ..
        } = self;
        let ring = self.rings.entry(writer.ring).or_insert_with(|| {
            let meanings = by_pid.entry(pid).or_insert_with(|| {
                let events = names.of_process(pid);
                let is_table = meanings.len() < MOST_TABLES;
                let known = meanings.entry(events);
                let new = |events: &BTreeMap<u16, Meaning>| Meanings::new(events, is_table);
                Arc::clone(known.or_insert_with_key(|events| Arc::new(new(events))))
            });
            Ring {
                thread: self.threads.place(Thread { pid, tid }),
                meanings: Arc::clone(meanings),
                polled: None,
                open: Vec::new(),
            }
        });
        for at in 0..rows.ts.len() {
            let (ts, kind) = (within(rows.ts[at]), rows.kind[at]);
            self.last = self.last.max(ts);
            if kind == GAP {
                // What came between is not known.
                ring.polled = None;
                ring.open.clear();
                continue;
            }
            let meaning = ring.meanings.get(rows.event[at]);
            let Some(meaning) = meaning else { continue };
            let entry = |number, name, change| Entry {
                number,
                ts,
                change,
                name,
                pid,
                thread: ring.thread,
                by: None,
            };
            match (kind, meaning) {
                (BEGIN | BEGIN_ORDERED, Meaning::Poll(name)) if ring.open.len() < MOST_OPEN => {
                    let task = ring.polled.take().filter(|polled| polled.0 == name);
                    ring.open.push(OpenPoll {
                        event: rows.event[at],
                        task,
                        start: ts,
                    });
                }
                (END | END_ORDERED, Meaning::Poll(_)) => {
                    let event = rows.event[at];
                    let begun = ring.open.iter().rposition(|open| open.event == event);
                    let Some(begun) = begun else { continue };
                    let open = ring.open[begun];
                    ring.open.truncate(begun);
                    if let Some((name, number)) = open.task {
                        let poll = Entry {
                            ts: open.start,
                            ..entry(number, name, TaskChange::Polled(ts))
                        };
                        self.found.push(poll.words());
                    }
                }
                (INSTANT, Meaning::Task(name, event)) => {
                    let number = rows.payload[at] as u64;
                    let change = match event {
                        TaskEvent::Polled => {
                            ring.polled = Some((name, number));
                            continue;
                        }
                        TaskEvent::New => TaskChange::New,
                        TaskEvent::Woken => TaskChange::Woken,
                        TaskEvent::Done => TaskChange::Done,
                        TaskEvent::Cancelled => TaskChange::Cancelled,
                    };
                    let by = ring.open.iter().rev().find_map(|open| open.task);
                    let entry = Entry {
                        by: by.map(|(by, _)| by),
                        ..entry(number, name, change)
                    };
                    self.found.push(entry.words());
                }
                _ => {}
            }
        }
    }

    /// All rows have come. Polls that have not ended last until `last`.
    pub(super) fn finish(mut self, last: i64) -> Spool {
        for ring in self.rings.values() {
            for open in &ring.open {
                let Some((name, number)) = open.task else {
                    continue;
                };
                let poll = Entry {
                    number,
                    ts: open.start,
                    change: TaskChange::Polled(last.max(open.start)),
                    name,
                    pid: 0,
                    thread: ring.thread,
                    by: None,
                };
                self.found.push(poll.words());
            }
        }
        self.found
    }
}
