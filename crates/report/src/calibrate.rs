//! The document of `undertick calibrate` and its rendering for a terminal.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use undertick_document::figures::{self, figure};
use undertick_document::{Histogram, Must, is_open};
use undertick_units::{Estimate, Interval};

use crate::table::terminal::draw;
use crate::table::{Cell, Columns};
use crate::text::wrap;

/// The zero-elapsed-time test of every compensation method. The field names are
/// the JSON shape that other programs read; extend, never rename.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibrate {
    /// Version of the document's format: 1.
    pub schema_version: u32,
    /// The clock under test.
    pub clock: String,
    /// What ran beside the test: `none`, `self:N` or a file.
    pub load: String,
    /// Results by method.
    pub methods: Vec<Method>,
    /// Name of the method to use.
    pub chosen: String,
    /// Why it was chosen, in plain words.
    pub why: String,
    /// The clock's step, ns.
    pub granularity_ns: f64,
    /// Number of intervals around nothing behind the figures.
    pub n: u64,
    /// Intervals that were dropped, by cause.
    pub culled: Culled,
    /// Mean of an interval around nothing, uncorrected, ns.
    pub cost_empty: Estimate,
    /// Duration of intervals around known doses in excess of the dose, ns.
    pub cost_dosed: Estimate,
    /// What the sampler of Method II adds to an interval, ns.
    pub sampler_perturbation: Option<Estimate>,
    /// Time of an iteration of the loop with the sampler over that without.
    pub sampler_slowdown: Option<Estimate>,
    /// Median distance from an interval to the sampler's nearest pair, ns.
    pub sampler_distance_ns: Option<f64>,
    /// Distribution of the intervals around nothing before any correction.
    pub uncorrected: Histogram,
    /// What the reader must know.
    pub notes: Vec<String>,
}

/// Number of dropped intervals by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Culled {
    /// The kernel had taken the thread off its CPU.
    pub descheduled: u64,
    /// The interval was more than four times the usual, with no evidence of a cause.
    pub ratio: u64,
}

/// One method of compensation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Method {
    /// `long-term`, `pairs`, `sampler`, `control-variate`, `known-dose`.
    pub method: String,
    /// Corrected mean of intervals around nothing, ns: the truth is 0.
    pub bias: Estimate,
    /// Improvement factor: variance before correction over variance after.
    pub k: Option<Estimate>,
    /// The improvement factor without the ratio rule.
    pub k_uncut: Option<Estimate>,
    /// Standard deviations and correlations of T1, T3 and T4.
    pub correlations: Correlations,
    /// Bias around known doses of work.
    pub doses: Vec<Dose>,
    /// Distribution of the corrected intervals around nothing, in the bins of `uncorrected` moved
    /// to 0.
    pub corrected: Histogram,
}

/// Bias of a method around a known dose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Dose {
    /// The work, ns.
    pub dose_ns: f64,
    /// Corrected mean less the work, ns.
    pub bias: Estimate,
}

/// Standard deviations and correlations of the pair before (1), the interval (3) and the pair after
/// (4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct Correlations {
    /// Standard deviation of the pair before, ns.
    pub s1_ns: f64,
    /// Standard deviation of the interval, ns.
    pub s3_ns: f64,
    /// Standard deviation of the pair after, ns.
    pub s4_ns: f64,
    /// Correlation of the pair before and the interval.
    pub r13: f64,
    /// Correlation of the interval and the pair after.
    pub r34: f64,
    /// Correlation of both pairs.
    pub r14: f64,
    /// The part of r13 that comes from sharing a reading of a clock with steps.
    pub r13_by_step: f64,
    /// The same part of r34.
    pub r34_by_step: f64,
    /// Improvement factor k of pairs by eq. 5 from these figures.
    pub k_by_equation_5: Option<f64>,
}

impl Calibrate {
    /// Returns the document without impossible figures; the notes give the reasons.
    #[must_use]
    pub fn without_impossible(mut self) -> Self {
        let notes = &mut self.notes;
        let mut look = |name: String, figure: &mut Option<Estimate>, is_ratio: bool| {
            let Some(estimate) = figure else { return };
            let must = if is_ratio {
                Must::NotNegative
            } else {
                Must::Any
            };
            let why = match must.judge(estimate) {
                None if is_ratio && is_open(estimate) => Some("a ratio to what may be 0"),
                why => why,
            };
            if let Some(why) = why {
                *figure = None;
                notes.push(format!("impossible, so not given: {name} ({why})"));
            }
        };
        for method in &mut self.methods {
            let name = &method.method;
            look(format!("k of {name}"), &mut method.k, true);
            look(
                format!("k of {name} without the ratio rule"),
                &mut method.k_uncut,
                true,
            );
        }
        look(
            "slow-down by the sampler".to_owned(),
            &mut self.sampler_slowdown,
            true,
        );
        look(
            "what the sampler adds".to_owned(),
            &mut self.sampler_perturbation,
            false,
        );
        self
    }
}

/// Rows of the density plot.
const ROWS: usize = 24;

/// The whole document as text. Ends with a line break.
#[must_use]
pub fn render(found: &Calibrate, columns: usize) -> String {
    let columns = columns.max(60);
    let chosen = found.methods.iter().find(|m| m.method == found.chosen);
    let mut parts = vec![
        head(found, columns),
        table(found, columns),
        correlations(found, columns),
        wrap(
            &format!("Chosen: {}. {}.", found.chosen, capital(&found.why)),
            columns,
            2,
        ),
    ];
    if let Some(chosen) = chosen {
        parts.push(density(&found.uncorrected, chosen, columns));
    }
    for note in &found.notes {
        parts.push(wrap(&format!("! {note}"), columns, 2));
    }
    let mut page = parts.join("\n\n").replace('\u{a0}', " ");
    page.push('\n');
    page
}

fn head(found: &Calibrate, columns: usize) -> String {
    let mut lines = vec![
        format!(
            "Zero-elapsed-time test: clock {}, load {}, {} intervals around nothing; left out {} \
             descheduled, {} four times the usual without evidence",
            found.clock,
            found.load,
            figures::count(found.n),
            figures::count(found.culled.descheduled),
            figures::count(found.culled.ratio),
        ),
        format!(
            "The clock moves {} at a time; an interval around nothing takes {}, one around work {} \
             beyond the work",
            figures::duration(found.granularity_ns),
            with_interval(&found.cost_empty),
            with_interval(&found.cost_dosed),
        ),
    ];
    if let (Some(adds), Some(slows), Some(distance)) = (
        &found.sampler_perturbation,
        &found.sampler_slowdown,
        found.sampler_distance_ns,
    ) {
        lines.push(format!(
            "The sampler adds {} to an interval and multiplies the time of a turn by {}; its \
             nearest pair is {} away (median)",
            with_interval(adds),
            factor(slows).join(" "),
            figures::duration(distance),
        ));
    }
    let wrapped: Vec<String> = lines.iter().map(|line| wrap(line, columns, 2)).collect();
    wrapped.join("\n")
}

fn with_interval(estimate: &Estimate) -> String {
    let shown = figure(estimate);
    format!("{} {}", shown.value_and_unit(), shown.interval())
}

fn table(found: &Calibrate, columns: usize) -> String {
    let mut table = Columns::<&Method>::new()
        .column("method", |m| {
            let mark = if m.method == found.chosen { "*" } else { " " };
            Cell::text(format!("{mark} {}", m.method))
        })
        .column("k", |m| match &m.k {
            None => Cell::text("no spread"),
            Some(k) => Cell::Lines(factor(k).into()),
        })
        .column("bias around nothing", |m| Cell::Estimate(&m.bias));
    let doses = found.methods.first().map_or(&[][..], |m| &m.doses);
    for (index, dose) in doses.iter().enumerate().skip(1) {
        table = table.column(
            format!("around {}", figures::duration(dose.dose_ns)),
            move |m| {
                m.doses
                    .get(index)
                    .map_or(Cell::Absent, |dose| Cell::Estimate(&dose.bias))
            },
        );
    }
    format!(
        "{}\n  *: chosen. [lo, hi]: {} interval of the figure above it. k: variance before \
         over after.",
        draw(&table, &found.methods, columns),
        figures::per_cent(found.cost_empty.level)
    )
}

/// A factor as a number, not as a share of 1, to two digits after the point: the third makes no
/// difference to the reader.
fn factor(estimate: &Estimate) -> [String; 2] {
    let bound = |b: Option<f64>| b.map_or(figures::UNKNOWN.to_owned(), |b| format!("{b:.2}"));
    let Interval { lo, hi } = estimate.interval;
    [
        format!("{:.2}", estimate.value),
        format!("[{}, {}]", bound(lo), bound(hi)),
    ]
}

fn correlations(found: &Calibrate, columns: usize) -> String {
    type Row<'a> = (&'a str, &'a Correlations);
    let figure =
        |of: fn(&Correlations) -> f64| move |(_, c): Row<'_>| Cell::text(format!("{:.2}", of(c)));
    let table = Columns::<Row<'_>>::new()
        .column("pairs of", |(shown, _)| Cell::text(shown))
        .column("s1", |(_, c)| Cell::Duration(c.s1_ns))
        .column("s3", |(_, c)| Cell::Duration(c.s3_ns))
        .column("s4", |(_, c)| Cell::Duration(c.s4_ns))
        .column("r13", figure(|c| c.r13))
        .column("r34", figure(|c| c.r34))
        .column("r14", figure(|c| c.r14))
        .column("by the step", figure(|c| c.r13_by_step))
        .column("k by eq. 5", |(_, c)| {
            let k = c.k_by_equation_5;
            k.map_or(Cell::Nothing, |k| Cell::text(format!("{k:.2}")))
        });
    let pairs = [("pairs", "the process"), ("sampler", "the sampler")];
    let rows = pairs.iter().filter_map(|&(name, shown)| {
        let method = found.methods.iter().find(|m| m.method == name)?;
        Some((shown, &method.correlations))
    });
    format!(
        "{}\n  s: standard deviation of the pair before (1), of the interval (3), of the pair after\n  \
         (4); r: correlation.",
        draw(&table, rows, columns)
    )
}

/// Both densities side by side, with a row for each range of values.
fn density(uncorrected: &Histogram, chosen: &Method, columns: usize) -> String {
    let room = columns.saturating_sub(26) / 2;
    let after = &chosen.corrected;
    let total = |h: &Histogram| h.counts.iter().sum::<u64>().max(1) as f64;
    let most = |h: &Histogram| h.counts.iter().max().copied().unwrap_or(0) as f64 / total(h);
    let top = most(uncorrected).max(most(after)).max(f64::MIN_POSITIVE);
    let side = |h: &Histogram, i: usize| {
        let share = h.counts.get(i).copied().unwrap_or(0) as f64 / total(h);
        let bar = "#".repeat((share / top * (room - 8) as f64).round() as usize);
        let shown = if share > 0.0 {
            figures::per_cent(share)
        } else {
            String::new()
        };
        format!("{shown:>7} {bar:<width$}", width = room - 8)
    };
    let lead = |h: &Histogram, i: usize| {
        h.edges
            .get(i)
            .map_or(String::new(), |e| figures::duration(*e))
    };
    let rows = uncorrected.counts.len().max(after.counts.len()).min(ROWS);
    let mut lines = vec![format!(
        "{:>11} {:<room$} {:>11} {}",
        "from",
        "uncorrected",
        "from",
        format_args!("corrected ({})", chosen.method)
    )];
    for i in 0..rows {
        lines.push(
            format!(
                "{:>11} {} {:>11} {}",
                lead(uncorrected, i),
                side(uncorrected, i),
                lead(after, i),
                side(after, i)
            )
            .trim_end()
            .to_owned(),
        );
    }
    lines.join("\n")
}

/// Histogram of values that lie mostly between `lo` and `hi`; the first and the last bin hold what
/// lies outside. Bins are as wide as the clock's step, or a 24th of the range where that is wider.
#[must_use]
pub fn density_of(values_ns: &[f64], granularity_ns: f64) -> Histogram {
    let mut sorted = values_ns.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| {
        let i = (sorted.len().saturating_sub(1) as f64 * share) as usize;
        sorted.get(i).copied().unwrap_or(0.0)
    };
    let (lo, hi) = (at(0.005), at(0.995));
    let least = if granularity_ns > 0.0 {
        granularity_ns
    } else {
        1.0
    };
    let steps = ((hi - lo) / least / (ROWS - 2) as f64).ceil().max(1.0);
    let width = steps * least;
    // Half a step below, so that values on a grid lie inside their bins.
    let first = lo - least / 2.0;
    let bins = (((hi - first) / width).floor() as usize + 1).clamp(1, ROWS);
    let mut counts = vec![0; bins];
    for value in values_ns {
        let bin = ((value - first) / width).floor();
        counts[bin.clamp(0.0, (bins - 1) as f64) as usize] += 1;
    }
    Histogram {
        unit: "ns".into(),
        edges: (0..=bins).map(|i| first + width * i as f64).collect(),
        counts,
    }
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or(String::new(), |first| {
        first.to_uppercase().collect::<String>() + characters.as_str()
    })
}

#[cfg(test)]
mod tests;
