//! The estimators, on numbers in memory.

use pyo3::prelude::*;
use undertick_estimate::{
    Numbers, difference, difference_of_quantiles, paired_difference, paired_ratio, ratio,
    ratio_of_quantiles,
};
use undertick_units::Estimate;

use crate::{Error, InputError};

/// The statistic to estimate.
#[derive(Clone, Copy)]
enum Statistic {
    Mean,
    Quantile(f64),
}

impl Statistic {
    fn parse(text: &str) -> PyResult<Self> {
        let per_cent = text.strip_prefix('p').and_then(|p| p.parse::<f64>().ok());
        match (text, per_cent) {
            ("mean", _) => Ok(Self::Mean),
            ("median", _) => Ok(Self::Quantile(0.5)),
            (_, Some(p)) if p > 0.0 && p < 100.0 => Ok(Self::Quantile(p / 100.0)),
            _ => Err(InputError::new_err(format!(
                "of={text:?}: use 'mean', 'median', or a quantile between p0 and p100, e.g. 'p99' or 'p99.9'"
            ))),
        }
    }
}

/// Returns the numbers of an array of doubles.
fn numbers(bytes: &[u8], name: &str) -> PyResult<Vec<f64>> {
    let (values, rest) = bytes.as_chunks::<8>();
    debug_assert!(rest.is_empty());
    let values: Vec<f64> = values
        .iter()
        .map(|value| f64::from_ne_bytes(*value))
        .collect();
    match values.iter().position(|value| !value.is_finite()) {
        Some(at) => Err(InputError::new_err(format!(
            "{name}[{at}] is {}: finite numbers only; leave out what is missing",
            values[at]
        ))),
        None if values.is_empty() => Err(InputError::new_err(format!("{name}: no numbers"))),
        None => Ok(values),
    }
}

fn check(level: f64) -> PyResult<()> {
    if level > 0.0 && level < 1.0 {
        return Ok(());
    }
    Err(InputError::new_err(format!(
        "level={level}: a level lies between 0 and 1, e.g. 0.95"
    )))
}

fn json(estimate: &Estimate) -> PyResult<String> {
    serde_json::to_string(estimate).map_err(|e| Error::new_err(e.to_string()))
}

/// Estimates a statistic of `values`, doubles in the order in which they were measured.
#[pyfunction]
pub fn estimate(py: Python<'_>, values: &[u8], of: &str, level: f64) -> PyResult<String> {
    let statistic = Statistic::parse(of)?;
    check(level)?;
    let values = numbers(values, "values")?;
    let found = py.detach(|| {
        let numbers = Numbers::new(values);
        match statistic {
            Statistic::Mean => numbers.mean(level),
            Statistic::Quantile(p) => numbers.quantile(p, level),
        }
    });
    json(&found.ok_or_else(|| InputError::new_err("values: no numbers"))?)
}

/// Returns the difference `a - b` and the ratio `a / b` (None where it has none), as JSON.
#[pyfunction]
pub fn compare(
    py: Python<'_>,
    a: &[u8],
    b: &[u8],
    of: &str,
    level: f64,
    paired: bool,
) -> PyResult<(String, Option<String>)> {
    let statistic = Statistic::parse(of)?;
    check(level)?;
    let (a, b) = (numbers(a, "a")?, numbers(b, "b")?);
    if paired && matches!(statistic, Statistic::Quantile(_)) {
        return Err(InputError::new_err(
            "paired=True compares means; leave of='mean'",
        ));
    }
    if paired && a.len() != b.len() {
        return Err(InputError::new_err(format!(
            "paired=True: {} numbers in a and {} in b; pairs have as many of each",
            a.len(),
            b.len()
        )));
    }
    let (less, over) = py.detach(|| {
        if paired {
            return (
                paired_difference(&a, &b, level),
                paired_ratio(&a, &b, level),
            );
        }
        let (a, b) = (Numbers::new(a), Numbers::new(b));
        match statistic {
            Statistic::Mean => (difference(&a, &b, level), ratio(&a, &b, level)),
            Statistic::Quantile(p) => (
                difference_of_quantiles(&a, &b, p, level),
                ratio_of_quantiles(&a, &b, p, level),
            ),
        }
    });
    let less = less.ok_or_else(|| InputError::new_err("nothing to compare"))?;
    Ok((json(&less)?, over.as_ref().map(json).transpose()?))
}
