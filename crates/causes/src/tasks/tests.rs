use rand::RngExt as _;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use undertick_analyze::columns::Writer;
use undertick_analyze::kinds::{BEGIN, END, GAP, INSTANT};
use undertick_document::{TaskReport, TaskState};
use undertick_format::manifest::{Name, Thread as ThreadName};
use undertick_format::rows::RowsOfRing;

use super::reader::{Reader, Records, Threads};
use super::*;
use crate::support::{manifest, named};

/// Events: a name's spans, then its records, in the order of [`TaskEvent::ALL`].
const POLL: i32 = 100;
const NEW: i32 = 101;
const POLLED: i32 = 102;
const WOKEN: i32 = 103;
const DONE: i32 = 104;
const CANCELLED: i32 = 105;
/// The same of another name.
const OTHER: i32 = 100;

type Row = (i64, i8, i32, i64);

fn manifest_of_two() -> Manifest {
    let mut names: Vec<(u16, String)> = Vec::new();
    for (first, name) in [(POLL, "request"), (POLL + OTHER, "job")] {
        names.push((first as u16, name.to_owned()));
        let events = TaskEvent::ALL.iter().zip(first as u16 + 1..);
        names.extend(events.map(|(event, n)| (n, format!("{name}{}", event.suffix()))));
    }
    let names: Vec<(u16, &str)> = (names.iter())
        .map(|(n, name)| (*n, name.as_str()))
        .collect();
    named(&names)
}

/// The report of rings, each of a thread 100 above its number, of process 1 unless it says another.
fn reported(manifest: &Manifest, rings: &[(i32, Vec<Row>)], last: i64) -> Vec<TaskReport> {
    let names = TaskNames::new(manifest);
    let threads = Threads::default();
    let mut reader = Reader::new(&names, &threads);
    for (ring, (pid, rows)) in rings.iter().enumerate() {
        let writer = Writer {
            ring: ring as i32,
            pid: *pid,
            tid: 100 + ring as i32,
            host: 0,
        };
        // In pieces, as rows come.
        for rows in rows.chunks(3) {
            let ts: Vec<i64> = rows.iter().map(|row| row.0).collect();
            let kind: Vec<i8> = rows.iter().map(|row| row.1).collect();
            let event: Vec<i32> = rows.iter().map(|row| row.2).collect();
            let payload: Vec<i64> = rows.iter().map(|row| row.3).collect();
            let rows = RowsOfRing {
                ts: &ts,
                kind: &kind,
                descheduled: &vec![0; rows.len()],
                event: &event,
                payload: &payload,
            };
            reader.take(writer, &rows);
        }
    }
    let spool = reader.finish(last);
    life::rows(Records::new(spool, threads, last), &names, manifest)
}

fn poll(start: i64, end: i64, number: i64) -> [Row; 3] {
    [
        (start - 1, INSTANT, POLLED, number),
        (start, BEGIN, POLL, 0),
        (end, END, POLL, 0),
    ]
}

fn note(ts: i64, event: i32, number: i64) -> Row {
    (ts, INSTANT, event, number)
}

/// Busy, idle, queued and lifetime, ns.
fn times(row: &TaskReport) -> [f64; 4] {
    let part = |of: &Option<undertick_document::TaskTimes>| of.as_ref().unwrap().total_ns;
    [
        part(&row.busy),
        part(&row.idle),
        part(&row.queued),
        row.lifetime.total_ns,
    ]
}

#[test]
fn a_life_is_busy_idle_and_queued() {
    // Created at 10, polled from 15 to 25; woken at 45, polled from 50 to 53, in which it is woken
    // again; polled from 60 to 61, and ended.
    let mut own = vec![note(10, NEW, 7)];
    own.extend(poll(15, 25, 7));
    own.extend(poll(50, 53, 7));
    own.extend(poll(60, 61, 7));
    own.push(note(62, DONE, 7));
    let waker = vec![note(45, WOKEN, 7), note(51, WOKEN, 7), note(52, WOKEN, 7)];
    let rows = reported(&manifest_of_two(), &[(1, own), (1, waker)], 1000);
    let [row] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!(row.name, "request");
    assert_eq!(times(row), [14.0, 20.0, 17.0, 51.0]);
    let counts = [row.tasks, row.done, row.polls, row.wakes, row.unwoken_polls];
    assert_eq!(counts, [1, 1, 3, 2, 0]);
    assert_eq!(row.queue.as_ref().unwrap().max_ns, Some(7.0));
    assert_eq!(row.longest[0].longest_queue_ns, Some(7.0));
    assert_eq!(row.longest[0].state, TaskState::Done);
    let wakers: Vec<_> = row
        .wakers
        .iter()
        .map(|of| (of.thread.as_deref(), of.wakes))
        .collect();
    assert_eq!(wakers, [(Some("thread 101"), 2)]);
}

#[test]
fn what_is_not_recorded_is_not_guessed() {
    // Polled without a wake: idle until then. Its creation is missing.
    let mut own = poll(20, 30, 1).to_vec();
    own.extend(poll(40, 50, 1));
    own.push(note(51, CANCELLED, 1));
    // Of another process, with the same number; it still lives.
    let mut other = vec![note(5, NEW, 1)];
    other.extend(poll(25, 26, 1));
    let rows = reported(&manifest_of_two(), &[(1, own), (2, other)], 100);
    let [row] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!(times(row), [21.0, 85.0, 20.0, 126.0]);
    let counts = [row.tasks, row.cancelled, row.live, row.begun_before];
    assert_eq!(counts, [2, 1, 1, 1]);
    assert_eq!(row.unwoken_polls, 1);
    // Neither is a whole life.
    assert_eq!((row.lifetime.n, row.lifetime.median_ns), (0, None));
}

#[test]
fn a_number_is_used_again() {
    let mut own = vec![note(10, NEW, 3)];
    own.extend(poll(11, 12, 3));
    own.push(note(20, NEW, 3));
    own.extend(poll(21, 23, 3));
    own.push(note(24, DONE, 3));
    let rows = reported(&manifest_of_two(), &[(1, own)], 100);
    let row = &rows[0];
    assert_eq!([row.tasks, row.done, row.end_unknown], [2, 1, 1]);
    assert_eq!(times(row), [3.0, 0.0, 2.0, 5.0]);
}

#[test]
fn a_poll_in_a_poll_and_lost_records() {
    let begin = (30, BEGIN, POLL, 0);
    let end = (90, END, POLL, 0);
    let inner = |number: i64| {
        vec![
            note(31, POLLED + OTHER, number),
            (32, BEGIN, POLL + OTHER, 0),
            note(33, WOKEN, 5),
            (40, END, POLL + OTHER, 0),
        ]
    };
    let mut own = vec![
        note(10, NEW, 5),
        note(11, NEW + OTHER, 6),
        note(29, POLLED, 5),
        begin,
    ];
    own.extend(inner(6));
    own.extend([end, note(91, DONE, 5), note(92, DONE + OTHER, 6)]);
    let rows = reported(&manifest_of_two(), &[(1, own)], 100);
    let row = |name: &str| rows.iter().find(|row| row.name == name).unwrap();
    assert_eq!(times(row("request")), [60.0, 0.0, 20.0, 80.0]);
    assert_eq!(times(row("job")), [8.0, 0.0, 21.0, 29.0]);
    // The innermost poll woke it.
    let waker = &row("request").wakers[0];
    assert_eq!(
        (waker.task.as_deref(), waker.thread.as_deref()),
        (Some("job"), None)
    );
    // Records are lost within a poll: it has no end.
    let mut own = vec![note(10, NEW, 5), note(29, POLLED, 5), begin];
    own.extend([(50, GAP, 0, 3), end, note(91, DONE, 5)]);
    let rows = reported(&manifest_of_two(), &[(1, own)], 100);
    assert_eq!([rows[0].done, rows[0].polls], [1, 0]);
    // A span of that name without a task before it is none of a task.
    let own = vec![begin, end, note(91, NEW, 5)];
    let rows = reported(&manifest_of_two(), &[(1, own)], 100);
    assert_eq!([rows[0].tasks, rows[0].polls], [1, 0]);
    // Nor is one of another name than the task.
    let own = vec![
        note(10, NEW, 5),
        note(29, POLLED, 5),
        (30, BEGIN, POLL + OTHER, 0),
    ];
    let rows = reported(&manifest_of_two(), &[(1, own)], 100);
    assert_eq!([rows[0].tasks, rows[0].polls], [1, 0]);
    assert_eq!(rows.len(), 1);
    // A thread is killed in a poll.
    let own = vec![note(10, NEW, 5), note(29, POLLED, 5), begin];
    let rows = reported(&manifest_of_two(), &[(1, own)], 100);
    assert_eq!(times(&rows[0]), [70.0, 0.0, 20.0, 90.0]);
}

#[test]
fn a_queued_task_waits_behind_polls() {
    // Queued from 10 to 60, in which a job is polled from 5 to 40, one of another process from 20 to 30,
    // two requests from 41 to 45, and itself afterwards.
    let mut own = vec![note(10, NEW, 1)];
    own.extend(poll(60, 65, 1));
    own.push(note(66, DONE, 1));
    let job = |start: i64, end: i64, number: i64| {
        vec![
            note(start - 1, POLLED + OTHER, number),
            (start, BEGIN, POLL + OTHER, 0),
            (end, END, POLL + OTHER, 0),
        ]
    };
    let mut others = poll(41, 43, 2).to_vec();
    others.extend(poll(44, 46, 3));
    others.extend(poll(70, 99, 4));
    let rings = [
        (1, own),
        (1, job(5, 40, 9)),
        (2, job(20, 30, 9)),
        (1, others),
    ];
    let rows = reported(&manifest_of_two(), &rings, 100);
    let request = rows.iter().find(|row| row.name == "request").unwrap();
    let life = request
        .longest
        .iter()
        .find(|life| life.number == 1)
        .unwrap();
    let behind: Vec<_> = (life.queued_behind.iter())
        .map(|of| (of.task.as_str(), of.polled_ns, of.longest_ns))
        .collect();
    assert_eq!(behind, [("job", 30.0, 35.0), ("request", 4.0, 2.0)]);
}

#[test]
fn tasks_without_polls_are_spans_between_threads() {
    let mut manifest = manifest_of_two();
    // Polls of requests have no event.
    manifest
        .names
        .retain(|name| i32::from(name.event) != POLLED);
    let begins = vec![note(10, NEW, 1), note(20, NEW, 2)];
    let ends = vec![note(15, DONE, 1), note(50, DONE, 2)];
    let rings = [(1, begins), (1, ends)];
    // Those that are not polled although they could have been were queued.
    assert_eq!(
        times(&reported(&manifest_of_two(), &rings, 100)[0]),
        [0.0, 0.0, 35.0, 35.0]
    );
    let rows = reported(&manifest, &rings, 100);
    let row = &rows[0];
    assert_eq!(row.lifetime.total_ns, 35.0);
    assert_eq!((row.lifetime.n, row.lifetime.max_ns), (2, Some(30.0)));
    assert!(row.busy.is_none() && row.idle.is_none() && row.queued.is_none());
}

#[test]
fn wakers_of_one_name_are_together() {
    let mut manifest = manifest_of_two();
    manifest.threads = [100, 101]
        .map(|tid| ThreadName {
            pid: 1,
            tid,
            name: "poller".to_owned(),
        })
        .to_vec();
    let mut own = vec![note(10, NEW, 1)];
    own.extend(poll(20, 21, 1));
    own.push(note(25, WOKEN, 1));
    own.extend(poll(30, 31, 1));
    let other = vec![note(35, WOKEN, 1)];
    let rows = reported(&manifest, &[(1, own), (1, other)], 100);
    let wakers = &rows[0].wakers;
    assert_eq!((wakers.len(), wakers[0].wakes), (1, 2));
    assert_eq!(wakers[0].thread.as_deref(), Some("poller"));
}

#[test]
fn names_of_a_process_are_its_own() {
    let mut manifest = manifest();
    let name = |pid, event: i32, name: &str| Name {
        pid,
        event: event as u16,
        name: name.to_owned(),
    };
    manifest.names = vec![
        name(Some(1), NEW, "a task new"),
        name(Some(2), NEW, "b task new"),
        name(None, DONE, "a task done"),
        name(Some(2), DONE, "b task done"),
    ];
    let ring = |n| vec![note(10, NEW, n), note(20, DONE, n)];
    let rows = reported(&manifest, &[(1, ring(1)), (2, ring(2))], 100);
    let found: Vec<_> = (rows
        .iter()
        .map(|row| (row.name.as_str(), row.tasks, row.done)))
    .collect();
    assert_eq!(found, [("a", 1, 1), ("b", 1, 1)]);
}

#[test]
fn a_name_that_ends_like_a_record_is_no_task() {
    // Of a span "flush task" that the layer for `tracing` records.
    let manifest = named(&[
        (NEW as u16, "flush task new"),
        (DONE as u16, "flush task closed"),
    ]);
    let rows = reported(
        &manifest,
        &[(1, vec![note(10, NEW, 1), note(20, DONE, 1)])],
        100,
    );
    assert_eq!(rows, []);
}

#[test]
fn ends_of_what_did_not_begin_are_left_out() {
    let manifest = manifest_of_two();
    let rows = reported(
        &manifest,
        &[(1, vec![note(20, DONE, 1), note(30, CANCELLED, 2)])],
        100,
    );
    assert_eq!(rows, []);
}

#[test]
fn any_times_are_possible() {
    let mut own = vec![note(i64::MIN, NEW, 1)];
    own.extend(poll(0, 0, 1));
    own.extend(poll(i64::MAX - 1, i64::MAX, 1));
    own.push(note(i64::MAX, DONE, 1));
    let waker = vec![note(i64::MIN, WOKEN, 1), note(5, WOKEN, 1)];
    let other = vec![note(i64::MAX, NEW, 2), note(i64::MIN, CANCELLED, 2)];
    let rings = [(1, own), (1, waker), (1, other)];
    let rows = reported(&manifest_of_two(), &rings, i64::MAX);
    let [busy, idle, queued, lifetime] = times(&rows[0]);
    assert!((busy + idle + queued - lifetime).abs() <= 1e-9 * lifetime);
    assert!(lifetime > 0.0);
}

/// A random life, made with its truth: the records of its rings, and busy, idle, queued, lifetime.
struct Made {
    rings: Vec<Vec<Row>>,
    truth: [i64; 4],
    polls: u64,
    wakes: u64,
}

fn made(number: i64, rng: &mut ChaCha8Rng) -> Made {
    let mut now = rng.random_range(10..1_000_000);
    let mut rings = vec![vec![note(now, NEW, number)]];
    let mut truth = [0; 4];
    let [mut polls, mut wakes] = [0; 2];
    let born = now;
    let n = rng.random_range(1..20);
    for at in 0..n {
        // Records of the same tick have no order.
        let queued = rng.random_range(2..500);
        now += queued;
        truth[2] += queued;
        let busy = rng.random_range(2..300);
        rings.push(poll(now, now + busy, number).to_vec());
        truth[0] += busy;
        polls += 1;
        if at + 1 == n {
            now += busy;
            break;
        }
        wakes += 1;
        match rng.random_bool(0.3) {
            // Woken while it is polled.
            true => {
                let woken = now + rng.random_range(1..busy);
                rings.push(vec![note(woken, WOKEN, number)]);
                now += busy;
            }
            false => {
                let idle = rng.random_range(1..800);
                now += busy + idle;
                truth[1] += idle;
                rings.push(vec![note(now, WOKEN, number)]);
            }
        }
    }
    truth[3] = now - born;
    rings.push(vec![note(now + rng.random_range(0..9), DONE, number)]);
    Made {
        rings,
        truth,
        polls,
        wakes,
    }
}

#[test]
fn random_lives_are_found_as_they_were_made() {
    for seed in 0..200 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let lives: Vec<Made> = (1..30).map(|number| made(number, &mut rng)).collect();
        let rings = lives.iter().flat_map(|made| made.rings.iter().cloned());
        // Rings come in any order.
        let mut rings: Vec<(i32, Vec<Row>)> = rings.map(|rows| (1, rows)).collect();
        for at in (1..rings.len()).rev() {
            rings.swap(at, rng.random_range(0..=at));
        }
        let rows = reported(&manifest_of_two(), &rings, 10_000_000);
        let sum = |of: fn(&Made) -> u64| lives.iter().map(of).sum::<u64>();
        let row = &rows[0];
        assert_eq!([row.tasks, row.done], [29, 29], "seed {seed}");
        let counts = [row.polls, row.wakes, row.unwoken_polls];
        assert_eq!(
            counts,
            [sum(|made| made.polls), sum(|made| made.wakes), 0],
            "seed {seed}"
        );
        let truth = [0, 1, 2, 3].map(|part| lives.iter().map(|made| made.truth[part]).sum::<i64>());
        assert_eq!(times(row), truth.map(|ticks| ticks as f64), "seed {seed}");
        // Each poll is in a ring of its thread.
        assert_eq!(row.moved, row.polls - row.tasks, "seed {seed}");
        let longest = lives.iter().map(|made| made.truth[3]).max().unwrap();
        assert_eq!(row.longest[0].lifetime_ns, longest as f64, "seed {seed}");
        assert_eq!(row.lifetime.max_ns, Some(longest as f64), "seed {seed}");
    }
}
