use super::*;

/// 0, 1, 1, 4: mean 1.5, squares 18 / 4 less 2.25; products at lag 1 are
/// 0 + 1 + 4, at lag 2 0 + 4, at lag 3 0.
#[test]
fn moments_by_hand() {
    let mut counts = ActivityCounts::default();
    for count in [0, 1, 1, 4] {
        counts.push(count);
    }
    assert_eq!((counts.n(), counts.ticks()), (4, 6));
    assert_eq!((counts.mean(), counts.variance()), (1.5, 2.25));
    assert_eq!(counts.products, [5, 4, 0, 0]);
    assert_eq!((counts.least, counts.most), (0, 4));
    let mut negative = ActivityCounts::default();
    for count in [-3, -5] {
        negative.push(count);
    }
    assert_eq!(
        (negative.least, negative.most, negative.mean()),
        (-5, -3, -4.0)
    );
    assert_eq!(ActivityCounts::default().variance(), 0.0);
}

/// Three cycles of two activities. The third does not begin where the second ended; the fourth
/// follows a dropped one.
#[test]
fn a_loop_by_hand() {
    let mut counts = LoopCounts::new(2);
    counts.push(&[0, 1, 3], true);
    counts.push(&[3, 3, 5], true);
    counts.push(&[6, 8, 9], true);
    counts.drop_cycle();
    counts.push(&[9, 10, 12], true);
    let each = |i: usize| (counts.activities()[i].n(), counts.activities()[i].ticks());
    assert_eq!((each(0), each(1)), ((4, 4), (4, 7)));
    assert_eq!(counts.cycle().ticks(), 11);
    assert_eq!((counts.stretches, counts.dropped()), (3, 1));
}
