use super::*;

const RING: Ring = Ring {
    number: 3,
    is_here: true,
    pid: 40,
    tid: 41,
};
const REQUEST: u16 = 7;
const STEP: u16 = 8;
const ERROR: u16 = 9;

/// Two ticks a nanosecond.
fn watch(rules: &[&str]) -> Watch {
    let rules = rules.iter().map(|text| text.parse().unwrap()).collect();
    let mut watch = Watch::new(rules, 0.5);
    watch.take_names([(REQUEST, "request"), (STEP, "step"), (ERROR, "error")].map(named));
    watch
}

fn named((event, name): (u16, &str)) -> Name<'_> {
    Name {
        pid: Some(40),
        event,
        name,
    }
}

fn record(kind: Kind, event: u16, ts: u64) -> [u64; 2] {
    with_payload(kind, event, ts, 0)
}

fn with_payload(kind: Kind, event: u16, ts: u64, payload: u32) -> [u64; 2] {
    Record {
        ts,
        payload,
        event,
        cpu: 1,
        kind,
        descheduled: undertick_ring::DeschedFlag::No,
    }
    .to_words()
}

fn span(event: u16, from: u64, until: u64) -> [[u64; 2]; 2] {
    [
        record(Kind::Begin, event, from),
        record(Kind::End, event, until),
    ]
}

fn take(watch: &mut Watch, ring: Ring, records: &[[u64; 2]]) {
    assert_eq!(watch.take(ring, records, true), records.len());
}

fn hits_of(watch: &mut Watch) -> Vec<Hit> {
    let (hits, more) = watch.hits();
    assert_eq!(more, 0);
    hits
}

fn took(hits: &[Hit]) -> Vec<(usize, u64, f64)> {
    let took = |hit: &Hit| match hit.measured {
        Measured::Took(ns, _) => (hit.rule, hit.at, ns),
        _ => panic!("{hit:?}"),
    };
    hits.iter().map(took).collect()
}

#[test]
fn a_span_that_takes_longer_is_found_once() {
    let mut watch = watch(&["request > 1us", "step > 100ns"]);
    // 1 us is 2000 ticks; exactly as long is not longer.
    take(&mut watch, RING, &span(REQUEST, 1000, 3000));
    assert_eq!(hits_of(&mut watch), []);
    take(&mut watch, RING, &span(REQUEST, 5000, 7001));
    let hits = hits_of(&mut watch);
    assert_eq!(took(&hits), [(0, 7001, 1000.5)]);
    assert_eq!(hits[0].ring, Some(RING));
    assert_eq!(hits[0].began, Some(5000));
    assert_eq!(hits_of(&mut watch), []);
    // Ordered readings, and stages: each stage ends where the next begins.
    take(
        &mut watch,
        RING,
        &[
            record(Kind::BeginOrdered, STEP, 10_000),
            with_payload(Kind::Next, STEP, 10_201, u32::from(REQUEST)),
            record(Kind::EndOrdered, REQUEST, 12_202),
        ],
    );
    assert_eq!(
        took(&hits_of(&mut watch)),
        [(1, 10_201, 100.5), (0, 12_202, 1000.5)]
    );
}

/// Spans of the same name inside each other, spans that overlap without nesting, ends without a
/// begin, and other records in between.
#[test]
fn spans_are_matched_as_the_report_matches_them() {
    let mut watch = watch(&["request > 1us", "step > 1us"]);
    take(
        &mut watch,
        RING,
        &[
            record(Kind::End, REQUEST, 50),
            record(Kind::Begin, REQUEST, 100),
            record(Kind::Begin, REQUEST, 2000),
            record(Kind::Begin, STEP, 2100),
            with_payload(Kind::Continuation, REQUEST, 0, 1),
            record(Kind::Instant, REQUEST, 2200),
            record(Kind::End, REQUEST, 3000),
            record(Kind::End, REQUEST, 4000),
            record(Kind::End, STEP, 9000),
        ],
    );
    assert_eq!(
        took(&hits_of(&mut watch)),
        [(0, 4000, 1950.0), (1, 9000, 3450.0)]
    );
}

/// The rings of two threads, and of a process that gives the number another name.
#[test]
fn threads_and_processes_are_kept_apart() {
    let mut watch = watch(&["request > 1us"]);
    watch.take_names([
        named((REQUEST, "request")),
        Name {
            pid: Some(50),
            event: REQUEST,
            name: "idle",
        },
    ]);
    let second = Ring {
        number: 4,
        pid: 40,
        tid: 42,
        is_here: true,
    };
    let other = Ring {
        number: 5,
        pid: 50,
        tid: 50,
        is_here: true,
    };
    take(&mut watch, RING, &[record(Kind::Begin, REQUEST, 0)]);
    take(&mut watch, second, &[record(Kind::Begin, REQUEST, 1000)]);
    take(&mut watch, other, &span(REQUEST, 0, 1_000_000));
    // A name that holds for all does not change that.
    watch.take_names([
        named((REQUEST, "idle")),
        named((REQUEST, "request")),
        Name {
            pid: Some(50),
            event: REQUEST,
            name: "idle",
        },
        Name {
            pid: None,
            event: REQUEST,
            name: "request",
        },
    ]);
    take(&mut watch, other, &span(REQUEST, 0, 1_000_000));
    take(
        &mut watch,
        Ring {
            number: 6,
            pid: 60,
            tid: 60,
            is_here: true,
        },
        &span(REQUEST, 0, 4000),
    );
    assert_eq!(hits_of(&mut watch).len(), 1);
    take(&mut watch, second, &[record(Kind::End, REQUEST, 3500)]);
    take(&mut watch, RING, &[record(Kind::End, REQUEST, 4000)]);
    let hits = hits_of(&mut watch);
    assert_eq!(took(&hits), [(0, 3500, 1250.0), (0, 4000, 2000.0)]);
    assert_eq!(hits[0].ring, Some(second));
    // A span of a thread that has ended is not continued by a ring with the same number.
    take(&mut watch, RING, &[record(Kind::Begin, REQUEST, 5000)]);
    watch.ended(RING.number);
    take(&mut watch, RING, &[record(Kind::End, REQUEST, 50_000)]);
    assert_eq!(hits_of(&mut watch), []);
}

#[test]
fn an_event_and_the_begin_of_a_span() {
    let mut watch = watch(&["event error", "event step"]);
    take(
        &mut watch,
        RING,
        &[
            record(Kind::Instant, ERROR, 10),
            record(Kind::Begin, STEP, 20),
            record(Kind::End, STEP, 30),
        ],
    );
    let came: Vec<(usize, u64)> = hits_of(&mut watch)
        .iter()
        .map(|hit| (hit.rule, hit.at))
        .collect();
    assert_eq!(came, [(0, 10), (1, 20)]);
}

/// Each span that is open for too long is found once; one that has ended is not.
#[test]
fn a_span_that_stays_open_is_found_while_it_is_open() {
    let mut watch = watch(&["request open for 1us", "request open for 5us"]);
    take(&mut watch, RING, &[record(Kind::Begin, REQUEST, 1000)]);
    watch.look(3000, 0);
    assert_eq!(hits_of(&mut watch), []);
    watch.look(3001, 0);
    let hits = hits_of(&mut watch);
    assert_eq!(hits.len(), 1);
    assert_eq!((hits[0].rule, hits[0].began), (0, Some(1000)));
    assert_eq!(hits[0].measured, Measured::OpenFor(1000.5));
    watch.look(5000, 0);
    assert_eq!(hits_of(&mut watch), []);
    watch.look(20_000, 0);
    assert_eq!(
        hits_of(&mut watch)
            .iter()
            .map(|hit| hit.rule)
            .collect::<Vec<_>>(),
        [1]
    );
    take(&mut watch, RING, &[record(Kind::End, REQUEST, 21_000)]);
    take(&mut watch, RING, &span(REQUEST, 22_000, 25_000));
    watch.look(30_000, 0);
    assert_eq!(hits_of(&mut watch), []);
}

/// What was open when records were overwritten may have ended.
#[test]
fn a_gap_forgets_what_was_open() {
    let mut watch = watch(&["request > 1us", "request open for 1us"]);
    take(&mut watch, RING, &[record(Kind::Begin, REQUEST, 0)]);
    watch.gap(RING.number);
    watch.look(1_000_000, 0);
    take(&mut watch, RING, &[record(Kind::End, REQUEST, 1_000_000)]);
    assert_eq!(hits_of(&mut watch), []);
}

/// A gap that the program wrote: the end of one request and the begin of another were dropped.
#[test]
fn a_gap_of_the_program_forgets_what_was_open() {
    let mut watch = watch(&["request > 1us", "request open for 1us"]);
    take(
        &mut watch,
        RING,
        &[
            record(Kind::Begin, REQUEST, 0),
            with_payload(Kind::Continuation, 0, 2, Record::GAP),
            record(Kind::End, REQUEST, 1_000_000),
        ],
    );
    watch.look(2_000_000, 0);
    assert_eq!(hits_of(&mut watch), []);
}

/// A rule with many hits leaves room for those of others, and all are counted.
#[test]
fn hits_are_bounded_by_rule() {
    let mut watch = watch(&["event error", "request open for 1us"]);
    take(&mut watch, RING, &[record(Kind::Begin, REQUEST, 0)]);
    for ts in 0..1000 {
        take(&mut watch, RING, &[record(Kind::Instant, ERROR, ts)]);
    }
    watch.look(10_000, 0);
    let (hits, more) = watch.hits();
    assert_eq!((hits.len(), more), (MOST_HITS + 1, 1000 - MOST_HITS as u64));
    assert_eq!(hits[MOST_HITS].rule, 1);
    assert_eq!(watch.hits(), (vec![], 0));
}

/// 30 a minute are three in the stretch of 6 s: a burst is found at the fourth. Where events were overwritten unseen, a rate that seems low is not judged.
#[test]
fn a_rate_that_is_too_high_is_found_at_once_and_a_gap_begins_again() {
    let mut watch = watch(&["rate of error > 30/min", "rate of step < 10/s"]);
    let second = 2_000_000_000;
    take(&mut watch, RING, &[record(Kind::Instant, ERROR, 1)]);
    watch.look(second, 0);
    for i in 1..=4 {
        assert_eq!(hits_of(&mut watch), [], "{i}");
        take(&mut watch, RING, &[record(Kind::Instant, ERROR, 2)]);
        watch.look(second + i * second / 100, 0);
    }
    assert_eq!(
        hits_of(&mut watch)
            .iter()
            .map(|hit| hit.rule)
            .collect::<Vec<_>>(),
        [0]
    );

    take(&mut watch, RING, &span(STEP, 3, 4));
    watch.look(20 * second, 0);
    watch.gap(RING.number);
    watch.look(25 * second, 0);
    assert_eq!(hits_of(&mut watch), []);
    watch.look(27 * second, 0);
    assert_eq!(hits_of(&mut watch).len(), 1);
}

/// 100 spans of 1 us settle a median; 4 us is not over 4 medians, 4.1 us is. The spans that are to
/// settle it are not judged by it.
#[test]
fn a_limit_is_learned() {
    let mut watch = watch(&["request > 4 x median", "step > p90"]);
    for i in 0..99 {
        take(
            &mut watch,
            RING,
            &span(REQUEST, 10_000 * i, 10_000 * i + 2000),
        );
    }
    watch.look(0, 0);
    take(&mut watch, RING, &span(REQUEST, 0, 100_000));
    assert_eq!(hits_of(&mut watch), []);
    watch.look(0, 0);
    take(&mut watch, RING, &span(REQUEST, 0, 8000));
    assert_eq!(hits_of(&mut watch), []);
    take(&mut watch, RING, &span(REQUEST, 0, 8200));
    let hits = hits_of(&mut watch);
    assert_eq!(took(&hits), [(0, 8200, 4100.0)]);
    let Measured::Took(_, limit) = hits[0].measured else {
        panic!("{hits:?}")
    };
    assert!((limit / 4000.0 - 1.0).abs() < 0.002, "{limit}");
    // 200 spans of 1 to 200 us: 20 are above the 90th percentile of 180 us.
    for i in 1..=200 {
        take(&mut watch, RING, &span(STEP, 0, 2000 * i));
    }
    watch.look(0, 0);
    take(&mut watch, RING, &span(STEP, 0, 2000 * 179));
    assert_eq!(hits_of(&mut watch), []);
    take(&mut watch, RING, &span(STEP, 0, 2000 * 182));
    assert_eq!(hits_of(&mut watch).len(), 1);
}

/// One event each 0.1 s for 3 s, then none: 10 a second, then 0; found once until it recovers.
#[test]
fn a_rate_is_found_when_it_falls_and_when_it_rises() {
    let mut watch = watch(&["rate of error < 5/s", "rate of error > 50/s"]);
    let second = 2_000_000_000;
    watch.look(10 * second, 0);
    assert_eq!(hits_of(&mut watch), [], "nothing has begun");
    let come = |watch: &mut Watch, from: u64, until: u64, each: u64| {
        for ts in (from..until).step_by(each as usize) {
            take(watch, RING, &[record(Kind::Instant, ERROR, ts)]);
            watch.look(ts, 0);
        }
    };
    let rules = |watch: &mut Watch| {
        hits_of(watch)
            .iter()
            .map(|hit| hit.rule)
            .collect::<Vec<_>>()
    };
    come(&mut watch, 0, 3 * second, second / 10);
    assert_eq!(rules(&mut watch), []);
    for ts in 0..40 {
        watch.look(3 * second + ts * second / 10, 0);
    }
    assert_eq!(rules(&mut watch), [0]);
    come(&mut watch, 8 * second, 12 * second, second / 10);
    assert_eq!(rules(&mut watch), []);
    come(&mut watch, 12 * second, 15 * second, second / 100);
    assert_eq!(rules(&mut watch), [1]);
}

#[test]
fn lost_events_are_found_when_more_are_lost() {
    let mut watch = watch(&["lost > 0"]);
    watch.look(1, 0);
    watch.look(2, 5);
    watch.look(3, 5);
    watch.look(4, 6);
    // Threads are given up, with what they lost.
    watch.look(5, 1);
    watch.look(6, 3);
    let lost: Vec<Measured> = hits_of(&mut watch).iter().map(|hit| hit.measured).collect();
    assert_eq!(
        lost,
        [Measured::Lost(5), Measured::Lost(1), Measured::Lost(2)]
    );
}

/// Events are unknown until names are read; a rule may give a number; a rule that is about nothing
/// is reported.
#[test]
fn names_come_later_and_numbers_are_names() {
    let rules = ["late > 1us", "60000 > 1us", "reqest > 1us", "lost > 0"];
    let mut watch = Watch::new(
        rules.iter().map(|text| text.parse().unwrap()).collect(),
        0.5,
    );
    let records = span(20, 0, 10_000);
    assert_eq!(watch.take(RING, &records, false), 0);
    watch.take_names([named((20, "late"))]);
    assert_eq!(watch.take(RING, &records, false), 2);
    let next = [
        with_payload(Kind::Continuation, 22, 5, 1),
        with_payload(Kind::Next, 20, 5, 21),
    ];
    assert_eq!(watch.take(RING, &next, false), 1);
    assert_eq!(watch.take(RING, &next[1..], true), 1);
    assert_eq!(
        watch.take(RING, &next[1..], false),
        1,
        "it is known to have no name"
    );
    watch.take_names([named((20, "late"))]);
    assert_eq!(
        watch.take(RING, &next[1..], false),
        1,
        "that is not forgotten"
    );
    take(&mut watch, RING, &span(60_000, 0, 10_000));
    assert_eq!(
        took(&hits_of(&mut watch)),
        [(0, 10_000, 5000.0), (1, 10_000, 5000.0)]
    );
    let unused: Vec<String> = watch.without_events().map(ToString::to_string).collect();
    assert_eq!(unused, ["reqest > 1us"]);
}

/// Records that mean nothing, of all patterns: no panic, and no more hits than there is room for.
#[test]
fn any_record_is_taken() {
    let mut watch = watch(&[
        "request > 1ns",
        "event error",
        "rate of step > 1/s",
        "step > p50",
    ]);
    let mut state = 1_u64;
    let mut random = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        state
    };
    for _ in 0..200 {
        let records: Vec<[u64; 2]> = (0..1000)
            .map(|_| {
                [
                    random(),
                    random() & !(0xfff8 << 32) | random() >> 3 & 0xf << 60,
                ]
            })
            .collect();
        let taken = watch.take(RING, &records, false);
        take(&mut watch, RING, &records[taken..]);
        watch.look(random(), random());
        assert!(watch.hits().0.len() <= MOST_HITS * watch.rules().len());
    }
}
