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

/// A duration that is known within `half_ns`, to three digits at most.
#[must_use]
pub fn duration_within(ns: f64, half_ns: f64) -> String {
    let interval = Interval::new(ns - half_ns, ns + half_ns);
    let (supported, short) = (
        on_scale(ns, interval, DURATIONS).value_and_unit(),
        duration(ns),
    );
    if supported.len() < short.len() {
        supported
    } else {
        short
    }
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
    three_digits(n)
}

/// A count to three digits.
#[must_use]
pub fn three_digits(n: u64) -> String {
    if n < 1000 {
        return n.to_string();
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
mod tests;
