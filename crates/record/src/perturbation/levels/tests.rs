use undertick_ring::DeschedFlag;

use super::*;

fn record(kind: Kind, event: u16, ts: u64, payload: u32) -> [u64; 2] {
    Record {
        ts,
        payload,
        event,
        cpu: 0,
        kind,
        descheduled: DeschedFlag::No,
    }
    .to_words()
}

/// 20 spans of event 1, 5 us each, with a span 2 and an instant 3 in it, 3 also in 2.
fn frames(from: u64, to: u64) -> Vec<[u64; 2]> {
    (from..to)
        .flat_map(|i| {
            let at = 10_000 * i;
            [
                record(Kind::Begin, 1, at, 0),
                record(Kind::Begin, 2, at + 100, 0),
                record(Kind::Instant, 3, at + 200, 0),
                record(Kind::End, 2, at + 300, 0),
                record(Kind::End, 1, at + 5000, 0),
            ]
        })
        .collect()
}

fn levels(wanted: Wanted) -> (Levels, Arc<Plan>) {
    let levels = Levels::new(wanted, 2.0);
    let plan = levels.plan();
    (levels, plan)
}

fn learnt(levels: &mut Levels) {
    levels.first = Instant::now().checked_sub(LEARNING);
    levels.settle();
}

#[test]
fn what_lies_in_fewer_spans_than_the_level_stays() {
    for (level, kept) in [(1, vec![1]), (2, vec![1, 2]), (3, vec![1, 2, 3])] {
        let (mut levels, _) = levels(Wanted::Level(level));
        let mut told = Vec::new();
        levels.observe(0, &frames(0, 30), |event, is_kept| {
            told.push((event, is_kept));
        });
        assert_eq!(levels.kept(), kept);
        let expected: Vec<_> = kept.iter().map(|&event| (event, true)).collect();
        assert_eq!(told, expected);
    }
}

/// 5000 ticks of 2 ns are 10 us: 20 of them are shorter than the shortest half. When 50 times
/// as long, they are 10 ms.
#[test]
fn halves_hold_twenty_sections() {
    let (mut levels, plan) = levels(Wanted::Level(1));
    levels.observe(0, &frames(0, 19), |_, _| {});
    learnt(&mut levels);
    assert_eq!(plan.half_ns.load(Ordering::Relaxed), 0);
    levels.observe(0, &frames(19, 20), |_, _| {});
    levels.first = None;
    levels.settle();
    assert_eq!(plan.half_ns.load(Ordering::Relaxed), 0);
    learnt(&mut levels);
    assert_eq!(plan.half_ns.load(Ordering::Relaxed), 500_000);
    let long: Vec<_> = (frames(20, 40).into_iter())
        .map(|words| [words[0] * 50, words[1]])
        .collect();
    let (mut levels, plan) = self::levels(Wanted::Level(1));
    levels.observe(0, &long, |_, _| {});
    learnt(&mut levels);
    assert_eq!(plan.half_ns.load(Ordering::Relaxed), 10_000_000);
}

/// The kernel's events are recorded separately from the program's, which all stay on.
#[test]
fn all_stays_on_beside_the_kernel() {
    let (mut levels, plan) = levels(Wanted::Kernel);
    levels.start(|event, is_kept| assert!(is_kept, "{event}"));
    levels.observe(0, &frames(0, 20), |event, kept| panic!("{event} {kept}"));
    assert_eq!(levels.kept(), [1, 2, 3]);
    learnt(&mut levels);
    assert_eq!(plan.half_ns.load(Ordering::Relaxed), 500_000);
}

/// Without points to switch, nothing is planned.
#[test]
fn without_points_inside_there_is_no_plan() {
    let (mut levels, plan) = levels(Wanted::Level(3));
    levels.observe(0, &frames(0, 100), |_, _| {});
    learnt(&mut levels);
    assert_eq!(plan.half_ns.load(Ordering::Relaxed), 0);
}

/// A begin whose end was not recorded is forgotten when its outer span ends; one point that
/// seemed to lie outside changes nothing for long.
#[test]
fn what_is_cut_by_a_switch_does_no_harm() {
    let (mut levels, _) = levels(Wanted::Level(1));
    levels.observe(0, &frames(0, 5), |_, _| {});
    let cut = [
        record(Kind::Begin, 1, 60_000, 0),
        record(Kind::Begin, 2, 60_100, 0),
        record(Kind::End, 1, 65_000, 0),
    ];
    levels.observe(0, &cut, |_, _| {});
    levels.observe(0, &frames(7, 10), |event, kept| panic!("{event} {kept}"));
    let outside = [record(Kind::Instant, 3, 110_000, 0)];
    levels.observe(0, &outside, |event, kept| panic!("{event} {kept}"));
    assert_eq!(levels.kept(), [1]);
    assert_eq!(levels.rings[&0].open.len(), 0);
}

/// The time from one instant that stays on to the next is also a span.
#[test]
fn named_events_stay_and_instants_have_periods() {
    let (mut levels, plan) = levels(Wanted::Kept(vec![3]));
    assert_eq!(levels.kept(), [3]);
    levels.observe(0, &frames(0, 101), |event, kept| panic!("{event} {kept}"));
    assert_eq!(levels.kept(), [3]);
    learnt(&mut levels);
    // 100 periods of 10 000 ticks of 2 ns: 20 are 0.4 ms.
    assert_eq!(plan.half_ns.load(Ordering::Relaxed), 500_000);
    assert_eq!(levels.events[&3].whole, 100);
    assert_eq!(levels.events[&3].ticks, 1e6);
}
