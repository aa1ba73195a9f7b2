use super::*;

#[test]
fn of_nothing_is_none() {
    let m = Moments::new();
    assert_eq!((m.mean(), m.variance(), m.min()), (None, None, None));
    assert_eq!(Moments::from_values(&[5]).mean(), Some(5.0));
    assert_eq!(Moments::from_values(&[5]).sd(), None);
}

/// 2, 4, 4, 4, 5, 5, 7, 9: mean 5, sum of squared deviations 32.
#[test]
fn by_hand_whole_and_merged() {
    let values = [2, 4, 4, 4, 5, 5, 7, 9];
    for cut in 0..=values.len() {
        let mut m = Moments::from_values(&values[..cut]);
        m.extend(&values[cut..]);
        assert_eq!(m.sum(), 40);
        assert_eq!(m.mean(), Some(5.0));
        assert!((m.variance().unwrap() - 32.0 / 7.0).abs() < 1e-12);
        assert_eq!((m.min(), m.max()), (Some(2), Some(9)));
    }
}

/// An offset of 2^60 must not destroy the variance of 0, 1, 2.
#[test]
fn large_offsets_keep_the_variance() {
    let offset = 1 << 60;
    let mut m = Moments::new();
    for x in [0, 1, 2] {
        m.push(offset + x);
    }
    assert_eq!(m.variance(), Some(1.0));
}

#[test]
fn extremes_do_not_overflow() {
    let mut m = Moments::from_values(&[i64::MIN, i64::MAX]);
    m.extend(&[i64::MAX, i64::MIN]);
    assert_eq!(m.sum(), -2);
    assert_eq!(m.mean(), Some(-0.5));
    let expected = 4.0 * 2f64.powi(126) / 3.0;
    assert!((m.variance().unwrap() / expected - 1.0).abs() < 1e-12);
}

#[test]
fn a_shift_moves_the_mean_only() {
    let m = Moments::from_values(&[-3, 0, 9]).shifted(-7);
    assert_eq!(
        m,
        Moments {
            origin: -10,
            ..Moments::from_values(&[-10, -7, 2])
        }
    );
}
