//! Results of formulas alone: table 15 and the figures of the text.

use undertick_estimate::normal_quantile;
use undertick_estimate::slow::{spread_of_repetitions, two_ends};
use undertick_report::reproduce::{Item, Reproduction, Table, Verdict};
use undertick_units::{Estimate, Interval};

use super::simulated;
use super::verdict::{agrees, by_formula, verdict};
use undertick_meter::slow::published::{RATIOS, Required, TABLE_15};

/// The width for which all of table 15 was computed, regardless of its rows.
const PRINTED_PRECISION: f64 = 0.1;
/// Draws for the two uniform errors at the ends of a run.
const DRAWS: usize = 20_000;
/// The normal quantile that the source uses for 99 %.
const Z_99: f64 = 2.58;

/// Table 15.
pub(super) fn required_cycles(found: &mut Reproduction) {
    let mut rows = Vec::new();
    for required in TABLE_15 {
        let (own, printed) = (
            required.by_formula(required.precision),
            required.by_formula(PRINTED_PRECISION),
        );
        for (index, ratio) in RATIOS.into_iter().enumerate() {
            let (verdict, note) = printed_cycles(
                required.cycles[index],
                required.precision,
                [own, printed].map(|of| of[index]),
            );
            rows.push(vec![
                format!("{} %, {}", required.level_percent, required.precision),
                format!("{ratio:.0}"),
                required.cycles[index].to_string(),
                format!("{:.0}", own[index].ceil()),
                format!("{:.0}", printed[index].ceil()),
                note.clone(),
            ]);
            found.items.push(Item {
                id: format!(
                    "table-15/({},{})/{ratio:.0}",
                    required.level_percent, required.precision
                ),
                quantity: format!(
                    "cycles for a {} % interval of width {} of the mean, d/ET = {ratio:.0}",
                    required.level_percent, required.precision
                ),
                unit: "1".to_owned(),
                published: Some(f64::from(required.cycles[index])),
                formula: Some(own[index].ceil()),
                verdict: Some(verdict),
                note,
                ..Item::default()
            });
        }
    }
    found.tables.push(Table {
        title: "Table 15: cycles needed".to_owned(),
        text: vec![
            format!(
                "n >= (w/p)^2 (d/ET - 1), eq. 14b: w the width in standard deviations, p the width wanted as \
                 a share of the mean. {}",
                all_with_printed_precision()
            ),
        ],
        columns: words(&[
            "level, p",
            "d/ET",
            "printed",
            "by (14b)",
            "(14b), p = 0.1",
            "remark",
        ]),
        rows,
    });
}

/// Cycles are printed in hundreds.
const HALF_OF_HUNDRED: f64 = 50.0;

/// What is printed against eq. 14b with the row's own precision, and with that of the first row.
fn printed_cycles(cycles: u32, precision: f64, [own, with_printed]: [f64; 2]) -> (Verdict, String) {
    let cycles = f64::from(cycles);
    if agrees(cycles, own, HALF_OF_HUNDRED) {
        return (Verdict::Agrees, "agrees, rounded to hundreds".to_owned());
    }
    if agrees(cycles, with_printed, HALF_OF_HUNDRED) {
        let note = format!(
            "erratum: printed with p = {PRINTED_PRECISION} ({:.0}), not with p = {precision}",
            with_printed.ceil(),
        );
        return (Verdict::Erratum, note);
    }
    (
        Verdict::Differs,
        format!("does not agree with p = {precision}, nor with p = {PRINTED_PRECISION}"),
    )
}

/// Whether all rows come out with the precision of the first one, and by how much others are too
/// small.
fn all_with_printed_precision() -> String {
    let follows = |required: &&Required| {
        let computed = required.by_formula(PRINTED_PRECISION);
        let mut each = required.cycles.iter().zip(computed);
        each.all(|(cycles, computed)| agrees(f64::from(*cycles), computed, HALF_OF_HUNDRED))
    };
    let following: Vec<&Required> = TABLE_15.iter().filter(follows).collect();
    let too_small: Vec<String> = (following.iter())
        .filter(|required| required.precision != PRINTED_PRECISION)
        .map(|required| {
            let times = (PRINTED_PRECISION / required.precision).powi(2);
            format!(
                "that of p = {} is {times:.0} times too small",
                required.precision
            )
        })
        .collect();
    format!(
        "{} of {} printed rows come out with p = {PRINTED_PRECISION}; {}. Plan with the formula (undertick \
         slow plan).",
        following.len(),
        TABLE_15.len(),
        too_small.join(", ")
    )
}

/// The figures of the text, and the load caused by the clock.
pub(super) fn bounds(found: &mut Reproduction, clock_share: f64) {
    let mut items = widths();
    items.extend(ends());
    items.push(longest_activity());
    items.extend(durations());
    items.push(overhead(clock_share));
    let rows = (items.iter())
        .map(|item| {
            let shown = |x: Option<f64>| x.map_or("–".to_owned(), short);
            let figure = |e: &Option<Estimate>| shown(e.as_ref().map(|e| e.value));
            vec![
                item.quantity.clone(),
                shown(item.published),
                shown(item.formula),
                figure(&item.simulated),
                figure(&item.measured),
                match item.unit.as_str() {
                    "1" => String::new(),
                    unit => unit.to_owned(),
                },
                item.note.clone(),
            ]
        })
        .collect();
    found.tables.push(Table {
        title: "Widths, bounds and durations in the text".to_owned(),
        text: Vec::new(),
        columns: words(&[
            "quantity",
            "printed",
            "formula",
            "simulated",
            "here",
            "unit",
            "remark",
        ]),
        rows,
    });
    found.items.append(&mut items);
}

fn item(id: &str, quantity: &str, unit: &str, figures: (f64, f64), note: &str) -> Item {
    Item {
        id: id.to_owned(),
        quantity: quantity.to_owned(),
        unit: unit.to_owned(),
        published: Some(figures.0),
        formula: Some(figures.1),
        note: note.to_owned(),
        ..Item::default()
    }
}

/// Twice a quantile of two digits, which may be rounded from three: 1.6449, 1.645, 1.65.
const WIDTH_DIGIT: f64 = 2.0 * 0.0055;

/// Widths of intervals in standard deviations.
fn widths() -> Vec<Item> {
    (TABLE_15.iter())
        .map(|required| {
            let level = f64::from(required.level_percent) / 100.0;
            let figures = (required.width_sds, 2.0 * normal_quantile(level));
            let note = verdict(figures, WIDTH_DIGIT, |sds| format!("{sds:.3}"));
            let item = item(
                &format!("w/{}", required.level_percent),
                &format!("width of a {} % interval", required.level_percent),
                "sd",
                figures,
                &note,
            );
            by_formula(item, WIDTH_DIGIT, Verdict::Differs)
        })
        .collect()
}

/// Gives a figure that may be printed wrong its verdict, and if it is, the reason.
fn misprinted(item: Item, half_digit: f64, why: &str) -> Item {
    let item = by_formula(item, half_digit, Verdict::Erratum);
    Item {
        note: match item.verdict {
            Some(Verdict::Erratum) => format!("erratum: {why}"),
            _ => item.note,
        },
        ..item
    }
}

/// The ends of a contiguous run: eq. 10d, and the condition for "+-d/n".
fn ends() -> Vec<Item> {
    let mut last_term = item(
        "10d/last-term",
        "last term of the bound in (10d)",
        "d/n",
        (1.0 / 6.0, 1.0 / 6.0_f64.sqrt()),
        "",
    );
    last_term.simulated = spread_of_repetitions(&simulated::two_ends(DRAWS), 0.95, "d/n");
    let exact = largest_scatter(0.99).powi(2);
    let by_its_formula = 1.0 / (Z_99 * Z_99) - 1.0 / 6.0;
    let variance = item(
        "+-d/n/variance",
        "variance of T up to which +-d/n holds at 99 %",
        "d^2/n",
        (0.022_09, exact),
        "",
    );
    let why_variance = format!(
        "the printed derivation, 1/2.58^2 - 1/6, gives {by_its_formula:.4}, and a variance is never below 0. The two end \
         errors are not normal, their sum is triangular: the exact convolution gives {exact:.4}"
    );
    let figures = (0.0479, (0.022_09_f64 * 100.0 / 1000.0).sqrt());
    let sd = item(
        "+-d/n/standard-deviation",
        "the same as a standard deviation, d = 10 ms, n = 1000: the root of the printed 0.02209 d^2/n",
        "ms",
        figures,
        &verdict(figures, 0.000_05, |ms| format!("{ms:.4}")),
    );
    vec![
        misprinted(
            last_term,
            0.0005,
            "the square root of (d/n)^2/6 is d/(sqrt(6) n)",
        ),
        misprinted(variance, 0.000_005, &why_variance),
        by_formula(sd, 0.000_05, Verdict::Differs),
    ]
}

/// Maximum scatter, in units of d/n, with which the error of a contiguous run stays within one d/n
/// with that probability.
fn largest_scatter(level: f64) -> f64 {
    let (mut lo, mut hi) = (0.0, 1.0);
    for _ in 0..50 {
        let middle = 0.5 * (lo + hi);
        if two_ends(middle, f64::INFINITY, level) <= 1.0 {
            lo = middle;
        } else {
            hi = middle;
        }
    }
    lo
}

/// w/p for the longest activity: 29 500 cycles of 2.5 ms, d = 1 ms, by (14a).
fn longest_activity() -> Item {
    let ratio = 1.0 / 2.5;
    let formula = (29_500.0_f64 / ((1.0 - 2.0 * ratio) * (3.0 * ratio - 1.0))).sqrt();
    let longest = item(
        "14a/longest",
        "w/p of the longest activity (29 500 cycles of 2.5 ms, d = 1 ms)",
        "sd",
        (430.0, formula),
        "",
    );
    let why = format!(
        "its square, {:.0}, is that of (14a) at ET = 2.5 d over {:.1}; p = 0.01 is reached at w = {:.1} standard \
         deviations, and 99 % need {:.2}",
        430.0_f64.powi(2),
        (formula / 430.0).powi(2),
        0.01 * formula,
        2.0 * Z_99
    );
    misprinted(longest, 5.0, &why)
}

fn durations() -> Vec<Item> {
    // Row and column of table 15, duration of a cycle, printed, and half of the last digit of that.
    let of = |(row, column): (usize, usize), cycle_ms: f64, printed: f64, half_digit: f64| {
        let required = &TABLE_15[row];
        let cycles = f64::from(required.cycles[column]);
        let figures = (printed, cycles * cycle_ms / 1e3);
        let needed = required.by_formula(required.precision)[column] / cycles;
        let too_few = match needed < 1.5 {
            true => String::new(),
            false => format!("; the cycles printed are {needed:.0} times too few"),
        };
        let said = verdict(figures, half_digit, |s| format!("{s} s"));
        let item = item(
            &format!(
                "duration/({},{})/{cycle_ms}ms",
                required.level_percent, required.precision
            ),
            &format!("{cycles:.0} cycles of {cycle_ms} ms"),
            "s",
            figures,
            &format!("{said}{too_few}"),
        );
        by_formula(item, half_digit, Verdict::Differs)
    };
    vec![
        of((0, 0), 2.5, 52.0, 0.5),
        of((1, 0), 2.5, 74.0, 0.5),
        of((1, 0), 5.0, 145.0, 0.5),
        of((2, 2), 5.0, 2650.0, 5.0),
    ]
}

fn overhead(clock_share: f64) -> Item {
    let mut item = item(
        "clock/overhead",
        "share of a CPU that an adjustable clock of 1 ms takes",
        "%",
        (10.0, 100e-6 * 1000.0 * 100.0),
        "100 us an interrupt there; here the CPU time of a thread that wakes every tick, on a CPU \
         of its own if there is one",
    );
    item.measured = Some(Estimate {
        value: 100.0 * clock_share,
        interval: Interval { lo: None, hi: None },
        level: 0.95,
        unit: "%".to_owned(),
        method: "CPU time of the clock's thread over the experiment".to_owned(),
        n: 1,
        n_effective: 1.0,
        notes: Vec::new(),
    });
    by_formula(item, 0.5, Verdict::Differs)
}

pub(super) fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&w| w.to_owned()).collect()
}

/// Four significant digits; whole numbers without a fraction.
fn short(value: f64) -> String {
    if value == value.round() {
        return format!("{value:.0}");
    }
    let digits = (3 - value.abs().log10().floor() as i32).clamp(0, 6);
    format!("{value:.*}", digits as usize)
}

#[cfg(test)]
mod tests;
