//! Events per time and shares of time, from counts in slices of time.

use statrs::distribution::{ContinuousCDF, Gamma};
use undertick_units::{Estimate, Interval};

use crate::long_run::spread_of_mean;
pub(crate) use crate::proportion::proportion;

/// Number of events below which their scatter between slices is not known and the Poisson interval
/// is used too.
const FEW: u64 = 30;

/// Number of events per unit of time. `slices` are the counts in consecutive slices of equal length
/// (batch means over these: counts in a program are not Poisson); `events` and `time` are of the
/// whole. Below 30 events the interval also contains the exact Poisson one (Garwood 1936). `None`
/// without time.
#[must_use]
pub fn rate(slices: &[f64], events: u64, time: f64, level: f64) -> Option<Estimate> {
    if time.is_nan() || time <= 0.0 {
        return None;
    }
    let value = events as f64 / time;
    let mut notes = Vec::new();
    let spread = spread_of_mean(slices);
    let mut interval = Interval { lo: None, hi: None };
    let mut effective = events as f64;
    if let Some(spread) = spread {
        let mean = slices.iter().sum::<f64>() / slices.len() as f64;
        if mean > 0.0 {
            // Relative half-width, so that edges outside the slices scale too.
            let half = spread.half_width(level) / mean * value;
            interval = Interval::new((value - half).max(0.0), value + half);
            effective = effective.min(mean * mean / spread.variance.max(f64::MIN_POSITIVE));
        }
        if spread.too_short {
            notes.push("too few slices for their correlation: the rate drifts".into());
        }
    } else {
        notes.push("too short for an interval from slices of time".into());
    }
    if events < FEW {
        let (lo, hi) = garwood(events, level);
        let (lo, hi) = (lo / time, hi / time);
        interval = Interval::new(
            interval.lo.map_or(lo, |x| x.min(lo)),
            interval.hi.map_or(hi, |x| x.max(hi)),
        );
        notes.push(format!(
            "fewer than {FEW} events: interval holds the Poisson one"
        ));
    }
    Some(Estimate {
        value,
        interval,
        level,
        unit: "1/tick".into(),
        method: "batch means over slices of time".into(),
        n: events,
        n_effective: effective,
        notes,
    })
}

/// Returns the exact interval of a Poisson mean after `events` events.
fn garwood(events: u64, level: f64) -> (f64, f64) {
    let alpha = (1.0 - level) / 2.0;
    let quantile = |shape: f64, p: f64| {
        Gamma::new(shape, 1.0)
            .expect("the shape is positive")
            .inverse_cdf(p)
    };
    let n = events as f64;
    let lo = if events == 0 { 0.0 } else { quantile(n, alpha) };
    (lo, quantile(n + 1.0, 1.0 - alpha))
}

/// Sum of `part` over sum of `whole`, each given per slice of time, with the
/// interval of a ratio of means: batch means of `part - ratio * whole`
/// (Cochran, *Sampling Techniques*, 3rd ed., section 6.3). `None` if the whole
/// is not positive or the slices do not pair up.
#[must_use]
pub fn ratio_of_sums(part: &[f64], whole: &[f64], level: f64) -> Option<Estimate> {
    let total: f64 = whole.iter().sum();
    if part.len() != whole.len() || total.is_nan() || total <= 0.0 {
        return None;
    }
    let value = part.iter().sum::<f64>() / total;
    let residuals: Vec<f64> = part.iter().zip(whole).map(|(p, w)| p - value * w).collect();
    let mut notes = Vec::new();
    let spread = spread_of_mean(&residuals);
    let interval = match spread {
        Some(spread) => {
            let half = spread.half_width(level) * residuals.len() as f64 / total;
            if spread.too_short {
                notes.push("too few slices for their correlation: the share drifts".into());
            }
            Interval::new(value - half, value + half)
        }
        None => {
            notes.push("too short for an interval".into());
            Interval { lo: None, hi: None }
        }
    };
    Some(Estimate {
        value,
        interval,
        level,
        unit: "1".into(),
        method: "ratio of sums over slices of time".into(),
        n: residuals.len() as u64,
        n_effective: spread.map_or(1.0, |s| s.batches as f64),
        notes,
    })
}

#[cfg(test)]
mod tests;
