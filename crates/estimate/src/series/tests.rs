use super::*;
use crate::marks::QUANTILES;

#[test]
fn a_shift_is_the_series_of_shifted_values() {
    let values = |d: i64| (0..3000).map(move |i| (i * 37) % 501 + d);
    let moved = values(0).collect::<Series>().shifted(-250).sample();
    let direct = values(-250).collect::<Series>().sample();
    assert_eq!(moved.mean(0.95, 0.0), direct.mean(0.95, 0.0));
    for p in QUANTILES {
        assert_eq!(moved.quantile(p, 0.95, 0.0), direct.quantile(p, 0.95, 0.0));
    }
}

/// Results with the vectors of this CPU and without them are equal to the last bit, whether
/// values lie close together or far apart.
#[test]
fn vectors_change_nothing() {
    for width in [1_000, 1 << 40] {
        let (mut here, mut wide) = (Series::new(), Series::new());
        for i in 0..40_i64 {
            let values = (0..CHUNK as i64).map(|k| (i * 7919 + k * k * 104_729) % width - 300);
            here.pending = values.collect();
            wide.pending.clone_from(&here.pending);
            here.settle_here();
            wide.settle();
        }
        assert_eq!(here.n(), 40 * CHUNK as u64);
        assert_eq!(format!("{here:?}"), format!("{wide:?}"));
    }
}

/// 600 slow values, then 100 000 fast ones: the first threshold of the
/// median is far outside and must be replaced.
#[test]
fn a_threshold_left_behind_is_replaced() {
    let values = (0..100_600_i64).map(|i| {
        if i < 600 {
            10_000 + i % 7
        } else {
            100 + i % 11
        }
    });
    let mut series: Series = values.collect();
    series.settle();
    let median = &series.marks[0];
    assert!(
        (100..111).contains(&median.threshold),
        "{}",
        median.threshold
    );
    assert!(!median.is_stale(), "{}", median.share());
}

#[test]
fn memory_is_bounded() {
    let mut series = Series::new();
    for i in 0..300_000_i64 {
        series.push(i % 1000);
    }
    assert!(series.pending.capacity() <= CHUNK);
    assert!(series.sums.sums().len() < crate::batches::MOST);
    assert_eq!(series.n(), 300_000);
}
