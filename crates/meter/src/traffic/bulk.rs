//! The bulk of a step's values, and what is out of place beside it.

/// A value is out of place if it is over this many times its step's median,
pub(super) const TIMES: f64 = 1.5;
/// and at least this many steps of the clock over it,
pub(super) const CLOCK_STEPS: f64 = 5.0;
/// and this many standard deviations of the bulk, so that its own jitter is not looked for in the
/// kernel's evidence. Of values with an exponential tail, 4 in 1000 lie beyond.
pub(super) const SCATTERS: f64 = 6.0;
/// The upper quartile of a bulk is at most this many times as far from the median as the lower one.
const SKEWED: f64 = 3.0;
/// Distance between the quartiles of a normal distribution, standard deviations.
const QUARTILES_APART: f64 = 1.349;

/// The bulk of the values of one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bulk {
    median: f64,
    /// What is out of place is at least this much over the median, ticks.
    pub(super) least_over: f64,
}

impl Bulk {
    /// `None` without values.
    pub(super) fn from_ticks(values: &[i64], step_ticks: f64) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        let median = middle(&sorted)?;
        let quartile = |at: usize| sorted[(at * (sorted.len() - 1)).div_ceil(4)] as f64;
        // What is out of place lies above and may reach the upper quartile of few values; the lower
        // one belongs to the bulk.
        let below = median - quartile(1);
        let above = (quartile(3) - median).min(SKEWED * below);
        let scatter = (below + above) / QUARTILES_APART;
        Some(Self {
            median,
            least_over: (CLOCK_STEPS * step_ticks).max(SCATTERS * scatter),
        })
    }

    pub(super) fn over(&self, ticks: i64) -> f64 {
        ticks as f64 - self.median
    }

    pub(super) fn is_out(&self, ticks: i64) -> bool {
        ticks as f64 > TIMES * self.median && self.over(ticks) >= self.least_over
    }
}

/// The median; `None` without values.
pub(super) fn median(values: &[i64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    middle(&sorted)
}

/// The median of ascending values; for an even number, the mean of the two middle ones.
fn middle(sorted: &[i64]) -> Option<f64> {
    let n = sorted.len();
    let upper = *sorted.get(n / 2)?;
    match n % 2 {
        1 => Some(upper as f64),
        _ => Some((sorted[n / 2 - 1] as f64 + upper as f64) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: quartiles at 80 and 120 are 29.65 ticks of scatter, and six times that is 177.9.
    #[test]
    fn jitter_is_not_out_of_place() {
        let values: Vec<i64> = (0..=40).map(|i| 60 + 2 * i).collect();
        let bulk = Bulk::from_ticks(&values, 1.0).expect("values");
        assert!((bulk.least_over - 6.0 * 40.0 / 1.349).abs() < 1e-9);
        assert!(
            !bulk.is_out(151),
            "over 1.5 times the median, and within the jitter"
        );
        assert!(!bulk.is_out(277) && bulk.is_out(278));
        assert!((bulk.over(278) - 178.0).abs() < 1e-9);
    }

    /// Without scatter the steps of the clock decide.
    #[test]
    fn values_that_are_alike() {
        let bulk = Bulk::from_ticks(&[20; 9], 10.0).expect("values");
        assert!(!bulk.is_out(69) && bulk.is_out(70));
        assert_eq!(Bulk::from_ticks(&[], 10.0), None);
    }
}
