//! Expected values are calculated by hand, or by schoolbook arithmetic on digits to base 10 that
//! shares nothing with the code under test.

use super::*;
use crate::{Reading, Tsc};

/// Unsigned numbers as decimal digits, lowest first.
mod schoolbook {
    fn digits(mut n: u64) -> Vec<u8> {
        let mut digits = Vec::new();
        while n > 0 {
            digits.push((n % 10) as u8);
            n /= 10;
        }
        digits
    }

    fn times(a: &[u8], b: &[u8]) -> Vec<u8> {
        let mut sums = vec![0_u32; a.len() + b.len() + 1];
        for (i, x) in a.iter().enumerate() {
            for (j, y) in b.iter().enumerate() {
                sums[i + j] += u32::from(*x) * u32::from(*y);
            }
        }
        for i in 0..sums.len() - 1 {
            sums[i + 1] += sums[i] / 10;
            sums[i] %= 10;
        }
        sums.into_iter().map(|d| d as u8).collect()
    }

    /// Long division by hand: bring down a digit, count how often it goes.
    fn divided(dividend: &[u8], divisor: u64) -> (String, u64) {
        let mut rest = 0_u128;
        let mut quotient = String::new();
        for digit in dividend.iter().rev() {
            rest = rest * 10 + u128::from(*digit);
            let mut goes = 0;
            while rest >= u128::from(divisor) {
                rest -= u128::from(divisor);
                goes += 1;
            }
            quotient.push(char::from(b'0' + goes));
        }
        let trimmed = quotient.trim_start_matches('0');
        let quotient = if trimmed.is_empty() { "0" } else { trimmed };
        (quotient.to_owned(), rest as u64)
    }

    /// Quotient and remainder of `a * b * c / d`.
    pub fn product_divided(a: u64, b: u64, c: u64, d: u64) -> (String, u64) {
        divided(&times(&times(&digits(a), &digits(b)), &digits(c)), d)
    }
}

/// Rates from a watch crystal to 10 GHz, whole and fractional.
const RATES: [(u64, u64); 12] = [
    (32_768, 1),
    (1, 1),
    (3, 7),
    (1_193_182, 1),
    (14_318_180, 3),
    (24_000_000, 1),
    (1_000_000_000, 1),
    (2_596_133_000, 1),
    (2_596_133_017, 3),
    (10_000_000_000, 1),
    (u64::MAX, u64::MAX - 1),
    (u64::MAX - 58, 7_105_478_913_000_000_001),
];

const TICKS: [u64; 10] = [
    0,
    1,
    26,
    999_999_999,
    u32::MAX as u64,
    1 << 53,
    (1 << 63) - 1,
    1 << 63,
    u64::MAX - 1,
    u64::MAX,
];

#[test]
fn ns_from_ticks_agrees_with_schoolbook_arithmetic() {
    for (numerator, denominator) in RATES {
        let rate = TickRate::new(numerator, denominator).unwrap();
        for ticks in TICKS {
            let (expected, _) =
                schoolbook::product_divided(ticks, denominator, 1_000_000_000, numerator);
            assert_eq!(
                rate.ns_from_ticks(ticks).to_string(),
                expected,
                "{ticks} ticks at {numerator}/{denominator} Hz"
            );
        }
    }
}

#[test]
fn ns_from_ticks_signed_rounds_towards_the_past() {
    for (numerator, denominator) in RATES {
        let rate = TickRate::new(numerator, denominator).unwrap();
        for ticks in TICKS {
            let magnitude = ticks >> 1;
            let (quotient, rest) =
                schoolbook::product_divided(magnitude, denominator, 1_000_000_000, numerator);
            let down: i128 = quotient.parse().unwrap();
            let ticks = i64::try_from(magnitude).unwrap();
            assert_eq!(rate.ns_from_ticks_signed(ticks), down);
            let past = if rest == 0 { -down } else { -down - 1 };
            assert_eq!(
                rate.ns_from_ticks_signed(-ticks),
                past,
                "-{ticks} ticks at {numerator}/{denominator} Hz"
            );
        }
    }
}

#[test]
fn worked_by_hand() {
    // 2^64 - 1 ticks at 32 768 = 2^15 Hz: (2^64 - 1) * 1e9 / 2^15
    // = 2^49 * 1e9 - 1e9 / 2^15 = 562 949 953 421 312 000 000 000 - 30 517.57...
    let watch_crystal = TickRate::new(32_768, 1).unwrap();
    assert_eq!(
        watch_crystal.ns_from_ticks(u64::MAX),
        562_949_953_421_311_999_969_482
    );
    // One step of 26 ticks at 2.6 GHz is 10 ns; one tick is 0.38 ns.
    let tsc = TickRate::new(2_600_000_000, 1).unwrap();
    assert_eq!(tsc.ns_from_ticks(26), 10);
    assert_eq!(tsc.ns_from_ticks(1), 0);
    assert_eq!(tsc.ns_from_ticks_signed(-1), -1);
    // 10 GHz: ten ticks are 1 ns; u64::MAX ends in 5.
    let fast = TickRate::new(10_000_000_000, 1).unwrap();
    assert_eq!(fast.ns_from_ticks(u64::MAX), 1_844_674_407_370_955_161);
    // The smallest i64: 2^63 * 5 = 13 * 3 547 450 783 405 683 003 + 1, so rounded to the past.
    assert_eq!(
        tsc.ns_from_ticks_signed(i64::MIN),
        -3_547_450_783_405_683_004
    );
    // Nanosecond clocks convert to themselves.
    assert_eq!(
        TickRate::NANOSECONDS.ns_from_ticks(u64::MAX),
        u128::from(u64::MAX)
    );
    assert_eq!(
        TickRate::NANOSECONDS.ns_from_ticks_signed(i64::MIN),
        i128::from(i64::MIN)
    );
}

#[test]
fn spans_convert_with_their_clock() {
    let rate = TickRate::new(1_300_000_000, 1).unwrap();
    let begin = Reading::<Tsc>::from_raw(u64::MAX - 12);
    let end = Reading::<Tsc>::from_raw(0);
    assert_eq!(rate.nanos_from_ticks(end - begin), Some(Nanos(10)));
    assert_eq!(rate.nanos_from_ticks(begin - end), Some(Nanos(-10)));
    let watch_crystal = TickRate::new(32_768, 1).unwrap();
    assert_eq!(
        watch_crystal.nanos_from_ticks(Ticks::<Tsc>::from_raw(i64::MAX)),
        None
    );
}

#[test]
fn ticks_from_ns_agrees_with_schoolbook_arithmetic() {
    for (numerator, denominator) in RATES {
        let rate = TickRate::new(numerator, denominator).unwrap();
        for ns in TICKS {
            // floor(floor(x) / 1e9) is floor(x / 1e9): drop nine digits.
            let (billionths, _) = schoolbook::product_divided(ns, numerator, 1, denominator);
            let whole = &billionths[..billionths.len().saturating_sub(9)];
            let expected = format!("0{whole}").parse::<u64>().ok();
            assert_eq!(
                rate.ticks_from_ns(ns),
                expected,
                "{ns} ns at {numerator}/{denominator} Hz"
            );
        }
    }
}

#[test]
fn a_tick_there_and_back_loses_no_tick() {
    // Rounding down twice loses at most one tick where a tick is longer than 1 ns.
    let rate = TickRate::new(24_000_000, 1).unwrap();
    for ticks in [0_u64, 1, 2, 3, 1_000_003, 1 << 40] {
        let ns = u64::try_from(rate.ns_from_ticks(ticks)).unwrap();
        let back = rate.ticks_from_ns(ns).unwrap();
        assert!(
            back == ticks || back + 1 == ticks,
            "{ticks} came back as {back}"
        );
    }
}

#[test]
fn what_is_no_rate() {
    assert_eq!(TickRate::new(0, 1), Err(BadRate::Zero));
    assert_eq!(TickRate::new(1, 0), Err(BadRate::Zero));
    assert_eq!(TickRate::new(1, 1 << 34), Err(BadRate::TooSlow));
    assert_eq!(TickRate::from_span(0, 5), Err(BadRate::Zero));
    assert_eq!(TickRate::from_span(5, 0), Err(BadRate::Zero));
    assert_eq!(TickRate::from_span(u64::MAX, 1), Err(BadRate::TooFast));
    let slowest = TickRate::new(1, (1 << 34) - 1).unwrap();
    let (expected, _) = schoolbook::product_divided(u64::MAX, (1 << 34) - 1, 1_000_000_000, 1);
    assert_eq!(slowest.ns_from_ticks(u64::MAX).to_string(), expected);
}

#[test]
fn a_measured_span_becomes_a_rate() {
    // 130 ticks in 50 ns are 2.6 GHz, exactly.
    assert_eq!(
        TickRate::from_span(130, 50),
        TickRate::new(2_600_000_000, 1)
    );
    // 7 ticks in 3 ns: 7e9/3 per second, which is not a whole number of hertz.
    let odd = TickRate::from_span(7, 3).unwrap();
    assert_eq!((odd.numerator(), odd.denominator()), (7_000_000_000, 3));
    // A span whose exact fraction needs more than 64 bits: an hour at 2.6 GHz and a bit.
    let hour = TickRate::from_span(9_360_000_000_001, 3_600_000_000_007).unwrap();
    let exact = 9_360_000_000_001.0 / 3_600_000_000_007.0 * 1e9;
    assert!((hour.ticks_per_s() / exact - 1.0).abs() < 0.3e-9);
}

#[test]
fn rates_are_fractions_in_lowest_terms() {
    let a = TickRate::new(2_596_000_000, 2).unwrap();
    assert_eq!(a, TickRate::new(1_298_000_000, 1).unwrap());
    assert_eq!((a.numerator(), a.denominator()), (1_298_000_000, 1));
    assert_eq!(a.to_string(), "1298.000000 MHz");
    assert!((TickRate::new(2_600_000_000, 1).unwrap().ns_per_tick() - 5.0 / 13.0).abs() < 1e-15);
}
