use super::*;

/// Every difference is written out and sorted, as the definition says.
fn by_definition(below: &[f64], above: &[f64]) -> Vec<f64> {
    let mut all: Vec<f64> = (below.iter())
        .flat_map(|b| above.iter().map(move |a| a - b))
        .collect();
    all.sort_by(f64::total_cmp);
    all
}

/// 5 and 5 at 90 %: 12.5 - 1.645 * sqrt(25 * 11 / 12) = 4.6, so the fourth
/// difference from either end, and the thirteenth of 25 as the value.
#[test]
fn five_and_five() {
    let below = [3.0, 1.0, 4.0, 1.5, 9.0];
    let above = [12.0, 16.0, 15.0, 13.5, 18.9];
    let all = by_definition(&below, &above);
    let found = shift(&below, &above, 0.9).unwrap();
    for (value, expected) in [
        (found.value, all[12]),
        (found.lo, all[3]),
        (found.hi, all[21]),
    ] {
        assert!((value - expected).abs() < 1e-12, "{found:?}");
    }
}

/// The differences do not depend on where both samples lie.
#[test]
fn far_from_zero() {
    let near = shift(
        &[3.0, 1.0, 4.0, 1.5, 9.0],
        &[12.0, 16.0, 15.0, 13.5, 19.0],
        0.9,
    );
    for by in [-1024.0, 1024.0] {
        let below = [3.0, 1.0, 4.0, 1.5, 9.0].map(|x| x + by);
        let above = [12.0, 16.0, 15.0, 13.5, 19.0].map(|x| x + by);
        assert_eq!(shift(&below, &above, 0.9), near);
    }
}

/// 4 and 6: the mean of the twelfth and the thirteenth of 24.
#[test]
fn an_even_number_of_differences() {
    let below = [0.0, 1.0, 10.0, 11.0];
    let above = [20.0, 21.5, 23.0, 24.5, 26.0, 50.0];
    let all = by_definition(&below, &above);
    let found = shift(&below, &above, 0.9).unwrap();
    assert!((found.value - 0.5 * (all[11] + all[12])).abs() < 1e-12);
    // 12 - 1.645 * sqrt(24 * 11 / 12) = 4.28.
    assert!((found.lo - all[3]).abs() < 1e-12 && (found.hi - all[20]).abs() < 1e-12);
}

#[test]
fn all_the_same_and_too_few() {
    let same = shift(&[2.0; 8], &[5.0; 9], 0.9).unwrap();
    assert_eq!((same.value, same.lo, same.hi), (3.0, 3.0, 3.0));
    assert_eq!(shift(&[1.0; 3], &[2.0; 3], 0.9), None);
    assert!(shift(&[1.0; 4], &[2.0; 4], 0.9).is_some());
    assert_eq!(shift(&[], &[2.0; 9], 0.9), None);
}
