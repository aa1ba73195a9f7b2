use super::*;

/// The counts as they appear in the scan add up to the printed sums.
#[test]
fn the_counts_add_up() {
    for row in TABLE_17.iter() {
        assert_eq!(row.ticks.iter().sum::<u32>(), row.sum, "{}", row.name);
    }
    let parts: u32 = TABLE_17[1..].iter().map(|r| r.sum).sum();
    assert_eq!(parts, TABLE_17[0].sum);
}

/// All 13 rows agree to the last printed digit.
#[test]
fn table_17b_is_recomputed() {
    for row in TABLE_17.iter() {
        let r = row.recomputed();
        println!("{} {r:?}", row.name);
        assert!(
            (r.mean_us - f64::from(row.mean_us)).abs() <= 0.5,
            "{} {r:?}",
            row.name
        );
        assert!(
            (r.predicted_us - row.predicted_us).abs() <= 0.005_001,
            "{} {r:?}",
            row.name
        );
        assert!(
            (r.observed_us - row.observed_us).abs() <= 0.005_001,
            "{} {r:?}",
            row.name
        );
    }
}

/// Printed figures are 14b with precision 0.1, rounded to hundreds; with the
/// rows' own precision they would be 4 and 100 times as large.
#[test]
fn table_15_is_recomputed() {
    for row in TABLE_15 {
        for (formula, printed) in row.by_formula(0.1).into_iter().zip(row.cycles) {
            assert!(
                (formula - f64::from(printed)).abs() < 101.0,
                "{formula} {printed}"
            );
        }
    }
    let own = |i: usize| {
        TABLE_15[i]
            .by_formula(TABLE_15[i].precision)
            .map(f64::round)
    };
    assert_eq!(own(1), [117_979.0, 242_168.0, 1_235_679.0]);
    assert_eq!(own(2), [5_058_864.0, 10_383_984.0, 52_984_944.0]);
}
