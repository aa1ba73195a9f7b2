//! Compares the report of the last seconds of a recording with everything that was recorded in
//! them.

use crate::support;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use undertick_analyze::recent::{Look, Recent, RecentReport, Window};
use undertick_analyze::{Cull, Options};
use undertick_format::block::BlockHeader;
use undertick_ring::{DeschedFlag, Kind, Record};

use support::manifest;

const EVENT: u16 = 7;
/// 1 tick is 1 ns.
const SECOND: u64 = 1_000_000_000;

/// The truth of a span, ticks.
#[derive(Clone, Copy, Debug)]
struct Span {
    begin: u64,
    end: u64,
}

/// A thread and all of its spans and records.
struct Thread {
    ring: u32,
    spans: Vec<Span>,
    records: Vec<[u64; 2]>,
}

impl Thread {
    /// Makes spans of a random length within bounds, one after the other with random pauses.
    fn new(rng: &mut ChaCha8Rng, ring: u32, until: u64, long: [u64; 2], apart: [u64; 2]) -> Self {
        let (mut spans, mut records) = (Vec::new(), Vec::new());
        let mut now = 1000;
        loop {
            now += rng.random_range(apart[0]..apart[1]);
            let begin = now;
            now += rng.random_range(long[0]..long[1]);
            if now >= until {
                break;
            }
            spans.push(Span { begin, end: now });
            records.push(record(Kind::Begin, begin));
            records.push(record(Kind::End, now));
        }
        Self {
            ring,
            spans,
            records,
        }
    }
}

fn record(kind: Kind, ts: u64) -> [u64; 2] {
    Record {
        ts,
        payload: 0,
        event: EVENT,
        cpu: 0,
        kind,
        descheduled: DeschedFlag::No,
    }
    .to_words()
}

fn header(ring: u32, position: u64, records: usize) -> BlockHeader {
    BlockHeader {
        ring,
        pid: 100,
        tid: 1000 + ring as i32,
        position,
        records: records as u32,
    }
}

/// Offers all records until `now` as a collector does: ring by ring, in blocks of any size. `given`
/// counts the records of each thread that were offered.
fn give(rng: &mut ChaCha8Rng, threads: &[Thread], given: &mut [usize], now: u64, look: &mut Look) {
    for (thread, given) in threads.iter().zip(given) {
        let is_there = |words: &[u64; 2]| words[0] < now;
        let until = *given + thread.records[*given..].partition_point(is_there);
        while *given < until {
            let n = rng.random_range(1..700).min(until - *given);
            let block = &thread.records[*given..*given + n];
            look.offer(header(thread.ring, 16 * *given as u64, n), block);
            *given += n;
        }
    }
}

fn options() -> Options {
    Options {
        cull: Cull::None,
        ..Options::default()
    }
}

fn found(recent: &Recent, span: Window) -> RecentReport {
    let gathered = recent.gather(&manifest(), options(), span).unwrap();
    gathered.report().unwrap()
}

const ALL: Window = Window {
    from: 0,
    until: u64::MAX,
};

/// A busy thread has short spans, a quiet one long spans. Windows over a tenth of the time have
/// them in their proportion, so the mean over both is covered as often as the level says, and every
/// end in a window is counted.
#[test]
fn a_part_of_the_time_speaks_for_all_threads() {
    let (mut covered, mut refused, mut looked) = (0, 0, 0.0);
    for seed in 0..200 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let second = SECOND / 10;
        let threads = [
            Thread::new(&mut rng, 3, second, [100, 200], [4_000, 12_000]),
            Thread::new(&mut rng, 9, second, [10_000, 20_000], [20_000, 60_000]),
        ];
        let (mut look, mut recent, mut given) = (Look::default(), Recent::default(), [0; 2]);
        let mut windows = Vec::new();
        let period = second / 20;
        for turn in 0..20 {
            let begins = turn * period;
            let from = begins + rng.random_range(0..period * 8 / 10);
            let window = Window {
                from,
                until: from + period / 10,
            };
            recent.add(look.at(begins, window, usize::MAX / 8));
            windows.push(window);
            give(&mut rng, &threads, &mut given, begins + period, &mut look);
        }
        recent.add(look.at(second, Window::EMPTY, 0));
        let spans = || threads.iter().flat_map(|thread| &thread.spans);
        let is_in = |ts: u64| windows.iter().any(|w| (w.from..w.until).contains(&ts));
        let whole = spans().filter(|s| is_in(s.begin) && is_in(s.end)).count() as u64;
        let ends = spans().filter(|s| is_in(s.end)).count() as u64;

        let found = found(&recent, ALL);
        let interval = &found.report.intervals[0];
        assert_eq!(
            (interval.count, RecentReport::ends(interval)),
            (whole, ends)
        );
        assert!((found.looked_s - 0.01).abs() < 1e-9, "{}", found.looked_s);
        looked += found.looked_s / found.of_s;

        let all: Vec<f64> = spans().map(|s| (s.end - s.begin) as f64).collect();
        let truth = all.iter().sum::<f64>() / all.len() as f64;
        let mean = interval.mean.as_ref().unwrap();
        match (mean.interval.lo, mean.interval.hi) {
            (Some(lo), Some(hi)) => covered += u32::from((lo..=hi).contains(&truth)),
            _ => refused += 1,
        }
    }
    println!(
        "{covered} of 200 cover, {refused} refused; {:.3} of the time looked at",
        looked / 200.0
    );
    // At 95 %, 172 or fewer of 200 have a chance below 1e-6.
    assert!(refused <= 10, "{refused} of 200 refused");
    assert!(covered + refused >= 173, "{covered} of 200");
}

/// Successive windows, closed at any time, are equal to one window.
#[test]
fn without_a_pause_nothing_is_missed() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let until = SECOND / 50;
    let threads = [
        Thread::new(&mut rng, 0, until, [500, 90_000], [10, 1_000]),
        Thread::new(&mut rng, 1, until, [100, 2_000], [10, 1_000]),
    ];
    let (mut look, mut recent, mut given) = (Look::default(), Recent::default(), [0; 2]);
    let most = usize::MAX / 8;
    let _ = look.at(0, ALL, most);
    let (mut now, mut parts) = (0, 0);
    while now < until {
        now += rng.random_range(10_000..2_000_000);
        give(&mut rng, &threads, &mut given, now, &mut look);
        // Some records are always on their way.
        let closed = now.saturating_sub(rng.random_range(0..5_000)).max(1);
        let next = Window {
            from: closed,
            until: u64::MAX,
        };
        let taken = look.at(closed, next, most);
        assert!(!taken.is_cut);
        recent.add(taken);
        parts += 1;
    }
    recent.add(look.at(u64::MAX, Window::EMPTY, 0));
    assert!(parts > 10, "{parts}");
    let found = found(&recent, ALL);
    let interval = &found.report.intervals[0];
    let spans = threads.iter().map(|thread| thread.spans.len() as u64);
    assert_eq!((interval.count, interval.unmatched), (spans.sum(), 0));
    let total: u64 = (threads.iter().flat_map(|t| &t.spans))
        .map(|span| span.end - span.begin)
        .sum();
    assert!((interval.total_ns.unwrap() - total as f64).abs() < 0.5);
    assert_eq!(RecentReport::cut(interval), Some(0.0));
    // A part of that time, selected by end and begin.
    let part = Window {
        from: until / 3,
        until: until / 2,
    };
    let in_part = |ts| (part.from..part.until).contains(&ts);
    let whole = threads.iter().flat_map(|thread| &thread.spans);
    let whole = whole.filter(|s| in_part(s.begin) && in_part(s.end));
    let partial = self::found(&recent, part);
    assert_eq!(partial.report.intervals[0].count, whole.count() as u64);
    assert!((partial.looked_s - (part.until - part.from) as f64 * 1e-9).abs() < 1e-9);
}

/// A span that begins in one window may have ended, and begun again, before the next one.
#[test]
fn nothing_is_matched_across_what_was_not_looked_at() {
    let records = [
        record(Kind::Begin, 100),
        record(Kind::End, 150),
        record(Kind::Begin, 190),
        record(Kind::End, 250),
        record(Kind::Begin, 290),
        record(Kind::End, 350),
    ];
    let windows = [[100, 200], [300, 400]].map(|[from, until]| Window { from, until });
    let (mut look, mut recent) = (Look::default(), Recent::default());
    recent.add(look.at(0, windows[0], 1000));
    look.offer(header(0, 0, 3), &records[..3]);
    recent.add(look.at(200, windows[1], 1000));
    look.offer(header(0, 48, 3), &records[3..]);
    recent.add(look.at(400, Window::EMPTY, 0));
    let found = found(&recent, ALL);
    let interval = &found.report.intervals[0];
    assert_eq!((interval.count, interval.unmatched_ends), (1, 1));
    assert_eq!(interval.statistics.max, Some(50.0));
    assert_eq!(
        (RecentReport::ends(interval), RecentReport::cut(interval)),
        (2, Some(0.5))
    );
    assert!((found.looked_s - 200e-9).abs() < 1e-15);
    assert!((found.of_s - 300e-9).abs() < 1e-15);
}

/// The 64-bit payload of an event stays with it on both sides of a boundary, and is never taken for
/// a reading.
#[test]
fn what_goes_with_a_record_stays_with_it() {
    let wide = |ts: u64, value: u64| {
        let event = Record {
            kind: Kind::Instant,
            ..Record::from_words(record(Kind::Begin, ts))
        };
        let more = Record {
            ts: value,
            payload: Record::WIDE,
            kind: Kind::Continuation,
            ..event
        };
        [event.to_words(), more.to_words()]
    };
    let records: Vec<[u64; 2]> = (0..100_u64)
        .flat_map(|i| wide(1000 + 10 * i, if i % 2 == 0 { 0 } else { u64::MAX }))
        .collect();
    for (from, until) in [
        (0, 1),
        (1000, 1001),
        (1001, 1990),
        (995, 5000),
        (1500, 1510),
    ] {
        let window = Window { from, until };
        let mut look = Look::default();
        let _ = look.at(0, window, 1000);
        look.offer(header(0, 0, records.len()), &records);
        let taken = look.at(until, Window::EMPTY, 0);
        let whole = (0..100).filter(|i| (from..until).contains(&(1000 + 10 * i)));
        assert_eq!(taken.records(), 2 * whole.count(), "{window:?}");
    }
}

/// More records than can be taken close the window for all threads at one time.
#[test]
fn too_much_closes_the_window_for_all_alike() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let until = SECOND / 100;
    let threads = [5, 2].map(|ring| Thread::new(&mut rng, ring, until, [100, 200], [800, 900]));
    let (mut look, mut recent, mut given) = (Look::default(), Recent::default(), [0; 2]);
    let _ = look.at(0, ALL, 2_000);
    for turn in 1..=100 {
        give(
            &mut rng,
            &threads,
            &mut given,
            turn * until / 100,
            &mut look,
        );
    }
    let taken = look.at(until, Window::EMPTY, 0);
    assert!(taken.is_cut);
    assert!(
        (2_000..4_000).contains(&taken.records()),
        "{}",
        taken.records()
    );
    recent.add(taken);
    let found = found(&recent, ALL);
    // The reported time was analysed: it contains each end, of both threads.
    let looked = (found.looked_s * 1e9).round() as u64;
    let ends = threads
        .iter()
        .flat_map(|t| &t.spans)
        .filter(|s| s.end < looked);
    assert_eq!(
        RecentReport::ends(&found.report.intervals[0]),
        ends.count() as u64
    );
    // Too many records at once cannot be cut at a time: nothing is reported.
    let _ = look.at(until, ALL, 100);
    look.offer(header(5, 0, 1000), &threads[0].records[..1000]);
    look.offer(header(2, 0, 1000), &threads[1].records[..1000]);
    assert_eq!(look.at(u64::MAX, Window::EMPTY, 0).records(), 0);
}

/// Records that arrive after their window was closed make its results wrong.
#[test]
fn what_comes_late_takes_the_past_away() {
    let spans = |from: u64, n: u64| -> Vec<[u64; 2]> {
        (0..n)
            .flat_map(|i| {
                let begin = from + 20 * i;
                [record(Kind::Begin, begin), record(Kind::End, begin + 5)]
            })
            .collect()
    };
    for late in [false, true] {
        let (mut look, mut recent) = (Look::default(), Recent::default());
        let _ = look.at(0, ALL, 10_000);
        look.offer(header(0, 0, 200), &spans(1_000, 100));
        let next = Window {
            from: 5_000,
            until: u64::MAX,
        };
        recent.add(look.at(5_000, next, 10_000));
        look.offer(header(0, 3_200, 20), &spans(6_000, 10));
        if late {
            look.offer(header(1, 0, 2), &spans(4_000, 1));
        }
        recent.add(look.at(10_000, Window::EMPTY, 0));
        let count = found(&recent, ALL).report.intervals[0].count;
        assert_eq!(count, if late { 10 } else { 110 });
    }
}

/// Older records than requested are forgotten.
#[test]
fn the_past_is_forgotten() {
    let (mut look, mut recent) = (Look::default(), Recent::default());
    let window = |from: u64| Window {
        from,
        until: from + 1_000,
    };
    let _ = look.at(0, window(0), 100);
    for turn in 1..10 {
        let begin = 1_000 * turn - 500;
        let records = [
            record(Kind::Begin, begin),
            record(Kind::End, begin + 10 * turn),
        ];
        look.offer(header(0, 32 * (turn - 1), 2), &records);
        recent.add(look.at(1_000 * turn, window(1_000 * turn), 100));
        recent.forget((1_000 * turn).saturating_sub(3_000));
    }
    let found = found(&recent, ALL);
    let interval = &found.report.intervals[0];
    assert_eq!(
        (
            interval.count,
            interval.statistics.min,
            interval.statistics.max
        ),
        (3, Some(70.0), Some(90.0))
    );
    assert!((found.looked_s - 3e-6).abs() < 1e-12);
    assert_eq!(found.records, 6);
}

/// A part of sampled spans is recorded; the number of executions is what these stand for.
#[test]
fn sampled_spans_count_as_what_they_stand_for() {
    let with = |kind: Kind, ts: u64, payload: u32| {
        Record {
            payload,
            ..Record::from_words(record(kind, ts))
        }
        .to_words()
    };
    let stand_for = [3, 40, 1, 12, 20];
    let records: Vec<[u64; 2]> = (stand_for.iter().zip(1..))
        .flat_map(|(&n, i)| {
            [
                with(Kind::Begin, 100 * i, n),
                with(Kind::End, 100 * i + 30, 16),
            ]
        })
        .collect();
    let (mut look, mut recent) = (Look::default(), Recent::default());
    let _ = look.at(
        0,
        Window {
            from: 0,
            until: 1000,
        },
        100,
    );
    look.offer(header(0, 0, 10), &records);
    recent.add(look.at(1000, Window::EMPTY, 0));
    let found = found(&recent, ALL);
    let interval = &found.report.intervals[0];
    assert_eq!(
        (
            RecentReport::ends(interval),
            RecentReport::executions(interval)
        ),
        (5, 76)
    );
    assert_eq!(
        (interval.statistics.min, interval.statistics.max),
        (Some(30.0), Some(30.0))
    );
}
