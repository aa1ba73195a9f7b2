//! Modes of a series that was analysed as it arrived.

use super::{ModeOptions, Modes, modes, share};
use crate::sample::Sample;

/// Maximum number of searches until the modes agree with the correlation of neighbours within them.
const ROUNDS: usize = 3;

impl Sample {
    /// Returns the modes of the series, in ticks; see [`modes()`].
    ///
    /// The number of modes is tested with the number of independent values *within the modes*: a
    /// program that takes one path for a second and another for the next shows two modes, although
    /// the mean of both is hardly known. A slow drift also leaves peaks in a histogram; there
    /// neighbours within a peak are correlated, and the peaks are not believed.
    ///
    /// The confidence intervals of the shares allow for how long a mode lasts.
    #[must_use]
    pub fn modes(&self, options: &ModeOptions) -> Modes {
        let n = self.moments().n() as f64;
        let mut effective = n;
        let mut found = modes(self.distribution(), effective, options);
        for _ in 0..ROUNDS {
            if found.valleys.is_empty() {
                break;
            }
            let divides: Vec<f64> = found.valleys.iter().map(|valley| valley.at).collect();
            let within = (self.series.stretches.inflation_within(&divides))
                .map_or_else(|| self.effective_of_mean(), |inflation| n / inflation);
            if within >= effective {
                break;
            }
            effective = within;
            found = modes(self.distribution(), effective, options);
        }
        self.widen_shares(&mut found, effective, options.level);
        found
    }

    fn effective_of_mean(&self) -> f64 {
        self.mean(0.95, 0.0).map_or(0.0, |mean| mean.n_effective)
    }

    /// Widens the shares: a mode that lasts makes its share less certain than independent values
    /// would.
    fn widen_shares(&self, found: &mut Modes, effective: f64, level: f64) {
        let n = self.moments().n() as f64;
        let mut below = 0.0;
        let mut last = 1.0_f64;
        let modes = found.modes.len();
        for (i, mode) in found.modes.iter_mut().enumerate() {
            below += mode.share.value;
            let next = match i + 1 < modes {
                true => self.lasting(below, level),
                false => 1.0,
            };
            let inflation = last.max(next).max(n / effective);
            last = next;
            let effective = n / inflation;
            mode.share = share(mode.share.value * n, n, effective, level);
            if inflation > 1.0 {
                mode.share.notes.push(format!(
                    "widened for autocorrelation: variance times {inflation:.2}"
                ));
            }
        }
    }

    /// Factor by which the share below a valley scatters more than that of independent values, from
    /// the nearest watched threshold. If that lies inside a mode, only part of its indicator
    /// concerns the valley: of the share p below the valley and q below the threshold, with d = q /
    /// p or (1 - q) / (1 - p), p (1 - p) d^2 of q (1 - q).
    fn lasting(&self, p: f64, level: f64) -> f64 {
        let Some((inflation, q)) = self.inflation_and_share(p, level) else {
            return 1.0;
        };
        let d = if q < p { q / p } else { (1.0 - q) / (1.0 - p) };
        let dilution = p * (1.0 - p) * d * d / (q * (1.0 - q));
        let ratio = inflation.quantile_ratio;
        let variance = 1.0 + (inflation.variance - 1.0) / dilution.clamp(1e-3, 1.0);
        variance * ratio * ratio
    }
}
