use super::*;

fn stretches_of(values: impl Iterator<Item = i64>) -> Stretches {
    let mut stretches = Stretches::default();
    stretches.extend(&values.collect::<Vec<_>>());
    stretches
}

/// 17 pieces are one too many: every second stays. At the end of 100 pieces those whose number
/// is a multiple of 8 are kept.
#[test]
fn pieces_are_spread_over_the_series() {
    let stretches = stretches_of((0..100 * 128).map(|i| i / 128));
    let numbers: Vec<i64> = stretches.pieces.iter().map(|piece| piece[0]).collect();
    assert_eq!(numbers, (0..13).map(|i| i * 8).collect::<Vec<_>>());
    assert!(stretches.pieces.iter().all(|piece| piece.len() == 128));
    let short = stretches_of(0..300);
    assert_eq!((short.pieces.len(), short.partial.len()), (2, 44));
}

/// Independent: 1. Each value four times: 1 + 2 (3/4 + 2/4 + 1/4) = 4. A ramp outlasts every
/// piece.
#[test]
fn correlation_by_hand() {
    let noise = |i: i64| {
        let x = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) as i64
    };
    let independent = stretches_of((0..2000).map(noise))
        .inflation_within(&[])
        .unwrap();
    assert!((independent - 1.0).abs() < 0.2, "{independent}");
    let fourfold = stretches_of((0..8000).map(|i| noise(i / 4)))
        .inflation_within(&[])
        .unwrap();
    assert!((fourfold - 4.0).abs() < 0.4, "{fourfold}");
    assert_eq!(stretches_of(0..2000).inflation_within(&[]), None);
}

/// Two modes that last for 300 values each: together they are correlated, within each there is
/// no correlation.
#[test]
fn a_switch_of_modes_is_no_correlation_within_them() {
    let value = |i: i64| i * i % 1009 + 100_000 * (i / 300 % 2);
    let stretches = stretches_of((1..2000).map(value));
    assert_eq!(stretches.inflation_within(&[]), None);
    let within = stretches.inflation_within(&[50_000.0]).unwrap();
    assert!((within - 1.0).abs() < 0.3, "{within}");
}

#[test]
fn a_shift_moves_all() {
    let mut stretches = stretches_of(0..200);
    stretches.shift(-7);
    assert_eq!((stretches.pieces[0][0], stretches.partial[0]), (-7, 121));
}
