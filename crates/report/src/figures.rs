//! Figures as text: units that suit the size, and only those digits that the interval supports.
//!
//! A value is rounded to the decade of the leading digit of half the width of its interval, or to
//! one digit more if that leading digit is 1. Bounds are rounded outwards, so that the printed
//! interval covers the computed one. A figure without an interval (a minimum or maximum) gets three
//! digits.

use undertick_units::{Estimate, Interval};

/// Maximum number of significant digits of a value, whatever its interval supports.
const MOST_DIGITS: i32 = 5;

/// Number of digits of a figure that has no interval, or one of zero width.
const DIGITS_WITHOUT_INTERVAL: i32 = 3;

/// A number from here on is written with a power of ten, to fit its column.
const LONGEST: f64 = 1e6;

/// Placeholder for a bound or a figure that the data cannot give.
pub const UNKNOWN: &str = "?";

/// A figure and its interval as text, in one unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// The value, without its unit.
    pub value: String,
    /// Lower bound, or `?`.
    pub lo: String,
    /// Upper bound, or `?`.
    pub hi: String,
    /// Unit of all three; empty for a bare number.
    pub unit: &'static str,
}

impl Figure {
    /// The value with its unit.
    #[must_use]
    pub fn value_and_unit(&self) -> String {
        with_unit(&self.value, self.unit)
    }

    /// `[lo, hi]`, in the value's unit.
    #[must_use]
    pub fn interval(&self) -> String {
        format!("[{}, {}]", self.lo, self.hi)
    }
}

/// Units to print in: the name of each, and its size in the data's unit.
type Scale = [(&'static str, f64)];

const DURATIONS: &Scale = &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
const RATES: &Scale = &[("/s", 1.0), ("k/s", 1e3), ("M/s", 1e6), ("G/s", 1e9)];
const SHARES: &Scale = &[("%", 0.01)];
const NUMBERS: &Scale = &[("", 1.0)];

fn scale_of(unit: &str) -> &'static Scale {
    match unit {
        "ns" => DURATIONS,
        "1/s" => RATES,
        "1" => SHARES,
        _ => NUMBERS,
    }
}

/// An estimate as text. Durations, rates and shares get a unit of suitable size; a share of 1 is
/// 100 %.
#[must_use]
pub fn figure(estimate: &Estimate) -> Figure {
    on_scale(estimate.value, estimate.interval, scale_of(&estimate.unit))
}

/// An estimate as a number in its own unit, whichever that is.
#[must_use]
pub fn plain(estimate: &Estimate) -> Figure {
    on_scale(estimate.value, estimate.interval, NUMBERS)
}

/// A duration without an interval, to three digits.
#[must_use]
pub fn duration(ns: f64) -> String {
    on_scale(ns, Interval { lo: None, hi: None }, DURATIONS).value_and_unit()
}

/// A count in full, in groups of three digits.
#[must_use]
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut grouped = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped.push('\u{a0}');
        }
        grouped.push(digit);
    }
    grouped
}

/// A count in at most nine columns: in full below ten million, else three digits.
#[must_use]
pub fn short_count(n: u64) -> String {
    if n < 10_000_000 {
        return count(n);
    }
    let mut scaled = n as f64;
    for suffix in ["k", "M", "G", "T", "P"] {
        scaled /= 1e3;
        if scaled < 999.5 {
            let decade = DIGITS_WITHOUT_INTERVAL - 1;
            return format!(
                "{}\u{a0}{suffix}",
                rounded(scaled, leading(scaled.max(1.0)) - decade, f64::round)
            );
        }
    }
    format!("{:.2e}", n as f64)
}

/// A share of a whole in per cent, to two digits. A share above nothing is never shown as nothing,
/// nor one below everything as everything.
#[must_use]
pub fn per_cent(share: f64) -> String {
    let per_cent = share * 100.0;
    let text = if !share.is_finite() {
        UNKNOWN.to_owned()
    } else if per_cent == 0.0 || per_cent == 100.0 {
        format!("{per_cent}")
    } else if per_cent < 0.01 {
        "<0.01".to_owned()
    } else if per_cent > 99.99 && per_cent < 100.0 {
        ">99.99".to_owned()
    } else if per_cent > 99.0 {
        format!("{per_cent:.2}")
    } else {
        rounded(per_cent, (leading(per_cent * 1.005) - 1).min(0), f64::round)
    };
    with_unit(&text, "%")
}

/// Value and unit, joined by a non-breaking space.
fn with_unit(value: &str, unit: &str) -> String {
    if unit.is_empty() || value == UNKNOWN {
        return value.to_owned();
    }
    let gap = if unit.ends_with("/s") && unit.len() == 2 {
        ""
    } else {
        "\u{a0}"
    };
    format!("{value}{gap}{unit}")
}

fn on_scale(value: f64, interval: Interval, scale: &'static Scale) -> Figure {
    if !value.is_finite() {
        return Figure {
            value: UNKNOWN.to_owned(),
            lo: UNKNOWN.to_owned(),
            hi: UNKNOWN.to_owned(),
            unit: scale[0].0,
        };
    }
    let mut at = scale
        .iter()
        .rposition(|(_, size)| value.abs() >= *size)
        .unwrap_or(0);
    loop {
        let (unit, size) = scale[at];
        let (value, lo, hi) = (
            value / size,
            interval.lo.map(|lo| lo / size),
            interval.hi.map(|hi| hi / size),
        );
        let decade = last_decade(value, lo, hi);
        // 999.96 ns to one digit is 1.0 us.
        if at + 1 < scale.len() && to_decade(value, decade, f64::round).abs() >= 1e3 {
            at += 1;
            continue;
        }
        let bound = |bound: Option<f64>, towards: fn(f64) -> f64| {
            bound
                .filter(|b| b.is_finite())
                .map_or(UNKNOWN.to_owned(), |b| rounded(b, decade, towards))
        };
        return Figure {
            value: rounded(value, decade, f64::round),
            lo: bound(lo, f64::floor),
            hi: bound(hi, f64::ceil),
            unit,
        };
    }
}

/// The decade of the last digit that the interval supports.
fn last_decade(value: f64, lo: Option<f64>, hi: Option<f64>) -> i32 {
    let widest = [lo, hi]
        .into_iter()
        .flatten()
        .map(|bound| (bound - value).abs())
        .fold(0.0, f64::max);
    let half_width = match (lo, hi) {
        (Some(lo), Some(hi)) => (hi - lo) / 2.0,
        _ => widest,
    };
    if !(half_width.is_finite() && half_width > 0.0) {
        // 0.9996 is 1.00 to three digits, so it begins one decade higher.
        let digits = if value == 0.0 {
            1
        } else {
            DIGITS_WITHOUT_INTERVAL
        };
        return leading(value * 1.000_5) + 1 - digits;
    }
    let decade = leading(half_width);
    let begins_with_one = half_width / 10_f64.powi(decade) < 2.0;
    let supported = if begins_with_one { decade - 1 } else { decade };
    if value == 0.0 {
        return supported;
    }
    // At least the leading digit of the value, at most five.
    supported.clamp(leading(value) + 1 - MOST_DIGITS, leading(value))
}

/// The decade of the leading digit: 2 for 812, -1 for 0.4; 0 for zero.
fn leading(x: f64) -> i32 {
    if x == 0.0 {
        return 0;
    }
    x.abs().log10().floor() as i32
}

/// Rounds to a decade by the function `towards`. An excess of a billionth of a unit in the last
/// place does not push a bound outwards.
fn to_decade(x: f64, decade: i32, towards: fn(f64) -> f64) -> f64 {
    let unit = 10_f64.powi(decade);
    let units = x / unit;
    let nearest = units.round();
    if (units - nearest).abs() < 1e-9 * nearest.abs().max(1.0) {
        nearest * unit
    } else {
        towards(units) * unit
    }
}

fn rounded(x: f64, decade: i32, towards: fn(f64) -> f64) -> String {
    let at_decade = to_decade(x, decade, towards);
    if at_decade.abs() >= LONGEST {
        return format!("{:.1e}", to_decade(x, leading(x) - 1, towards));
    }
    // Avoid "-0".
    let shown = if at_decade == 0.0 { 0.0 } else { at_decade };
    format!("{shown:.*}", usize::try_from(-decade).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(value: f64, lo: impl Into<Option<f64>>, hi: impl Into<Option<f64>>) -> String {
        let interval = Interval {
            lo: lo.into(),
            hi: hi.into(),
        };
        let figure = on_scale(value, interval, DURATIONS);
        format!("{} {}", figure.value_and_unit(), figure.interval()).replace('\u{a0}', " ")
    }

    #[test]
    fn only_digits_that_the_interval_supports() {
        assert_eq!(ns(849.31, 846.12, 851.47), "849 ns [846, 852]");
        assert_eq!(ns(849.31, 847.82, 850.74), "849.3 ns [847.8, 850.8]");
        assert_eq!(ns(849.31, 700.0, 999.0), "850 ns [700, 1000]");
        assert_eq!(
            ns(1_234_567.0, 1_234_000.0, 1_235_000.0),
            "1.2346 ms [1.2340, 1.2350]"
        );
        assert_eq!(ns(5.2, 4.9, 5.5), "5.2 ns [4.9, 5.5]");
        assert_eq!(ns(2.5e9, 2.0e9, 3.0e9), "2.5 s [2.0, 3.0]");
    }

    #[test]
    fn bounds_are_rounded_outwards() {
        // Rounded to nearest, [846, 851] would leave 851.47 out.
        assert_eq!(ns(849.31, 846.92, 852.47), "849 ns [846, 853]");
        assert_eq!(ns(-849.31, -852.47, -846.92), "-849 ns [-853, -846]");
        // The same where only two digits are left: 9.04e6 us is above 9.0e6.
        assert_eq!(ns(5e3, -9.04e9, 9.04e9), "5 us [-9.1e6, 9.1e6]");
        // A bound on the last digit stays where it is.
        assert_eq!(ns(0.3, 0.1, 0.5), "0.3 ns [0.1, 0.5]");
    }

    #[test]
    fn the_printed_interval_covers_the_computed_one() {
        let mut x = 0.000_137_f64;
        while x < 1e13 {
            for width in [1e-6, 0.013, 0.4, 3.0] {
                let (lo, hi) = (x * (1.0 - width), x * (1.0 + width));
                let figure = on_scale(x, Interval::new(lo, hi), DURATIONS);
                let size = DURATIONS.iter().find(|s| s.0 == figure.unit).unwrap().1;
                let number = |text: &str| text.parse::<f64>().unwrap() * size;
                assert!(
                    number(&figure.lo) <= lo * (1.0 + 1e-9 * lo.signum()),
                    "{figure:?} {lo}"
                );
                assert!(number(&figure.hi) >= hi * (1.0 - 1e-9), "{figure:?} {hi}");
            }
            x *= 1.37;
        }
    }

    #[test]
    fn a_missing_bound_is_a_question_mark() {
        assert_eq!(ns(849.31, None, 851.47), "849 ns [?, 852]");
        assert_eq!(ns(849.31, 846.2, None), "849 ns [846, ?]");
        assert_eq!(ns(849.31, None, None), "849 ns [?, ?]");
        assert_eq!(ns(f64::NAN, 1.0, 2.0), "? [?, ?]");
        assert_eq!(ns(7.0, f64::NEG_INFINITY, f64::INFINITY), "7.00 ns [?, ?]");
    }

    #[test]
    fn an_interval_wider_than_the_value_leaves_one_digit() {
        assert_eq!(ns(5.3, -20.0, 30.6), "5 ns [-20, 31]");
        assert_eq!(ns(0.0, -20.0, 30.0), "0 ns [-20, 30]");
        assert_eq!(ns(0.0, 0.0, 0.0), "0 ns [0, 0]");
    }

    #[test]
    fn rounding_up_to_a_thousand_takes_the_next_unit() {
        assert_eq!(ns(999.97, 999.0, 1_000.9), "1.0000 us [0.9990, 1.0009]");
        assert_eq!(duration(999.6), "1.00\u{a0}us");
        assert_eq!(duration(999.4), "999\u{a0}ns");
    }

    #[test]
    fn durations_without_an_interval_have_three_digits() {
        let shown = [0.0, 0.05, 12.345, 4_096.0, 86_400e9, -31.0].map(duration);
        assert_eq!(
            shown.map(|s| s.replace('\u{a0}', " ")),
            [
                "0 ns",
                "0.0500 ns",
                "12.3 ns",
                "4.10 us",
                "86400 s",
                "-31.0 ns"
            ]
        );
    }

    #[test]
    fn rates_and_shares_have_their_units() {
        let estimate = |value: f64, half: f64, unit: &str| Estimate {
            value,
            interval: Interval::new(value - half, value + half),
            level: 0.95,
            unit: unit.to_owned(),
            method: String::new(),
            n: 1,
            n_effective: 1.0,
            notes: vec![],
        };
        let shown = |e: &Estimate| figure(e).value_and_unit().replace('\u{a0}', " ");
        assert_eq!(shown(&estimate(12_345.0, 30.0, "1/s")), "12.35 k/s");
        assert_eq!(shown(&estimate(12.0, 3.0, "1/s")), "12/s");
        assert_eq!(shown(&estimate(0.034, 0.002, "1")), "3.4 %");
        assert_eq!(shown(&estimate(3.4, 0.2, "furlong")), "3.4");
    }

    #[test]
    fn counts_are_grouped_and_short_where_asked() {
        assert_eq!(count(1_234_567).replace('\u{a0}', " "), "1 234 567");
        assert_eq!((count(0), count(999)), ("0".into(), "999".into()));
        let short = [9_999_999, 12_345_678, 999_600_000, u64::MAX].map(short_count);
        assert_eq!(
            short.map(|s| s.replace('\u{a0}', " ")),
            ["9 999 999", "12.3 M", "1.00 G", "1.84e19"]
        );
    }

    #[test]
    fn something_is_never_shown_as_nothing() {
        let shown = [
            0.0, 1e-9, 0.000_123, 0.000_996, 0.0042, 0.5, 0.123_4, 0.999_99, 0.994, 1.0,
        ]
        .map(per_cent);
        assert_eq!(
            shown.map(|s| s.replace('\u{a0}', " ")),
            [
                "0 %", "<0.01 %", "0.012 %", "0.10 %", "0.42 %", "50 %", "12 %", ">99.99 %",
                "99.40 %", "100 %"
            ]
        );
    }
}
