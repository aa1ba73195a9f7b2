//! A program with spans, events and async tasks under `undertick record`: the counts of the report
//! are those of the program.

use std::collections::HashSet;
use std::future::{Future as _, poll_fn};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use tracing_subscriber::prelude::*;

/// Variable that makes this test the program.
const AS_PROGRAM: &str = "UNDERTICK_TRACING_TEST_PROGRAM";
const TASKS: usize = 50;
const SPANS: u64 = 1000;

#[test]
fn what_is_recorded_is_what_was_done() {
    if let Some(out) = std::env::var_os(AS_PROGRAM) {
        return program(Path::new(&out));
    }
    let Some(undertick) = undertick() else {
        println!("skipped: no target/release/undertick beside this test");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let recorded = Command::new(&undertick)
        .args(["record", "--no-calibration", "--kernel", "off", "-o"])
        .args([at("t.ut").as_os_str(), "--".as_ref()])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "what_is_recorded_is_what_was_done"])
        .env(AS_PROGRAM, at("counts"))
        .output()
        .unwrap();
    assert!(recorded.status.success(), "{recorded:?}");
    let counts = std::fs::read_to_string(at("counts")).unwrap();
    let counts: Vec<u64> = counts.split(' ').map(|n| n.parse().unwrap()).collect();
    let [polls, threads] = counts[..] else {
        panic!("{counts:?}")
    };
    assert_eq!((polls, threads), (TASKS as u64 * u64::from(POLLS), 2));

    let report = |table: &str| -> serde_json::Value {
        let mut command = Command::new(&undertick);
        command.arg("report").arg(at("t.ut")).arg("--json");
        if !table.is_empty() {
            std::fs::write(at("table.toml"), table).unwrap();
            command.arg("--table").arg(at("table.toml"));
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let by_themselves = report("");
    let interval = |report: &serde_json::Value, name: &str| {
        let all = report["intervals"].as_array().unwrap();
        let found = all.iter().find(|interval| interval["name"] == name);
        let found = found.unwrap_or_else(|| panic!("no {name} in {all:?}"));
        // Samples that were dropped on evidence were recorded, too.
        (
            found["count"].as_u64().unwrap() + found["culled"]["count"].as_u64().unwrap(),
            found["unmatched"].as_u64().unwrap(),
        )
    };
    assert_eq!(by_themselves["trace"]["lost"], 0);
    assert_eq!(interval(&by_themselves, "outer"), (SPANS, 0));
    assert_eq!(interval(&by_themselves, "inner"), (2 * SPANS, 0));
    // A poll of a task is a span of its thread; the `tracing` span is also entered to be dropped.
    let (entered, unmatched) = interval(&by_themselves, "task");
    assert_eq!(unmatched, 0);
    assert_eq!(entered, polls + TASKS as u64);

    // Each poll of a task is one span, in which others lie.
    let request = (by_themselves["tasks"]["rows"].as_array().unwrap().iter())
        .find(|row| row["name"] == "request")
        .unwrap();
    let counts = ["tasks", "done", "polls", "wakes"].map(|of| request[of].as_u64().unwrap());
    let tasks = TASKS as u64;
    assert_eq!(counts, [tasks, tasks, 2 * tasks, tasks]);
    assert_eq!(interval(&by_themselves, "request"), (2 * tasks, 0));
    let paths = by_themselves["paths"].as_array().unwrap();
    let within = paths.iter().find(|path| path["name"] == "within").unwrap();
    let around = &paths[within["parent"].as_u64().unwrap() as usize];
    assert_eq!(around["name"], "request");

    let lives = report(
        "[[interval]]\nname = 'life'\nstart = 'task new'\nend = 'task closed'\nmatch = 'message'\n",
    );
    assert_eq!(interval(&lives, "life"), (TASKS as u64, 0));
    assert_eq!(
        payloads(&undertick, &at("t.ut"), &at("rows.csv")),
        [-7, 7, 1 << 40]
    );
}

/// Returns the payloads of the program's tracing events, by `undertick export`.
fn payloads(undertick: &Path, trace: &Path, csv: &Path) -> [i64; 3] {
    let exported = (Command::new(undertick).arg("export").arg(trace))
        .args(["--to", "csv"])
        .arg(csv)
        .status()
        .unwrap();
    assert!(exported.success());
    let text = std::fs::read_to_string(csv).unwrap();
    let mut found: Vec<i64> = (text.lines())
        .filter(|line| line.contains(",recorded:"))
        .map(|line| line.rsplit(',').next().unwrap().parse().unwrap())
        .collect();
    found.sort_unstable();
    found.try_into().unwrap()
}

/// Returns the command line beside this test, if it has been built.
fn undertick() -> Option<PathBuf> {
    let exe = std::env::current_exe().ok()?;
    let found = exe.parent()?.parent()?.join("undertick");
    found.exists().then_some(found)
}

fn program(out: &Path) {
    (tracing_subscriber::registry().with(undertick_tracing::layer())).init();
    for n in 0..SPANS {
        let _outer = tracing::info_span!("outer", n).entered();
        for _ in 0..2 {
            tracing::debug_span!("inner").in_scope(|| std::hint::black_box(n));
        }
    }
    tracing::info!(text = "x", small = 7_u8, later = 9, "first integer");
    tracing::info!(other = 3, payload = 1_u64 << 40, "the field named payload");
    tracing::info!(below = -7);
    let (polls, threads) = tasks();
    recorded_as_tasks();
    std::fs::write(out, format!("{polls} {threads}")).unwrap();
}

/// Tasks that pause once, within a span of `tracing` and in it one that no task is of.
fn recorded_as_tasks() {
    let waker = Waker::from(Arc::new(NoopWake));
    let mut context = Context::from_waker(&waker);
    for n in 0..TASKS {
        let mut is_first = true;
        let task = poll_fn(move |context: &mut Context<'_>| {
            assert_eq!(
                tracing::Span::current().metadata().map(|of| of.name()),
                Some("request")
            );
            tracing::info_span!("within").in_scope(|| std::hint::black_box(n));
            match std::mem::take(&mut is_first) {
                true => {
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
                false => Poll::Ready(n),
            }
        });
        let mut task = Box::pin(undertick_tracing::Instrument::instrument(
            task,
            tracing::info_span!("request"),
        ));
        assert_eq!(task.as_mut().poll(&mut context), Poll::Pending);
        assert_eq!(task.as_mut().poll(&mut context), Poll::Ready(n));
        assert!(tracing::Span::current().is_none());
    }
    let nothing = tracing::Span::none();
    let mut task = Box::pin(undertick_tracing::Instrument::instrument(
        async { 7 },
        nothing,
    ));
    assert_eq!(task.as_mut().poll(&mut context), Poll::Ready(7));
}

/// A task that moves from thread to thread.
type Task = Pin<Box<dyn std::future::Future<Output = ()> + Send>>;

/// Number of polls of each task.
const POLLS: u32 = 20;

/// Runs tasks on two threads that hand them to each other after every poll. Returns the number of
/// polls, and the fewest threads on which a task was polled.
fn tasks() -> (u64, usize) {
    let polls = Arc::new(AtomicU64::new(0));
    let seen: Vec<_> = (0..TASKS)
        .map(|_| Arc::new(Mutex::new(HashSet::new())))
        .collect();
    let (to_a, from_b) = channel::<Task>();
    let (to_b, from_a) = channel::<Task>();
    for seen in &seen {
        let (polls, seen) = (Arc::clone(&polls), Arc::clone(seen));
        let mut left = POLLS;
        let task = poll_fn(move |_| {
            polls.fetch_add(1, Ordering::Relaxed);
            seen.lock().unwrap().insert(std::thread::current().id());
            left -= 1;
            match left {
                0 => Poll::Ready(()),
                _ => Poll::Pending,
            }
        });
        let task = tracing::Instrument::instrument(task, tracing::info_span!("task"));
        to_a.send(Box::pin(task)).unwrap();
    }
    let a = std::thread::spawn(move || hand_on(&from_b, &to_b));
    hand_on(&from_a, &to_a);
    a.join().unwrap();
    let least = seen.iter().map(|seen| seen.lock().unwrap().len()).min();
    (polls.load(Ordering::Relaxed), least.unwrap())
}

/// Tasks are polled without being woken.
struct NoopWake;

impl Wake for NoopWake {
    fn wake(self: Arc<Self>) {}
}

/// Polls each task that comes, once, and hands it to the other thread. All tasks are polled equally
/// often, so each thread gets half of their polls.
fn hand_on(from: &Receiver<Task>, to: &Sender<Task>) {
    let waker = Waker::from(Arc::new(NoopWake));
    let mut context = Context::from_waker(&waker);
    for _ in 0..TASKS as u32 * POLLS / 2 {
        let mut task = from.recv().unwrap();
        if task.as_mut().poll(&mut context).is_pending() {
            to.send(task).unwrap();
        }
    }
}
