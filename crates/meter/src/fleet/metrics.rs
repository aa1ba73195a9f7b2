//! The metrics of all machines as columns.

use std::collections::HashMap;

use undertick_estimate::fleet::{Column, Figure, Finding, Outliers, Quantity, Wanted, outliers};
use undertick_estimate::{standard_error, standard_error_of_ln};
use undertick_report::fleet::{Distribution, FleetMetric, Reason};
use undertick_report::survey::{Better, Metric, Scale, title};

use super::{FALSE_SHARE, Host};

/// Ratios closer to 1 than this are meaningless.
const RATIO_FLOOR: f64 = 0.01;
/// Machines are called slow or noisy over all metrics only beyond this scatter.
const SLOWNESS_FLOOR: f64 = 0.01;
const NOISE_FLOOR: f64 = 0.1;
/// Bins of a histogram.
const BINS: usize = 24;

/// What to look for in a fleet.
pub(super) const WANTED: Wanted = Wanted {
    false_share: FALSE_SHARE,
    slowness_floor: SLOWNESS_FLOOR,
    noise_floor: Some(NOISE_FLOOR),
};

/// Every metric that any machine has, for all machines.
pub(super) struct Table<'a> {
    columns: Vec<Of1<'a>>,
}

/// One metric of all machines; the first machine that has it describes it.
struct Of1<'a> {
    about: &'a Metric,
    of_host: Vec<Option<&'a Metric>>,
}

impl<'a> Table<'a> {
    pub(super) fn from_hosts(hosts: &'a [Host]) -> Self {
        let mut columns: Vec<Of1<'a>> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for (h, host) in hosts.iter().enumerate() {
            for metric in host.survey.metrics.iter().filter(|m| m.cpu.is_none()) {
                let at = *places.entry(&metric.id).or_insert_with(|| {
                    columns.push(Of1 {
                        about: metric,
                        of_host: vec![None; hosts.len()],
                    });
                    columns.len() - 1
                });
                let about = columns[at].about;
                if about.estimate.unit == metric.estimate.unit && about.scale == metric.scale {
                    columns[at].of_host[h] = Some(metric);
                }
            }
        }
        let groups = undertick_report::survey::GROUPS.map(|(group, _)| group);
        columns.sort_by_key(|c| {
            groups
                .iter()
                .position(|g| *g == c.about.group)
                .unwrap_or(groups.len())
        });
        Self { columns }
    }

    pub(super) fn id(&self, metric: usize) -> &str {
        &self.columns[metric].about.id
    }

    pub(super) fn about(&self, metric: usize) -> &Metric {
        self.columns[metric].about
    }

    pub(super) fn len(&self) -> usize {
        self.columns.len()
    }

    pub(super) fn place(&self, id: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.about.id == id)
    }

    pub(super) fn has(&self, metric: usize, host: usize) -> bool {
        self.columns[metric].of_host[host].is_some()
    }

    pub(super) fn metric(&self, metric: usize, host: usize) -> Option<&'a Metric> {
        self.columns[metric].of_host[host]
    }

    /// Metrics that at least this share of the machines has.
    pub(super) fn usual(&self, share: f64) -> Vec<usize> {
        let is_usual = |metric: &usize| {
            let of = &self.columns[*metric].of_host;
            of.iter().flatten().count() as f64 >= share * of.len() as f64
        };
        (0..self.columns.len()).filter(is_usual).collect()
    }

    /// The outliers among these machines.
    pub(super) fn outliers(&self, members: &[usize]) -> Outliers {
        let columns: Vec<Column> = (self.columns.iter())
            .map(|of| {
                column(
                    of.about,
                    members
                        .iter()
                        .map(|&h| of.of_host[h].and_then(figure))
                        .collect(),
                )
            })
            .collect();
        outliers(&columns, WANTED)
    }

    pub(super) fn distributions(
        &self,
        parts: &[(Vec<usize>, Option<Outliers>)],
        is_out: impl Fn(usize, usize) -> bool,
    ) -> Vec<FleetMetric> {
        (self.columns.iter().enumerate())
            .map(|(index, of)| {
                let by_type = parts
                    .iter()
                    .enumerate()
                    .filter_map(|(t, (members, found))| {
                        let values: Vec<f64> = (members.iter())
                            .filter_map(|&h| Some(of.of_host[h]?.estimate.value))
                            .collect();
                        let mut distribution = distribution(t, values, of.about.scale)?;
                        let peers = found.as_ref().and_then(|found| found.peers[index]);
                        distribution.scatter = peers.map(|p| match of.about.scale {
                            Scale::Ratio => p.scatter.exp_m1(),
                            Scale::Difference => p.scatter,
                        });
                        distribution.degrees = peers.map(|p| p.degrees);
                        distribution.outlying =
                            members.iter().filter(|&&h| is_out(index, h)).count() as u64;
                        Some(distribution)
                    });
                FleetMetric {
                    id: of.about.id.clone(),
                    group: of.about.group.clone(),
                    name: of.about.name.clone(),
                    unit: of.about.estimate.unit.clone(),
                    better: of.about.better,
                    scale: of.about.scale,
                    lacking: of.of_host.iter().filter(|m| m.is_none()).count() as u64,
                    by_type: by_type.collect(),
                }
            })
            .collect()
    }
}

/// A column of figures of this metric.
pub(super) fn column(about: &Metric, figures: Vec<Option<Figure>>) -> Column {
    let is_ratio = about.scale == Scale::Ratio;
    let floor = match is_ratio {
        true => RATIO_FLOOR,
        // The meaning of a difference is unknown; only its uncertainty is known.
        false => middle(figures.iter().flatten().map(|f| f.error).collect()),
    };
    Column {
        figures,
        floor,
        slower: match about.better {
            Better::Lower if is_ratio => 1.0,
            Better::Higher if is_ratio => -1.0,
            _ => 0.0,
        },
        is_noise: is_ratio && about.estimate.level < 1.0,
    }
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// The figure on the scale on which machines are compared; `None` if it cannot be compared.
pub(super) fn figure(metric: &Metric) -> Option<Figure> {
    let estimate = &metric.estimate;
    let figure = match metric.scale {
        Scale::Ratio => Figure {
            value: (estimate.value > 0.0).then(|| estimate.value.ln())?,
            // An interval that contains 0 shows that the figure is known badly, not that it is
            // unknown.
            error: standard_error_of_ln(estimate)
                .or_else(|| Some(standard_error(estimate)? / estimate.value))?,
        },
        Scale::Difference => Figure {
            value: estimate.value,
            error: standard_error(estimate)?,
        },
    };
    (figure.value.is_finite() && figure.error.is_finite()).then_some(figure)
}

/// What a machine is compared with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Against {
    /// The other machines of its type.
    Others,
    /// Itself in the earlier survey, relative to the change of the others since then.
    Before,
}

/// In words: how the machine compares with the others, or with itself before.
pub(super) fn reason(table: &Table, finding: &Finding, host: usize, against: Against) -> Reason {
    let ratio = finding.apart.exp();
    let (metric, words, is_ratio) = match finding.quantity {
        Quantity::Slowness => ("slowness".to_owned(), slow_words(ratio, against), true),
        Quantity::Noise => (
            "noise".to_owned(),
            format!("intervals {ratio:.1} times wider over all metrics"),
            true,
        ),
        Quantity::Column(index) => {
            let about = table.about(index);
            let is_ratio = about.scale == Scale::Ratio;
            let by = match is_ratio {
                true => times(ratio),
                false => format!("{:+.3} {}", finding.apart, unit(about)),
            };
            let value = table.metric(index, host).map_or(String::new(), shown);
            let words = match (against, is_ratio) {
                (Against::Others, true) => format!("{by} the usual: {value}"),
                (Against::Others, false) => format!("{by} against the usual: {value}"),
                (Against::Before, _) => format!("{by} beyond the fleet's change: now {value}"),
            };
            let name = format!("{} ({})", about.name, title(&about.group));
            (about.id.clone(), format!("{name} {words}"), is_ratio)
        }
    };
    Reason {
        metric,
        words,
        ratio: is_ratio.then_some(ratio),
        difference: (!is_ratio).then_some(finding.apart),
        deviations: finding.deviation,
        p: finding.p,
    }
}

fn slow_words(ratio: f64, against: Against) -> String {
    let (how, times) = match ratio {
        r if r >= 1.0 => ("slower", r),
        r => ("faster", 1.0 / r),
    };
    match against {
        Against::Others => format!("{how} in all, {times:.2} times"),
        Against::Before => format!("has become {how} in all, {times:.2} times"),
    }
}

/// A ratio with as many digits as are useful.
fn times(ratio: f64) -> String {
    match ratio {
        r if r >= 10.0 => format!("{r:.1} times"),
        r => format!("{r:.2} times"),
    }
}

fn unit(metric: &Metric) -> &str {
    match metric.estimate.unit.as_str() {
        "1e-6" => "ppm",
        "1" => "",
        other => other,
    }
}

/// A value without its interval.
fn shown(metric: &Metric) -> String {
    match metric.estimate.unit.as_str() {
        "ns" => undertick_document::figures::duration(metric.estimate.value).replace('\u{a0}', " "),
        _ => format!("{:.3} {}", metric.estimate.value, unit(metric))
            .trim()
            .to_owned(),
    }
}

fn distribution(of_type: usize, mut values: Vec<f64>, scale: Scale) -> Option<Distribution> {
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    let at = |p: f64| {
        let place = p * last as f64;
        let (i, share) = (place.floor() as usize, place.fract());
        values[i] + (values[(i + 1).min(last)] - values[i]) * share
    };
    let (edges, counts) = histogram(&values, scale);
    Some(Distribution {
        of_type,
        hosts: values.len() as u64,
        quantiles: [0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0].map(at),
        edges,
        counts,
        scatter: None,
        degrees: None,
        outlying: 0,
    })
}

/// Histogram from the minimum to the maximum of the sorted values; logarithmic where all are above
/// 0 and ratios are compared.
fn histogram(sorted: &[f64], scale: Scale) -> (Vec<f64>, Vec<u64>) {
    let (least, most) = (sorted[0], sorted[sorted.len() - 1]);
    let is_log = scale == Scale::Ratio && least > 0.0;
    let onto = |x: f64| if is_log { x.ln() } else { x };
    let back = |x: f64| if is_log { x.exp() } else { x };
    let (lo, hi) = (onto(least), onto(most));
    let width = (hi - lo) / BINS as f64;
    if !(width > 0.0 && width.is_finite()) {
        return (vec![least, most], vec![sorted.len() as u64]);
    }
    let mut counts = vec![0_u64; BINS];
    for value in sorted {
        let bin = ((onto(*value) - lo) / width) as usize;
        counts[bin.min(BINS - 1)] += 1;
    }
    let edges = (0..=BINS).map(|i| back(lo + width * i as f64)).collect();
    (edges, counts)
}

#[cfg(test)]
mod tests;
