use super::*;

/// 40 blocks: t(0.975; 39) = 2.022691, times sqrt(40/39) = 2.048463; Phi(-2.048463) = 0.02026:
/// the 20th of 999. For very many blocks: the 25th.
#[test]
fn ranks_by_hand() {
    assert_eq!(lower_rank(40.0, 0.95), 20);
    assert_eq!(lower_rank(1e9, 0.95), 25);
    assert_eq!(lower_rank(1e9, 0.9), 50);
    assert_eq!(lower_rank(10.0, 0.9999), 0);
}

/// 4 ones, 4 zeros, repeated: R(0) = 1/4; lags 1 and 7 are close to 1/8, 2 is 0, 4 is -1/4. The
/// autocovariances never fade into noise.
#[test]
fn a_wave_is_cut_in_long_blocks() {
    let wave: Vec<f64> = (0..800).map(|i| f64::from((i / 4) % 2)).collect();
    assert!(block_length(&wave) > 8, "{}", block_length(&wave));
    assert_eq!(block_length(&[1.0; 50]), 1);
    assert_eq!(block_length(&[]), 1);
    assert_eq!(block_length(&[3.0]), 1);
}

#[test]
fn a_trend_gets_no_interval() {
    let ramp: Vec<f64> = (0..300).map(f64::from).collect();
    let e = block_bootstrap(&ramp, |&x| x, |v| v[0], 0.95, 1).unwrap();
    assert_eq!((e.value, e.interval.lo, e.interval.hi), (0.0, None, None));
    assert!(e.notes[0].contains("too few values"), "{:?}", e.notes);
}

#[test]
fn what_has_no_statistic_has_no_estimate() {
    let of = |values: &[f64], f: fn(&[f64]) -> f64| block_bootstrap(values, |&x| x, f, 0.95, 1);
    assert!(of(&[], |_| 1.0).is_none());
    assert!(of(&[1.0; 20], |_| f64::NAN).is_none());
    // Sometimes a resample lacks the only 1.
    let mut values = [0.0; 20];
    values[3] = 1.0;
    let e = of(&values, |v| 1.0 / v.iter().sum::<f64>()).unwrap();
    assert_eq!((e.value, e.interval.lo), (1.0, None));
}

/// Every value is equally likely, and blocks run on in order and wrap around the end.
#[test]
fn blocks_are_stretches_of_a_circle() {
    let values: Vec<usize> = (0..10).collect();
    let mut starts = [0_u32; 10];
    let count = std::cell::RefCell::new(&mut starts);
    resampled(
        &values,
        4,
        |v| {
            assert_eq!(v.len(), 10);
            for block in [&v[0..4], &v[4..8], &v[8..10]] {
                assert!(block.windows(2).all(|w| w[1] == (w[0] + 1) % 10), "{v:?}");
                count.borrow_mut()[block[0]] += 1;
            }
            0.0
        },
        7,
    );
    // 2997 starts: 299.7 each, sd 16.4; the bounds are five sd either way.
    assert!(
        starts.iter().all(|&s| (217..=382).contains(&s)),
        "{starts:?}"
    );
}

/// Sums of two, and of four, of the squares modulo 401 have a memory of one and of three lags.
/// The lengths were calculated independently, in Python: 10.95 and 21.72.
#[test]
fn lengths_match_another_calculation() {
    let square = |i: u32| f64::from(i * i % 401);
    let of = |k: u32| -> Vec<f64> { (1..=400).map(|i| (i..i + k).map(square).sum()).collect() };
    assert_eq!(block_length(&of(2)), 11);
    assert_eq!(block_length(&of(4)), 22);
    assert_eq!(block_length(&of(1)), 1);
    // Correlation after 4 and 8 values, little between: 37.56.
    let apart: Vec<f64> = (1..=400)
        .map(|i| square(i) + square(i + 4) + square(i + 8))
        .collect();
    assert_eq!(block_length(&apart), 38);
}
