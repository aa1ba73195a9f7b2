use super::{occupied_ns, turn_ns};

const TURN: f64 = 4.0;

/// Turns of 4 each. Processes that run for 0.05 after each 0.3, in every second burst, are more
/// numerous, and change nothing.
#[test]
fn turns_are_those_of_who_has_most_of_the_time() {
    let alone: Vec<Vec<(f64, f64)>> = (0..10)
        .map(|i| {
            let at = 0.1 * f64::from(i);
            vec![(at, at + 4.0), (at + 8.0, at + 12.0)]
        })
        .collect();
    assert!((turn_ns(&alone) - TURN).abs() < 1e-9);
    let crowded: Vec<Vec<(f64, f64)>> = (alone.iter().enumerate())
        .map(|(i, times)| {
            let gap = times[0].1..times[1].0;
            let at = |k: i32| gap.start + 0.35 * f64::from(k) + 0.3;
            let others = (0..10).map(|k| (at(k), at(k) + 0.05));
            let mut all = times.clone();
            all.extend(others.filter(|_| i % 2 == 0));
            all.sort_by(|a, b| a.0.total_cmp(&b.0));
            all
        })
        .collect();
    assert!((turn_ns(&crowded) - TURN).abs() < 1e-9);
    // The process occupies the CPU all the time in either.
    for times in alone.iter().chain(&crowded) {
        let (from, to) = (times[0].0, times[times.len() - 1].1);
        let moved: Vec<(f64, f64)> = times.iter().map(|t| (t.0 - from, t.1 - from)).collect();
        let occupied = occupied_ns(&moved, to - from, turn_ns(&crowded));
        assert!((occupied - 12.0).abs() < 1e-9, "{occupied}: {times:?}");
    }
    // One loss in each burst: the turn has the same length.
    assert!((turn_ns(&[vec![(1.0, 5.0)], vec![(2.0, 6.0)]]) - TURN).abs() < 1e-9);
    assert_eq!(turn_ns(&[]), 0.0);
}

#[test]
fn a_process_that_is_there_all_the_time() {
    for lost in [
        &[(4.0, 8.0)][..],
        &[(0.0, 4.0), (8.0, 12.0)],
        &[(1.0, 5.0), (9.0, 12.0)],
        &[(6.5, 10.5)],
        &[(0.0, 12.0)],
    ] {
        assert_eq!(occupied_ns(lost, 12.0, TURN), 12.0, "{lost:?}");
    }
}

#[test]
fn one_that_comes_or_goes() {
    // Starts at 8: 8 is more than any turn of 4; half a turn before.
    assert_eq!(occupied_ns(&[(8.0, 12.0)], 12.0, TURN), 6.0);
    // Ends at 3.
    assert_eq!(occupied_ns(&[(0.0, 3.0)], 12.0, TURN), 4.5);
    // Stops and starts again.
    let lost = [(0.0, 4.0), (16.0, 20.0)];
    assert_eq!(occupied_ns(&lost, 20.0, TURN), 12.0);
}

#[test]
fn who_runs_shortly_was_there_shortly() {
    assert_eq!(occupied_ns(&[(5.0, 5.5)], 12.0, TURN), 1.0);
    assert_eq!(occupied_ns(&[(0.0, 0.5)], 12.0, TURN), 0.75);
    assert_eq!(occupied_ns(&[], 12.0, TURN), 0.0);
    assert_eq!(occupied_ns(&[(3.0, 3.0)], 12.0, 0.0), 0.0);
}
