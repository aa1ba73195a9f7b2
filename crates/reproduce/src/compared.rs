//! Compares published figures with those of experiments on this machine: looks figures up in a
//! report, combines several, and computes the ratio.

use undertick_document::figures::figure;
use undertick_document::{IntervalReport, LineReport, Report};
use undertick_estimate::scaled;
use undertick_report::reproduce::Item;
use undertick_units::{Estimate, Interval};

/// A published figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Published {
    /// The figure, or the middle of a range.
    pub(super) value: f64,
    /// As printed.
    pub(super) printed: &'static str,
}

pub(super) const fn published(value: f64, printed: &'static str) -> Published {
    Published { value, printed }
}

/// The parameters that a figure must have.
pub(super) type With<'a> = &'a [(&'a str, &'a str)];

/// The figures of a report of experiments.
#[derive(Clone, Copy)]
pub(super) struct Figures<'a>(pub(super) &'a Report);

impl<'a> Figures<'a> {
    /// The intervals of a script with these parameters.
    pub(super) fn intervals<'b>(
        self,
        script: &'b str,
        with: With<'b>,
    ) -> impl Iterator<Item = &'a IntervalReport> + use<'a, 'b> {
        self.0.intervals.iter().filter(move |interval| {
            interval.repeated.as_ref().is_some_and(|repeated| {
                let has = |(name, value): &(&str, &str)| {
                    repeated.parameters.get(*name).is_some_and(|v| v == value)
                };
                repeated.script == script && with.iter().all(has)
            })
        })
    }

    /// The interval of that name.
    pub(super) fn named(
        self,
        script: &str,
        with: With<'_>,
        name: &str,
    ) -> Option<&'a IntervalReport> {
        self.intervals(script, with).find(|i| i.name == name)
    }

    /// The figure to quote for the interval of that name, ns.
    pub(super) fn typical(self, script: &str, with: With<'_>, name: &str) -> Option<&'a Estimate> {
        typical(self.named(script, with, name)?)
    }

    /// The figure to quote for a step of a process, ns.
    pub(super) fn step(
        self,
        script: &str,
        with: With<'_>,
        process: &str,
        number: u32,
    ) -> Option<&'a Estimate> {
        let is_it = |i: &&IntervalReport| {
            (i.repeated.as_ref()).is_some_and(|r| r.process == process && r.step == Some(number))
        };
        typical(self.intervals(script, with).find(is_it)?)
    }

    /// A line with these parameters.
    pub(super) fn line(self, script: &str, with: With<'_>) -> Option<&'a LineReport> {
        self.0.lines.iter().find(|line| {
            let has = |(name, value): &(&str, &str)| {
                line.parameters.get(*name).is_some_and(|v| v == value)
            };
            line.script == script && with.iter().all(has)
        })
    }
}

fn typical(interval: &IntervalReport) -> Option<&Estimate> {
    Some(&interval.repeated.as_ref()?.typical)
}

/// Combines several steps of one kind into one figure: their middle, with an interval that contains
/// all of theirs.
pub(super) fn together(all: &[&Estimate]) -> Option<Estimate> {
    let mut values: Vec<f64> = all.iter().map(|e| e.value).collect();
    values.sort_by(f64::total_cmp);
    let n = values.len();
    let upper = *values.get(n / 2)?;
    let value = match n % 2 {
        1 => upper,
        _ => (values[n / 2 - 1] + upper) / 2.0,
    };
    let all_of = |bound: fn(&Interval) -> Option<f64>, of: fn(f64, f64) -> f64| {
        let bounds: Option<Vec<f64>> = all.iter().map(|e| bound(&e.interval)).collect();
        bounds.and_then(|b| b.into_iter().reduce(of))
    };
    let first = (*all.first()?).clone();
    if n == 1 {
        return Some(first);
    }
    Some(Estimate {
        value,
        interval: Interval {
            lo: all_of(|i| i.lo, f64::min),
            hi: all_of(|i| i.hi, f64::max),
        },
        method: format!("the middle of {n} steps, the interval holds that of each"),
        n: all.iter().map(|e| e.n).sum(),
        n_effective: all.iter().map(|e| e.n_effective).sum(),
        ..first
    })
}

/// The sum of successive times. The bounds are also added, which makes the interval wider than
/// necessary.
pub(super) fn sum(all: &[Estimate]) -> Option<Estimate> {
    let total = |of: fn(&Estimate) -> Option<f64>| -> Option<f64> { all.iter().map(of).sum() };
    Some(Estimate {
        value: total(|e| Some(e.value))?,
        interval: Interval {
            lo: total(|e| e.interval.lo),
            hi: total(|e| e.interval.hi),
        },
        method: format!("sum of {} figures and of their bounds", all.len()),
        ..all.first()?.clone()
    })
}

/// A number as an estimate without an interval.
pub(super) fn bare(value: f64, unit: &str, method: &str, n: u64) -> Estimate {
    Estimate {
        value,
        interval: Interval { lo: None, hi: None },
        level: 0.0,
        unit: unit.to_owned(),
        method: method.to_owned(),
        n,
        n_effective: n as f64,
        notes: Vec::new(),
    }
}

/// Describes an item.
pub(super) struct ItemDescription {
    pub(super) id: String,
    pub(super) quantity: String,
    pub(super) unit: &'static str,
    pub(super) published: Option<Published>,
    pub(super) formula: Option<f64>,
    pub(super) note: String,
}

/// Nanoseconds in a unit; 1 for a unit that is no time.
pub(super) fn ns_of(unit: &str) -> f64 {
    match unit {
        "us" => 1e3,
        "ms" => 1e6,
        _ => 1.0,
    }
}

/// The note on a duration that came out below 0 with all of its interval.
const BELOW_0: &str =
    "not measured: less than the null step, which is not known well enough to be taken off";

/// Makes an item from a measurement in ns, converted to the item's unit, with the ratio. What cannot
/// be is no measurement.
pub(super) fn item(
    description: ItemDescription,
    measured_ns: Option<&Estimate>,
    missing: &str,
) -> Item {
    let is_possible = |e: &&Estimate| e.interval.hi.is_none_or(|hi| hi >= 0.0) || e.value >= 0.0;
    let missing = match measured_ns {
        Some(e) if !is_possible(&e) => BELOW_0,
        _ => missing,
    };
    let measured = (measured_ns.filter(is_possible))
        .map(|e| scaled(e.clone(), 1.0 / ns_of(description.unit), description.unit));
    let printed = description.published.map_or("", |p| p.printed);
    let value = description.published.map(|p| p.value);
    let mut notes: Vec<String> = Vec::new();
    if description
        .published
        .is_some_and(|p| p.printed != p.value.to_string())
    {
        notes.push(
            format!("printed: {printed} {}", description.unit)
                .trim_end()
                .to_owned(),
        );
    }
    if !description.note.is_empty() {
        notes.push(description.note);
    }
    if measured.is_none() {
        notes.push(missing.to_owned());
    }
    if quotient(value, measured.as_ref()).is_some_and(|times| times > MOST_TIMES) {
        notes.push(OTHER_WORK.to_owned());
    }
    Item {
        id: description.id,
        quantity: description.quantity,
        unit: description.unit.to_owned(),
        published: value,
        formula: description.formula,
        simulated: None,
        verdict: None,
        ratio: ratio(value, measured.as_ref()),
        measured,
        note: notes.join("; "),
    }
}

/// The note on what is beyond [`MOST_TIMES`].
pub(super) const OTHER_WORK: &str = "over 10 000 times faster: other work than then";

/// A machine of today does no more than this times the work of one of these sources: what seems
/// faster is other work.
const MOST_TIMES: f64 = 1e4;

/// Published over measured: how many times faster it is on this machine; `None` where the measured
/// figure may as well be 0, or is that of other work.
pub(super) fn ratio(published: Option<f64>, measured: Option<&Estimate>) -> Option<f64> {
    quotient(published, measured).filter(|times| *times <= MOST_TIMES)
}

fn quotient(published: Option<f64>, measured: Option<&Estimate>) -> Option<f64> {
    Some(published? / denominator(measured?)?)
}

/// The figure, if it surely is above 0: what may as well be 0 divides nothing.
pub(super) fn denominator(measured: &Estimate) -> Option<f64> {
    let is_above_0 = measured.value > 0.0 && measured.interval.lo.is_none_or(|lo| lo > 0.0);
    is_above_0.then_some(measured.value)
}

/// What was measured of the figure with that id.
pub(super) fn measured<'a>(items: &'a [Item], id: &str) -> Option<&'a Estimate> {
    items.iter().find(|item| item.id == id)?.measured.as_ref()
}

/// The measurement behind an item, if the item has it.
pub(super) fn shown<'a>(item: &Item, measured: Option<&'a Estimate>) -> Option<&'a Estimate> {
    item.measured.as_ref().and(measured)
}

/// A figure for a table, ns.
pub(super) fn cell(estimate: Option<&Estimate>) -> String {
    estimate.map_or_else(|| "–".to_owned(), |e| figure(e).value_and_unit())
}

/// A ratio with two digits.
pub(super) fn times(ratio: Option<f64>) -> String {
    match ratio {
        None => "–".to_owned(),
        Some(r) if r >= 100.0 => {
            let decade = 10_f64.powf(r.log10().floor() - 1.0);
            format!("{:.0}", (r / decade).round() * decade)
        }
        Some(r) if r >= 10.0 => format!("{r:.0}"),
        Some(r) => format!("{r:.1}"),
    }
}

/// The note where nothing was measured.
pub(super) const NOT_PERFORMED: &str = "not measured: this machine cannot do it, see the warnings";

/// Least squares: value at 0, and slope.
pub(super) fn straight_line(points: &[(f64, f64)]) -> (f64, f64) {
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let above: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    let below: f64 = points.iter().map(|p| (p.0 - x).powi(2)).sum();
    let slope = above / below;
    (y - slope * x, slope)
}

#[cfg(test)]
mod tests {
    use undertick_units::Interval;

    use super::{ItemDescription, NOT_PERFORMED, bare, item, published, ratio};

    /// A duration below 0 whose interval reaches above is near the resolution; one whose interval does
    /// not cannot be.
    #[test]
    fn a_duration_below_0_is_no_measurement() {
        let of = |lo, hi| {
            let measured = undertick_units::Estimate {
                interval: Interval::new(lo, hi),
                ..bare(-4.5, "ns", "of the test", 1)
            };
            let description = ItemDescription {
                id: String::new(),
                quantity: String::new(),
                unit: "us",
                published: Some(published(230.0, "230")),
                formula: None,
                note: String::new(),
            };
            item(description, Some(&measured), NOT_PERFORMED)
        };
        assert!(
            of(-5.6, 0.1)
                .measured
                .is_some_and(|e| (e.value + 4.5e-3).abs() < 1e-12)
        );
        let below = of(-5.6, -0.8);
        assert_eq!((below.measured, below.ratio), (None, None));
        assert!(
            below.note.contains("not measured: less than the null step"),
            "{}",
            below.note
        );
    }

    #[test]
    fn what_may_as_well_be_0_is_no_denominator() {
        let measured = |interval| undertick_units::Estimate {
            interval,
            ..bare(2e-3, "us", "of the test", 1)
        };
        let of = |interval| ratio(Some(10.0), Some(&measured(interval)));
        // What is over 10 000 times faster is other work.
        let around = measured(Interval::new(1e-6, 1.0));
        assert_eq!(ratio(Some(20.0), Some(&around)), Some(1e4));
        assert_eq!(ratio(Some(21.0), Some(&around)), None);
        assert_eq!(of(Interval::new(0.0, 1.0)), None);
        assert_eq!(of(Interval::new(-1.0, 1.0)), None);
        assert_eq!(of(Interval::new(1e-6, 1.0)), Some(5e3));
        assert_eq!(of(Interval { lo: None, hi: None }), Some(5e3));
        assert_eq!(ratio(None, Some(&measured(Interval::new(1e-6, 1.0)))), None);
    }
}
