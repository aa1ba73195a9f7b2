use super::*;

/// Twice the scatter: k = 1/4, exactly, in every block.
#[test]
fn k_by_hand() {
    let u: Vec<f64> = (0..320).map(|i| f64::from(i % 10)).collect();
    let c: Vec<f64> = u.iter().map(|x| 2.0 * x + 5.0).collect();
    let k = improvement(&u, &c, 0.95).unwrap();
    assert!((k.value - 0.25).abs() < 1e-12, "{k:?}");
    assert!((k.interval.lo.unwrap() - 0.25).abs() < 1e-9);
    assert!((k.interval.hi.unwrap() - 0.25).abs() < 1e-9);
    assert_eq!(k.n, 320);
}

/// Less a constant, the scatter is the same but for what is rounded, and the interval holds k.
#[test]
fn what_is_rounded_does_not_put_k_outside_its_interval() {
    let mut state = 7_u64;
    let u: Vec<f64> = (0..5941)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 40) as f64 / 16_777_216.0 * 90.0
        })
        .collect();
    for constant in 1..100 {
        let c: Vec<f64> = u.iter().map(|x| x - f64::from(constant) / 7.0).collect();
        let k = improvement(&u, &c, 0.95).unwrap();
        let (lo, hi) = (k.interval.lo.unwrap(), k.interval.hi.unwrap());
        assert!(lo <= k.value && k.value <= hi, "{k:?}");
        assert!((k.value - 1.0).abs() < 1e-9, "{k:?}");
    }
}

#[test]
fn no_spread_is_none_and_few_have_no_interval() {
    assert_eq!(improvement(&[1.0; 100], &[1.0; 100], 0.95), None);
    assert_eq!(improvement(&[], &[], 0.95), None);
    let few: Vec<f64> = (0..63).map(f64::from).collect();
    let k = improvement(&few, &few, 0.95).unwrap();
    assert_eq!((k.value, k.interval.lo), (1.0, None));
}

/// 70 values, 32 blocks of two and the last of eight: calculated independently, in Python, with
/// t(31) = 2.039513.
#[test]
fn an_interval_that_matches_another_calculation() {
    let u: Vec<f64> = (1..71).map(|i| f64::from(i * i % 401)).collect();
    let c: Vec<f64> = (1..71).map(|i| f64::from(i * 7 % 13)).collect();
    let k = improvement(&u, &c, 0.95).unwrap();
    for (found, expected) in [
        (k.value, 1_064.186_553),
        (k.interval.lo.unwrap(), 810.125_488),
        (k.interval.hi.unwrap(), 1_409.950_977),
    ] {
        assert!((found / expected - 1.0).abs() < 1e-7, "{k:?}");
    }
    assert_eq!(k.n_effective, 32.0);
}
