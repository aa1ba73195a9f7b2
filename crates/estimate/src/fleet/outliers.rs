//! Machines out of the ordinary.

use super::discoveries::{adjusted, simes};
use super::peers::{Figure, Peers, peers, quantile};

/// A quantity over all machines.
#[derive(Clone, Debug)]
pub struct Column {
    /// One figure per machine; `None` where a machine has none.
    pub figures: Vec<Option<Figure>>,
    /// Differences below this are insignificant.
    pub floor: f64,
    /// 1 if a larger figure is slower, -1 if it is faster, 0 if it says nothing about speed.
    pub slower: f64,
    /// Whether the errors of its figures are part of a machine's noise.
    pub is_noise: bool,
}

/// Thresholds of the search.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Maximum share of false discoveries among the machines found, on average.
    pub false_share: f64,
    /// Differences in slowness (logarithms) below this are insignificant.
    pub slowness_floor: f64,
    /// Differences in noise below this are insignificant; `None`: noise is not examined.
    pub noise_floor: Option<f64>,
}

/// The quantity in which a machine is out of the ordinary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// A quantity, by its index.
    Column(usize),
    /// Slow in all quantities, or fast.
    Slowness,
    /// Wide intervals in all quantities.
    Noise,
}

/// One reason why a machine is out of the ordinary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finding {
    /// The quantity.
    pub quantity: Quantity,
    /// Distance from the fleet's median, on the scale of the figures.
    pub apart: f64,
    /// The distance in standard deviations of machine and fleet.
    pub deviation: f64,
    /// Probability that a machine of this fleet lies there.
    pub p: f64,
}

/// A machine out of the ordinary.
#[derive(Clone, Debug, PartialEq)]
pub struct Outlier {
    /// Index of the machine.
    pub machine: usize,
    /// Its p-value over all quantities.
    pub p: f64,
    /// The p-value adjusted for all machines.
    pub adjusted: f64,
    /// The reasons, the surest first.
    pub findings: Vec<Finding>,
}

/// Result of the search.
#[derive(Clone, Debug, PartialEq)]
pub struct Outliers {
    /// Machines out of the ordinary, the surest first.
    pub machines: Vec<Outlier>,
    /// What is usual, for each quantity.
    pub peers: Vec<Option<Peers>>,
    /// Slowness of each machine: the logarithm of how much slower than the median one it is.
    pub slowness: Vec<Option<f64>>,
    /// Noise of each machine: the logarithm of how much wider its intervals are.
    pub noise: Vec<Option<f64>>,
}

/// Divisor of the false discovery rate that the caller asks for. p-values far out rely on tails of
/// which a fleet shows only the beginning. Without this margin, simulated fleets of a thousand
/// machines with t tails of 5 degrees had 7 % of false discoveries where 5 % were asked for, and
/// two false alarms at once in one of twenty.
const MARGIN: f64 = 5.0;

/// Minimum number of quantities for a score.
const FEWEST_FOR_A_SCORE: usize = 5;

/// Finds machines that are not like the others; every column has the same number of machines.
#[must_use]
pub fn outliers(columns: &[Column], wanted: Wanted) -> Outliers {
    let machines = columns.iter().map(|c| c.figures.len()).max().unwrap_or(0);
    let plain: Vec<_> = (columns.iter())
        .map(|c| (c.figures.clone(), c.floor))
        .collect();
    let own = peers(&plain);
    let slowness = scores(machines, &slowness_parts(columns, &own));
    let noise = match wanted.noise_floor {
        Some(_) => scores(machines, &noise_parts(columns)),
        None => vec![None; machines],
    };
    let whole = |scores: &[Option<f64>], floor| {
        let figures = scores.iter().map(|s| s.map(exactly)).collect();
        peers(&[(figures, floor)])[0]
    };
    let slow = whole(&slowness, wanted.slowness_floor);
    let noisy = whole(&noise, wanted.noise_floor.unwrap_or(0.0));
    let findings: Vec<Vec<Finding>> = (0..machines)
        .map(|m| {
            let own = (own.iter().zip(columns).enumerate()).filter_map(|(i, (peers, column))| {
                let figure = (*column.figures.get(m)?)?;
                Some(finding(Quantity::Column(i), (*peers)?, figure))
            });
            let slow = slow
                .zip(slowness[m])
                .map(|(peers, s)| finding(Quantity::Slowness, peers, exactly(s)));
            // A machine that is quieter than others is not a finding.
            let noisy = noisy.zip(noise[m]).map(|(peers, s)| {
                let found = finding(Quantity::Noise, peers, exactly(s));
                match found.deviation > 0.0 {
                    true => found,
                    false => Finding { p: 1.0, ..found },
                }
            });
            own.chain(slow).chain(noisy).collect()
        })
        .collect();
    Outliers {
        machines: discovered(&findings, wanted.false_share),
        peers: own,
        slowness,
        noise,
    }
}

fn exactly(value: f64) -> Figure {
    Figure { value, error: 0.0 }
}

fn finding(quantity: Quantity, peers: Peers, figure: Figure) -> Finding {
    Finding {
        quantity,
        apart: figure.value - peers.centre,
        deviation: peers.deviation(figure),
        p: peers.p(figure),
    }
}

/// Selects first the machines, then the findings within each of these.
fn discovered(findings: &[Vec<Finding>], false_share: f64) -> Vec<Outlier> {
    let p = |of: &[Finding]| of.iter().map(|f| f.p).collect::<Vec<f64>>();
    let tested: Vec<(usize, f64)> = (findings.iter().enumerate())
        .filter_map(|(machine, of)| Some((machine, of_machine(of)?)))
        .collect();
    let with_margin: Vec<f64> = tested.iter().map(|(_, p)| MARGIN * p).collect();
    let all: Vec<f64> = adjusted(&with_margin)
        .into_iter()
        .map(|p| p.min(1.0))
        .collect();
    let found = || (tested.iter().zip(&all)).filter(|(_, adjusted)| **adjusted <= false_share);
    let within = false_share / MARGIN * found().count() as f64 / tested.len().max(1) as f64;
    let mut machines: Vec<Outlier> = found()
        .map(|((machine, whole), adjusted_p)| {
            let of = &findings[*machine];
            let mut findings: Vec<Finding> = families(of)
                .into_iter()
                .flat_map(|family| {
                    let families = families(of).iter().filter(|f| !f.is_empty()).count() as f64;
                    let each = adjusted(&p(&family));
                    let found = (family.into_iter().zip(each))
                        .filter(|(_, adjusted)| *adjusted * families <= within)
                        .map(|(finding, _)| finding);
                    found.collect::<Vec<_>>()
                })
                .collect();
            findings.sort_by(|a, b| {
                (a.p.total_cmp(&b.p)).then(b.deviation.abs().total_cmp(&a.deviation.abs()))
            });
            Outlier {
                machine: *machine,
                p: *whole,
                adjusted: *adjusted_p,
                findings,
            }
        })
        .collect();
    machines.sort_by(|a, b| a.p.total_cmp(&b.p).then(a.machine.cmp(&b.machine)));
    machines
}

/// Groups findings into quantities, slowness and noise: a machine that is slow or noisy in all must
/// not be outweighed by the number of quantities.
fn families(findings: &[Finding]) -> [Vec<Finding>; 3] {
    let of = |is: fn(Quantity) -> bool| {
        findings
            .iter()
            .copied()
            .filter(|f| is(f.quantity))
            .collect()
    };
    [
        of(|quantity| matches!(quantity, Quantity::Column(_))),
        of(|quantity| quantity == Quantity::Slowness),
        of(|quantity| quantity == Quantity::Noise),
    ]
}

/// Returns the one p-value of a machine.
fn of_machine(findings: &[Finding]) -> Option<f64> {
    let of = |family: &Vec<Finding>| simes(&family.iter().map(|f| f.p).collect::<Vec<_>>());
    let each: Vec<f64> = families(findings).iter().filter_map(of).collect();
    Some((each.iter().copied().reduce(f64::min)? * each.len() as f64).min(1.0))
}

/// The contribution of one quantity to a score: a value per machine, and its weight.
struct Part {
    values: Vec<Option<f64>>,
    weight: f64,
}

/// Deviations towards the slow side; those of a quantity that scatters less weigh more.
fn slowness_parts(columns: &[Column], own: &[Option<Peers>]) -> Vec<Part> {
    (columns.iter().zip(own))
        .filter(|(column, _)| column.slower != 0.0)
        .filter_map(|(column, peers)| {
            let peers = (*peers)?;
            let of = |f: &Option<Figure>| f.map(|f| column.slower * (f.value - peers.centre));
            Some(Part {
                values: column.figures.iter().map(of).collect(),
                weight: 1.0 / peers.scatter.max(column.floor).max(f64::MIN_POSITIVE),
            })
        })
        .collect()
}

/// Returns by how much a machine's errors are above the usual ones.
fn noise_parts(columns: &[Column]) -> Vec<Part> {
    (columns.iter())
        .filter(|column| column.is_noise)
        .filter_map(|column| {
            let of = |f: &Option<Figure>| f.filter(|f| f.error > 0.0).map(|f| f.error.ln());
            let values: Vec<Option<f64>> = column.figures.iter().map(of).collect();
            let usual = quantile(values.iter().copied().flatten(), 0.5);
            let less = |v: Option<f64>| v.map(|v| v - usual);
            (usual.is_finite()).then(|| Part {
                values: values.into_iter().map(less).collect(),
                weight: 1.0,
            })
        })
        .collect()
}

/// For each machine the weighted median of its parts, less that of the middle machine.
fn scores(machines: usize, parts: &[Part]) -> Vec<Option<f64>> {
    let raw: Vec<Option<f64>> = (0..machines)
        .map(|m| {
            let of = |part: &Part| Some(((*part.values.get(m)?)?, part.weight));
            weighted_median(parts.iter().filter_map(of).collect())
        })
        .collect();
    let middle = quantile(raw.iter().copied().flatten(), 0.5);
    raw.into_iter().map(|s| Some(s? - middle)).collect()
}

/// Returns the weighted median; `None` for too few values.
fn weighted_median(mut values: Vec<(f64, f64)>) -> Option<f64> {
    if values.len() < FEWEST_FOR_A_SCORE {
        return None;
    }
    values.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let half = values.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let mut below = 0.0;
    values.iter().find_map(|(value, weight)| {
        below += weight;
        (below >= half).then_some(*value)
    })
}

#[cfg(test)]
mod tests;
