//! A program with a Tokio runtime under `undertick record`: what the report says of its tasks lies between
//! the readings that the program took inside and outside of the recorder's calls.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use undertick::task_span;

/// Variable that makes a test of this file the program.
const AS_PROGRAM: &str = "UNDERTICK_TOKIO_TEST_PROGRAM";
const TASKS: usize = 40;
const POLLS: usize = 25;
const CANCELLED: u64 = 7;
const LIVE: u64 = 5;
/// The clock of the trace and that of the program may differ in rate by so much; both move in steps.
const RATE: f64 = 3e-4;
const STEP_NS: f64 = 20.0;

/// Records a test of this file as the program; what it printed, and the trace's report.
fn recorded(test: &str) -> Option<(Value, Value)> {
    let undertick = undertick()?;
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let output = Command::new(&undertick)
        .args(["record", "--no-calibration", "--kernel", "off", "-o"])
        .args([at("t.ut").as_os_str(), "--".as_ref()])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .env(AS_PROGRAM, at("truth"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let truth = std::fs::read(at("truth")).unwrap();
    let report = Command::new(&undertick)
        .arg("tasks")
        .arg(at("t.ut"))
        .arg("--json")
        .output()
        .unwrap();
    assert!(report.status.success(), "{report:?}");
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!(report["trace"]["lost"], 0);
    Some((serde_json::from_slice(&truth).unwrap(), report))
}

/// Returns the command line beside this test, if it has been built.
fn undertick() -> Option<PathBuf> {
    let exe = std::env::current_exe().ok()?;
    let found = exe.parent()?.parent()?.join("undertick");
    if !found.exists() {
        println!("skipped: no undertick beside this test");
        return None;
    }
    Some(found)
}

fn as_program() -> Option<PathBuf> {
    std::env::var_os(AS_PROGRAM).map(PathBuf::from)
}

fn row<'a>(report: &'a Value, name: &str) -> &'a Value {
    let rows = report["tasks"]["rows"].as_array().expect("rows");
    let found = rows.iter().find(|row| row["name"] == name);
    found.unwrap_or_else(|| panic!("no tasks {name} in {rows:#?}"))
}

fn n(row: &Value, what: &str) -> u64 {
    row[what]
        .as_u64()
        .unwrap_or_else(|| panic!("{what} in {row:#?}"))
}

fn total(row: &Value, what: &str) -> f64 {
    (row[what]["total_ns"].as_f64()).unwrap_or_else(|| panic!("{what} in {row:#?}"))
}

/// Checks that busy, idle and queued time are the lifetime.
fn is_whole(row: &Value) {
    let parts: f64 = (["busy", "idle", "queued"].iter())
        .map(|part| total(row, part))
        .sum();
    let all = total(row, "lifetime");
    // Sums of integers, each multiplied by the same factor.
    assert!((parts - all).abs() <= 1e-9 * all, "{parts} and {all}");
}

#[test]
fn busy_idle_and_queued_time_are_those_of_the_program() {
    if let Some(out) = as_program() {
        return scheduled(&out);
    }
    let Some((truth, report)) = recorded("busy_idle_and_queued_time_are_those_of_the_program")
    else {
        return;
    };
    let found = row(&report, "scheduled");
    let counts =
        ["tasks", "done", "polls", "wakes", "unwoken_polls", "live"].map(|of| n(found, of));
    let (tasks, polls) = (TASKS as u64, (TASKS * POLLS) as u64);
    assert_eq!(counts, [tasks, tasks, polls, polls - tasks, 0, 0]);
    is_whole(found);
    for part in ["busy", "queued", "lifetime"] {
        let bound = |side: usize| truth[part][side].as_f64().unwrap();
        // Each reading may be a step off.
        let slack = 2.0 * polls as f64 * STEP_NS;
        let (lo, hi) = (
            bound(0) * (1.0 - RATE) - slack,
            bound(1) * (1.0 + RATE) + slack,
        );
        let total = total(found, part);
        assert!(
            (lo..=hi).contains(&total),
            "{part}: {total} of [{lo}, {hi}]"
        );
        assert!(lo > 0.0, "{part}: {lo} bounds nothing");
    }
    let waker = &found["wakers"][0];
    assert_eq!(
        (&waker["thread"], &waker["task"]),
        (&json!("waker"), &Value::Null)
    );
    assert_eq!(n(waker, "wakes"), polls - tasks);
}

#[test]
fn tasks_end_as_the_program_ended_them() {
    if let Some(out) = as_program() {
        return ends(&out);
    }
    let Some((truth, report)) = recorded("tasks_end_as_the_program_ended_them") else {
        return;
    };
    let aborted = row(&report, "aborted");
    assert_eq!(
        [n(aborted, "tasks"), n(aborted, "cancelled")],
        [CANCELLED; 2]
    );
    is_whole(aborted);
    let live = row(&report, "live");
    assert_eq!([n(live, "tasks"), n(live, "live")], [LIVE; 2]);
    is_whole(live);
    // The one that waits for another is in two tasks of its own, and is woken by that one.
    let outer = row(&report, "outer");
    let inner = row(&report, "inner");
    assert_eq!([n(outer, "done"), n(inner, "done")], [1, 1]);
    assert_eq!(n(inner, "polls"), truth["inner polls"].as_u64().unwrap());
    assert!(total(inner, "busy") <= total(outer, "busy"));
    for found in [outer, inner] {
        is_whole(found);
        assert_eq!(found["wakers"][0]["task"], "sender", "{found:#?}");
    }
    let panics = row(&report, "panics");
    assert_eq!([n(panics, "cancelled"), n(panics, "polls")], [1, 1]);
    // Hooks record workers that have nothing to do.
    let parked = report["intervals"].as_array().unwrap().iter();
    assert!(
        parked.clone().any(|of| of["name"] == "tokio parked"),
        "{report:#?}"
    );
}

/// Every task of the runtime, by the place that spawned it.
#[cfg(tokio_unstable)]
#[test]
fn spawned_tasks_are_found_by_the_callbacks_of_the_runtime() {
    if let Some(out) = as_program() {
        return spawned(&out);
    }
    let test = "spawned_tasks_are_found_by_the_callbacks_of_the_runtime";
    let Some((truth, report)) = recorded(test) else {
        return;
    };
    let name = truth["place"].as_str().unwrap();
    let found = row(&report, name);
    let counts = ["tasks", "done", "polls", "wakes", "live"].map(|of| n(found, of));
    assert_eq!(counts, [6, 6, truth["polls"].as_u64().unwrap(), 0, 0]);
    is_whole(found);
    let aborted = row(&report, truth["aborted"].as_str().unwrap());
    let [tasks, done, cancelled] = ["tasks", "done", "cancelled"].map(|of| n(aborted, of));
    // Tokio drops an aborted task in a last poll, as its callbacks see it.
    assert_eq!([tasks, done + cancelled], [3; 2]);
    // Blocking work is no task.
    let rows = report["tasks"]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{rows:#?}");
    // Spans of the task lie in its polls.
    let paths = report["paths"].as_array().unwrap();
    let within = paths.iter().find(|path| path["name"] == "within").unwrap();
    assert_eq!(within["calls"], truth["polls"]);
    assert_eq!(
        paths[within["parent"].as_u64().unwrap() as usize]["name"],
        name
    );
}

#[cfg(tokio_unstable)]
fn spawned(out: &Path) {
    let runtime = runtime(2);
    let polls = Arc::new(Mutex::new(0_u64));
    let all: Vec<_> = (0..6)
        .map(|n| {
            let polls = Arc::clone(&polls);
            let mut left = n;
            let task = std::future::poll_fn(move |context| {
                let _within = undertick::span!("within");
                *polls.lock().unwrap() += 1;
                context.waker().wake_by_ref();
                left -= 1;
                if left < 0 {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            });
            let _entered = runtime.enter();
            (tokio::spawn(task), line!())
        })
        .collect();
    let place = format!("{}:{}", file!(), all[0].1);
    for (task, _) in all {
        runtime.block_on(task).unwrap();
    }
    let aborted: Vec<_> = (0..3)
        .map(|_| {
            let _entered = runtime.enter();
            (tokio::spawn(std::future::pending::<()>()), line!())
        })
        .collect();
    let pending = format!("{}:{}", file!(), aborted[0].1);
    // All of them wait by then.
    std::thread::sleep(Duration::from_millis(20));
    for (task, _) in aborted {
        task.abort();
        assert!(runtime.block_on(task).unwrap_err().is_cancelled());
    }
    for _ in 0..5 {
        runtime.block_on(runtime.spawn_blocking(|| ())).unwrap();
    }
    // A callback may come after the task has been waited for.
    drop(runtime);
    let truth = json!({"place": place, "aborted": pending, "polls": *polls.lock().unwrap()});
    std::fs::write(out, truth.to_string()).unwrap();
}

fn runtime(threads: usize) -> Runtime {
    let mut builder = Builder::new_multi_thread();
    undertick_tokio::hooks(builder.worker_threads(threads))
        .build()
        .unwrap()
}

/// When a poll began and ended, inside of the recorder's calls and outside of them.
#[derive(Clone, Copy)]
struct Polled {
    outside: [Instant; 2],
    inside: [Instant; 2],
}

/// What a task of the program did.
#[derive(Default)]
struct Log {
    polls: Vec<Polled>,
    /// Before and after each wake.
    wakes: Vec<[Instant; 2]>,
}

type Wake = (Waker, Arc<Mutex<Log>>, Duration);

/// Works in each poll, and asks to be woken later.
struct Scheduled {
    log: Arc<Mutex<Log>>,
    wakes: Sender<Wake>,
    left: usize,
}

impl Future for Scheduled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let start = Instant::now();
        let work = Duration::from_micros(5 + self.left as u64);
        while start.elapsed() < work {}
        self.left -= 1;
        let is_last = self.left == 0;
        let waker = context.waker().clone();
        let end = Instant::now();

        // Sent later, it would be woken in a poll.
        self.log.lock().unwrap().polls.push(Polled {
            outside: [start, end],
            inside: [start, end],
        });
        if is_last {
            return Poll::Ready(());
        }
        let pause = Duration::from_micros(20 * (self.left as u64 % 7));
        self.wakes
            .send((waker, Arc::clone(&self.log), pause))
            .unwrap();
        // Some wakes come before the poll has ended.
        if self.left % 5 == 0 {
            std::thread::sleep(Duration::from_micros(200));
        }
        let end = Instant::now();
        let mut log = self.log.lock().unwrap();
        log.polls.last_mut().unwrap().inside[1] = end;
        Poll::Pending
    }
}

/// Reads the clock outside of the recorder's calls.
struct Outside<F>(Pin<Box<F>>, Arc<Mutex<Log>>);

impl<F: Future> Future for Outside<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let before = Instant::now();
        let result = self.0.as_mut().poll(context);
        let outside = [before, Instant::now()];
        self.1.lock().unwrap().polls.last_mut().unwrap().outside = outside;
        result
    }
}

fn wake_all(wakes: &Receiver<Wake>) {
    undertick::thread_name("waker");
    for (waker, log, pause) in wakes {
        std::thread::sleep(pause);
        let before = Instant::now();
        waker.wake();
        log.lock().unwrap().wakes.push([before, Instant::now()]);
    }
}

/// The program of the first test: writes bounds of the sums, ns.
fn scheduled(out: &Path) {
    let (sender, receiver) = channel();
    let waker = std::thread::spawn(move || wake_all(&receiver));
    let runtime = runtime(2);
    let all: Vec<_> = (0..TASKS)
        .map(|_| {
            let log = Arc::new(Mutex::new(Log::default()));
            let future = Scheduled {
                log: Arc::clone(&log),
                wakes: sender.clone(),
                left: POLLS,
            };
            let before = Instant::now();
            let task = task_span!("scheduled", future);
            let created = [before, Instant::now()];
            let task = Outside(Box::pin(task), Arc::clone(&log));
            (runtime.spawn(task), created, log)
        })
        .collect();
    drop(sender);
    let mut bounds = [[0.0; 2]; 3];
    let mut add = |part: usize, [lo, hi]: [f64; 2]| {
        bounds[part][0] += lo.max(0.0);
        bounds[part][1] += hi.max(0.0);
    };
    let logs: Vec<_> = (all.into_iter())
        .map(|(task, created, log)| {
            runtime.block_on(task).unwrap();
            (created, log)
        })
        .collect();
    waker.join().unwrap();
    for (created, log) in logs {
        let log = log.lock().unwrap();
        for (at, poll) in log.polls.iter().enumerate() {
            add(
                0,
                [
                    ns(poll.inside[0], poll.inside[1]),
                    ns(poll.outside[0], poll.outside[1]),
                ],
            );
            // It is queued from a wake, or from the end of the poll in which it was woken.
            let since = match at.checked_sub(1) {
                None => created,
                Some(before) => {
                    let [wake, before] = [log.wakes[before], {
                        let poll = log.polls[before];
                        [poll.inside[1], poll.outside[1]]
                    }];
                    [wake[0].max(before[0]), wake[1].max(before[1])]
                }
            };
            add(
                1,
                [ns(since[1], poll.outside[0]), ns(since[0], poll.inside[0])],
            );
        }
        let last = log.polls.last().unwrap();
        add(
            2,
            [
                ns(created[1], last.inside[1]),
                ns(created[0], last.outside[1]),
            ],
        );
    }
    let [busy, queued, lifetime] = bounds;
    let truth = json!({"busy": busy, "queued": queued, "lifetime": lifetime});
    std::fs::write(out, truth.to_string()).unwrap();
}

fn ns(from: Instant, to: Instant) -> f64 {
    match to.checked_duration_since(from) {
        Some(later) => later.as_nanos() as f64,
        None => -(from.duration_since(to).as_nanos() as f64),
    }
}

/// The program of the second test.
fn ends(out: &Path) {
    let runtime = runtime(2);
    let aborted: Vec<_> = (0..CANCELLED)
        .map(|_| {
            let _in_runtime = runtime.enter();
            undertick_tokio::spawn!("aborted", std::future::pending::<()>())
        })
        .collect();
    for task in aborted {
        task.abort();
        assert!(runtime.block_on(task).unwrap_err().is_cancelled());
    }
    let panics = runtime.spawn(task_span!("panics", async { panic!("as it should") }));
    assert!(runtime.block_on(panics).unwrap_err().is_panic());
    let (tell, told) = oneshot::channel::<()>();
    let (asked, ask) = oneshot::channel::<()>();
    let polls = Arc::new(Mutex::new(0_u64));
    let outer = {
        let polls = Arc::clone(&polls);
        let inner = task_span!("inner", async move {
            let mut told = Box::pin(told);
            let mut asked = Some(asked);
            std::future::poll_fn(|context| {
                *polls.lock().unwrap() += 1;
                let result = told.as_mut().poll(context);
                // Only now is the sender to send.
                asked.take().map(|asked| asked.send(()));
                result
            })
            .await
            .unwrap();
        });
        runtime.spawn(task_span!("outer", inner))
    };
    let sender = runtime.spawn(task_span!("sender", async move {
        ask.await.unwrap();
        tell.send(()).unwrap();
    }));
    runtime.block_on(outer).unwrap();
    runtime.block_on(sender).unwrap();
    let live: Vec<_> = (0..LIVE)
        .map(|_| runtime.spawn(task_span!("live", std::future::pending::<()>())))
        .collect();
    std::thread::sleep(Duration::from_millis(20));
    let truth = json!({"inner polls": *polls.lock().unwrap()});
    std::fs::write(out, truth.to_string()).unwrap();
    drop(live);
    // The runtime would drop its tasks.
    std::process::exit(0);
}
