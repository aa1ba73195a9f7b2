//! A simulated program with two paths, read by a clock that steps by 26 ticks: the report must find
//! both modes, and no others.

use crate::support;

use support::*;
use undertick_analyze::Options;

/// Ticks of the two paths; 100 successive spans take the same path.
const PATHS: [i64; 2] = [18_200, 83_200];

/// Returns a pseudo-random number from 0 up to a modulus.
fn noise(i: u64, modulus: u64) -> i64 {
    let x = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (((x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33) % modulus) as i64
}

/// 10 000 spans; a path lasts for 100 of them, and the first has 60 % of all.
fn rows(paths: [i64; 2]) -> Vec<Row> {
    let mut now = 1_000_003;
    let reading = |now: i64| now / 26 * 26 + 13;
    (0..10_000_u64)
        .flat_map(|i| {
            let path = usize::from(i / 100 % 5 >= 3);
            now += 5000 + noise(2 * i, 997);
            let begun = reading(now);
            // The sum of three is nearly normal.
            let scatter = (0..3)
                .map(|j| noise(7 * i + j + 1_000_000, 400))
                .sum::<i64>();
            now += paths[path] + scatter;
            [begin(begun, 1), end(reading(now), 1)]
        })
        .collect()
}

fn modes_of(paths: [i64; 2]) -> (f64, Vec<undertick_document::Mode>) {
    let mut m = manifest();
    m.clock.granularity_ticks = 26.0;
    let r = report(&m, &Options::default(), &rows(paths));
    (m.clock.ns_per_tick(), interval(&r, "event 1").modes.clone())
}

#[test]
fn both_paths_are_reported_with_their_shares() {
    let (ns, modes) = modes_of(PATHS);
    assert_eq!(modes.len(), 2, "{modes:?}");
    for (mode, (path, share)) in modes.iter().zip(PATHS.iter().zip([0.6, 0.4])) {
        // The middle of the three is 600 ticks higher. Above 26 000 ticks a place is known to half
        // a cell of eight steps.
        let truth = (path + 600) as f64 * ns;
        assert!(
            (mode.at - truth).abs() < 4.5 * 26.0 * ns,
            "{mode:?}: {truth}"
        );
        assert!(mode.lo < truth && truth < mode.hi, "{mode:?}");
        assert!((mode.share - share).abs() < 1e-9, "{mode:?}");
        let within = mode.share_interval.as_ref().unwrap().interval;
        assert!(within.lo.unwrap() <= share && share <= within.hi.unwrap());
        let place = mode.place.as_ref().unwrap();
        assert_eq!((place.unit.as_str(), place.value), ("ns", mode.at));
        let within = place.interval;
        assert!(
            within.lo.unwrap() <= truth && truth <= within.hi.unwrap(),
            "{place:?}"
        );
    }
    let valley = modes[0].valley.as_ref().unwrap();
    assert!(valley.p_value < 1e-6 && valley.depth < 0.01, "{valley:?}");
    assert!(modes[0].hi > 20_000.0 * ns && modes[0].hi < 83_000.0 * ns);
    assert_eq!(
        (modes[0].hi, modes[1].valley.is_none()),
        (modes[1].lo, true)
    );
}

#[test]
fn one_path_is_one_mode() {
    let (_, modes) = modes_of([18_200, 18_200]);
    assert_eq!(modes.len(), 1);
    assert_eq!((modes[0].share, modes[0].valley.is_none()), (1.0, true));
}
