//! Cases calculated by hand, and cases without a result. Simulated clocks are in
//! `tests/two_clocks.rs`.

use super::*;

const fn message(sent: i64, received: i64) -> Message {
    Message { sent, received }
}

const EXACT: Limits = Limits {
    rate: 1e-3,
    wander: 0.0,
    stamp_error: 0.0,
};

/// The second clock is 1000 ahead; every way takes 30.
fn steady() -> (Vec<Message>, Vec<Message>) {
    let there = (0..50).map(|i| message(100 * i, 100 * i + 1030));
    let back = (0..50).map(|i| message(100 * i + 1050, 100 * i + 80));
    (there.collect(), back.collect())
}

#[test]
fn bounds_by_hand() {
    let limits = Limits { rate: 0.0, ..EXACT };
    let (there, mut back) = steady();
    let map = clock_map(&there, &back, None, &limits).unwrap();
    for at in [0, 1, 77, 2400, 4980] {
        let found = map.at(at).unwrap();
        // Two ticks for rounding.
        assert_eq!((found.at, found.ahead), (at, 1000));
        assert!((32..=33).contains(&found.half_width), "{found:?}");
    }
    assert_eq!((map.at(-1), map.at(4981)), (None, None));
    // One way back took only 10: the lower bound is 990 everywhere.
    back[2] = message(1250, 260);
    let map = clock_map(&there, &back, None, &limits).unwrap();
    let found = map.at(4000).unwrap();
    assert_eq!((found.ahead, found.half_width), (1010, 23));
    // Stamps wrong by up to 3 each: 6 on both sides.
    let stamp_error = 3.0;
    let map = clock_map(
        &there,
        &back,
        None,
        &Limits {
            stamp_error,
            ..limits
        },
    )
    .unwrap();
    assert_eq!(map.at(4000).unwrap().half_width, 29);
}

/// Bounds of 30 at the ends of 2 million ticks, nothing between: the tangent's slope lies within 60
/// / 2e6, and outside of the messages the bounds widen with it.
#[test]
fn bounds_go_apart_outside_of_the_messages() {
    let there = [message(0, 30), message(2_000_000, 2_000_030)];
    let back = [message(0, 30), message(2_000_000, 2_000_030)];
    let span = Some((-2_000_000, 4_000_000));
    let map = clock_map(&there, &back, span, &EXACT).unwrap();
    let half = |at| map.at(at).unwrap().half_width;
    assert_eq!((half(0), half(2_000_000)), (33, 33));
    assert!((32..=33).contains(&half(1_000_000)), "{}", half(1_000_000));
    assert!((92..=94).contains(&half(4_000_000)), "{}", half(4_000_000));
    assert!(half(-2_000_000).abs_diff(half(4_000_000)) <= 1);
    assert_eq!(map.knots()[0].at, -2_000_000);
    // With a wander of 1e-5 the slack at a distance of 2 million is 20 each: at the last
    // moment of the messages 50 ago at most, so the bounds are 33 still; one span further
    // on the nearer message's slack is 20, the further one's 40.
    let limits = Limits {
        wander: 1e-5,
        ..EXACT
    };
    let map = clock_map(&there, &back, span, &limits).unwrap();
    // y(0) <= 30 + 20 and y(-2e6) >= -30 - 40, so at +2e6: 50 + (50 + 70) = 170.
    let found = map.at(4_000_000).unwrap().half_width;
    assert!((172..=175).contains(&found), "{found}");
}

#[test]
fn lines_between_knots_round_to_the_safe_side_and_never_fall() {
    let knot = |at, ahead, half_width| Knot {
        at,
        ahead,
        half_width,
    };
    let knots = [knot(0, 0, 10), knot(10, -5, 13), knot(20, 3, 10)];
    let at = |at| between(&knots, at).map(|k| (k.ahead, k.half_width));
    assert_eq!(at(0), Some((0, 10)));
    assert_eq!(at(1), Some((-1, 11))); // -0.5 and 10.3
    assert_eq!(at(9), Some((-5, 13))); // -4.5 and 12.7
    assert_eq!(at(11), Some((-5, 13))); // -4.2 and 12.7
    assert_eq!((at(-1), at(21)), (None, None));
    let mapped: Vec<i64> = (0..=20).map(|t| t + at(t).unwrap().0).collect();
    assert!(mapped.is_sorted(), "{mapped:?}");
    let far = [knot(i64::MIN, i64::MAX, 1), knot(i64::MAX, i64::MIN, 1)];
    assert_eq!(between(&far, 0).map(|k| k.half_width), Some(1));
}

#[test]
fn what_cannot_be_is_said() {
    let limits = Limits::default();
    let one_way = |there, back| Err(NoMap::OneWay { there, back });
    let (there, back) = steady();
    assert_eq!(clock_map(&[], &[], None, &limits), one_way(0, 0));
    assert_eq!(clock_map(&there, &[], None, &limits), one_way(50, 0));
    assert_eq!(clock_map(&[], &back, None, &limits), one_way(0, 50));
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        for limits in [
            Limits {
                rate: bad,
                ..limits
            },
            Limits {
                wander: bad,
                ..limits
            },
            Limits {
                stamp_error: bad,
                ..limits
            },
        ] {
            let found = clock_map(&there, &back, None, &limits);
            assert_eq!(found, Err(NoMap::BadLimits));
        }
    }
    // The second clock was set back by 5000 between two messages.
    let there = [message(0, 100), message(1_000_000, 1_000_100)];
    let back = [message(90, 10), message(1_006_000, 1_000_000)];
    let found = clock_map(&there, &back, None, &limits);
    assert!(
        matches!(found, Err(NoMap::Contradiction { .. })),
        "{found:?}"
    );
    // Received before it could have been sent, whatever the offset.
    let found = clock_map(&[message(10, 0)], &[message(20, 10)], None, &limits);
    assert!(
        matches!(found, Err(NoMap::Contradiction { .. })),
        "{found:?}"
    );
    let far = [message(i64::MIN, i64::MAX)];
    let back = [message(i64::MAX, i64::MIN)];
    assert_eq!(
        clock_map(&far, &back, None, &limits),
        Err(NoMap::OutOfRange)
    );
}

#[test]
fn little_is_answered_with_wide_bounds() {
    let limits = Limits::default();
    // One message each way at one moment, sent twice, and out of order.
    let map = clock_map(&[message(5, 25); 2], &[message(5, 5)], None, &limits).unwrap();
    let found = map.at(5).unwrap();
    assert!(
        (14..=15).contains(&found.half_width) && (9..=11).contains(&found.ahead),
        "{found:?}"
    );
    // A million ticks away the rate may have changed by its limit: 1000 ticks.
    let map = clock_map(
        &[message(5, 25)],
        &[message(5, 5)],
        Some((5, 1_000_005)),
        &limits,
    );
    let found = map.unwrap().at(1_000_005).unwrap();
    assert!((1008..1025).contains(&found.half_width), "{found:?}");
    // Neither order nor copies matter.
    let (mut there, back) = steady();
    let before = clock_map(&there, &back, None, &limits).unwrap();
    there.extend_from_within(..);
    there.reverse();
    assert_eq!(clock_map(&there, &back, None, &limits).unwrap(), before);
}

/// Rates that change more than the limit says leave no tangent: the limit is raised, and this is
/// reported.
#[test]
fn a_wander_beyond_its_limit_is_found() {
    let ahead = |t: i64| {
        let t = t as f64 / 1e9;
        (100_000.0 * if t < 50.0 { t } else { 100.0 - t }) as i64 // +-100 ppm
    };
    let moments = (0..=100).map(|s| s * 1_000_000_000_i64);
    let there: Vec<_> = moments
        .clone()
        .map(|t| message(t, t + ahead(t) + 500))
        .collect();
    let back: Vec<_> = moments
        .clone()
        .map(|t| message(t + ahead(t) - 500, t))
        .collect();
    let map = clock_map(&there, &back, None, &Limits::default()).unwrap();
    assert!(
        map.is_wander_raised() && map.wander() > 1e-5,
        "{}",
        map.wander()
    );
    for t in moments {
        let found = map.at(t).unwrap();
        assert!(
            (found.ahead - ahead(t)).abs() <= found.half_width,
            "{found:?}"
        );
    }
    let enough = Limits {
        wander: 2e-4,
        ..Limits::default()
    };
    let map = clock_map(&there, &back, None, &enough).unwrap();
    assert!(!map.is_wander_raised());
}

/// Ten days of ticks of 1 ns, Unix times as stamps, 100 ppm, a few messages an hour: no bit is
/// lost.
#[test]
fn ten_days_of_nanoseconds() {
    const START: i64 = 1_800_000_000_000_000_000;
    const DAY: i64 = 86_400_000_000_000;
    // Exactly 1 in 10 000.
    let second = |first: i64| first + 777 + (first - START) / 10_000;
    let moments = (0..=10_000).map(|i| START + i * (DAY / 1000));
    let there: Vec<_> = moments
        .clone()
        .map(|t| message(t, second(t) + 40))
        .collect();
    let back: Vec<_> = moments
        .clone()
        .map(|t| message(second(t) - 40, t))
        .collect();
    let map = clock_map(&there, &back, None, &EXACT).unwrap();
    for day in 0..=10 {
        let at = START + day * DAY;
        let found = map.at(at).unwrap();
        assert!((found.ahead - (second(at) - at)).abs() <= 1, "{found:?}");
        assert!((42..=44).contains(&found.half_width), "{found:?}");
    }
    let (rate, doubt) = map.mean_rate();
    assert!(
        (rate - 1e-4).abs() < 1e-13 && doubt < 2e-13,
        "{rate} {doubt}"
    );
}

/// Between two knots the difference may bow: here it does, by a quarter of the wander times their
/// distance; all messages are at knots and took no time.
#[test]
fn the_difference_may_bow_between_knots() {
    const APART: i64 = 1_000_000_000;
    let moments = (0..1 << 16).map(|i| APART * i);
    let all: Vec<_> = moments.map(|t| message(t, t)).collect();
    let limits = Limits {
        wander: 1e-6,
        ..EXACT
    };
    let map = clock_map(&all, &all, None, &limits).unwrap();
    assert!(!map.is_wander_raised());
    // Up at half of the wander, and down again.
    let truth = 250;
    for i in [0, 1, 777, 65_534] {
        let found = map.at(APART * i + APART / 2).unwrap();
        assert!((found.ahead - truth).abs() <= found.half_width, "{found:?}");
    }
}

/// For any messages there is either a numeric result or a reason; and one more message never makes
/// bounds wider, except for rounding.
#[test]
fn any_messages_give_bounds_or_a_reason() {
    use rand::{RngExt as _, SeedableRng as _};
    let (mut answered, mut refused) = (0, 0);
    for seed in 0..400 {
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let scale = [10, 1_000_000, 1 << 50, i64::MAX][random.random_range(0..4)];
        let delay = [0, 5, 1000, scale / 7][random.random_range(0..4)];
        let mut messages = |many: usize| -> Vec<Message> {
            (0..many)
                .map(|_| {
                    let sent = random.random_range(-(scale / 2)..=scale / 2);
                    let early = if seed % 4 == 1 { delay } else { delay / 50 };
                    let late = random.random_range(-early..=delay);
                    message(sent, sent.saturating_add(late))
                })
                .collect()
        };
        let (there, back, more) = (messages(6), messages(6), messages(1));
        let limits = Limits {
            wander: [0.0, 1e-6, 1e-4][seed as usize % 3],
            ..Limits::default()
        };
        let span = (seed % 2 == 0).then_some((-scale, scale));
        let Ok(map) = clock_map(&there, &back, span, &limits) else {
            refused += 1;
            continue;
        };
        answered += 1;
        assert!(map.knots().is_sorted_by(|a, b| a.at < b.at), "seed {seed}");
        assert!(map.knots().iter().all(|k| k.half_width >= 2), "seed {seed}");
        let (rate, doubt) = map.mean_rate();
        assert!(rate.is_finite() && doubt.is_finite() && map.wander().is_finite());
        let more: Vec<Message> = there.iter().copied().chain(more).collect();
        if let Ok(with) = clock_map(&more, &back, span, &limits)
            && with.wander() == map.wander()
            && let Some(middle) = map.at(0)
        {
            let wider = with.at(0).map_or(0, |k| k.half_width) - middle.half_width;
            assert!(
                wider <= 2 + middle.half_width / 5,
                "seed {seed}: {wider} of {middle:?}"
            );
        }
    }
    assert!(answered > 200 && refused > 5, "{answered} {refused}");
}
