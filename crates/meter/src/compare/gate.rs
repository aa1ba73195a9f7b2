//! Decides whether a figure is surely slower than allowed.

use undertick_estimate::Versus;
use undertick_report::compare::Row;
use undertick_report::survey::{Better, Metric, Scale};

/// Probability that chance alone makes a figure look worse by more than `share`, if it is worse by
/// exactly that. `versus` compares the second side with the first, whose figure is multiplied by a
/// factor. `None` for figures without a ratio or a better side.
pub(super) fn p(
    metric: &Metric,
    share: f64,
    versus: impl Fn(f64) -> Option<Versus>,
) -> Option<f64> {
    let (allowed, worse_is_more) = match metric.better {
        Better::Lower => (1.0 + share, true),
        Better::Higher => (1.0 / (1.0 + share), false),
        Better::Neither => return None,
    };
    if metric.scale != Scale::Ratio {
        return None;
    }
    let found = versus(allowed)?;
    found.ratio.as_ref()?;
    let p = found.p?;
    let is_beyond = match worse_is_more {
        true => found.difference.value > 0.0,
        false => found.difference.value < 0.0,
    };
    Some(if is_beyond { p / 2.0 } else { 1.0 - p / 2.0 })
}

/// Ids of the rows that surely are too slow, by the adjusted probability. If none is worse than
/// allowed, the list has entries in at most the share `alpha` of comparisons.
pub(super) fn too_slow(rows: &[Row], alpha: f64) -> Vec<String> {
    let is_sure = |row: &&Row| row.gate_p.is_some_and(|p| p <= alpha);
    rows.iter()
        .filter(is_sure)
        .map(|row| row.id.clone())
        .collect()
}
