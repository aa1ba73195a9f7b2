use super::*;

fn perturbation(switches: &[(i64, i64, Switched)]) -> Perturbation {
    let about = manifest::Perturbation {
        asked: "1".into(),
        kept: vec![1],
        pairs: 0,
        half_ns: 0,
    };
    // 20 us are 20 ticks.
    let mut found = Perturbation::new(&about, 1000.0);
    for &(before, after, state) in switches {
        found.push(Kind::Epoch as i8, state as i32, before, after - before);
    }
    found.settle();
    found
}

use Switched::{AllOn, Between, SomeOff};

#[test]
fn pairs_and_renewals_by_hand() {
    let found = perturbation(&[
        (1000, 1001, AllOn),
        (2000, 2003, SomeOff),
        (3000, 3001, SomeOff),
        (4000, 4001, AllOn),
        (5000, 5001, Between),
        (6000, 6001, SomeOff),
        (7000, 7001, Between),
        (8000, 8001, AllOn),
        (9000, 9001, SomeOff),
        (9500, 9501, Between),
    ]);
    let half = |from, until, is_on| Half { from, until, is_on };
    assert_eq!(
        found.halves[..],
        [
            half(1021, 2000, true),
            half(2023, 3000, false),
            half(3021, 4000, false),
            half(4021, 5000, true),
            half(8021, 9000, true),
            half(9021, 9500, false),
        ]
    );
    assert_eq!(found.renewals(), [4000, 7000, 9500]);
    assert!(found.switches(2) && !found.switches(1));
}

/// 110 with and 100 without, four points inside. Spans that begin while caches settle, or
/// within four medians of the end, are in no half.
#[test]
fn sections_go_where_they_begin() {
    let mut switches = Vec::new();
    for i in 0..40 {
        let first = if i % 3 == 0 { AllOn } else { SomeOff };
        let second = if i % 3 == 0 { SomeOff } else { AllOn };
        switches.push((10_000 * i, 10_000 * i, first));
        switches.push((10_000 * i + 5000, 10_000 * i + 5000, second));
    }
    switches.push((400_000, 400_000, Between));
    let mut found = perturbation(&switches);
    let halves = found.halves.clone();
    assert_eq!(halves.len(), 80);
    for half in halves.iter() {
        // A switch has a cost; four times the median are 440 or 400.
        found.take(7, half.from - 20, 5000, 9);
        found.take(7, half.until - 100, 5000, 9);
        let (ticks, inside) = if half.is_on { (110, 4) } else { (100, 0) };
        for i in 0..20 {
            found.take(7, half.from + 200 * i, ticks, inside);
        }
    }
    // Spans that began while caches settled after the last half or before the first also
    // count as on.
    found.take(7, -5, 110, 4);
    found.take(7, 400_010, 110, 4);
    let on = found.share_on(7);
    assert!((on - 882.0 / 1762.0).abs() < 1e-12, "{on}");
    assert_eq!(found.share_on(8), 0.0);
    let all = found.slowdown_in_place(7, 0.95).unwrap();
    assert!((all.slowdown.difference.value - 10.0).abs() < 1e-9);
    assert!((all.slowdown.share.value - 0.1).abs() < 1e-9);
    assert_eq!(all.slowdown.sections, [800, 800]);
    assert_eq!(all.slowdown.long, [0, 0]);
    assert!((all.points - 4.0).abs() < 1e-12);
    assert!(found.slowdown_in_place(8, 0.95).is_none());
}
