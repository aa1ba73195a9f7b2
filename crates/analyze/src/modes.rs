//! The modes of an interval's samples, in nanoseconds.

use undertick_document::{Mode, Valley};
use undertick_estimate::{ModeOptions, scaled};

use crate::summary::{Figures, Summary};

impl Summary {
    /// The modes of the samples behind the figures. Empty without samples.
    pub(crate) fn modes(&self, kept: &Figures) -> Vec<Mode> {
        let found = kept.sample.modes(&ModeOptions {
            step: self.granularity(),
            level: self.options.confidence,
            ..ModeOptions::default()
        });
        let in_ns = |ticks: f64| (ticks + kept.residue) * self.ns();
        let mut valleys = found.valleys.iter();
        (found.modes.into_iter())
            .map(|mode| {
                let place = self.finished(scaled(mode.place, 1.0, "ticks"), kept);
                Mode {
                    at: place.value,
                    lo: in_ns(mode.lo),
                    hi: in_ns(mode.hi),
                    share: mode.share.value,
                    place: Some(place),
                    share_interval: Some(mode.share),
                    valley: valleys.next().map(|valley| Valley {
                        lo: in_ns(valley.lo),
                        hi: in_ns(valley.hi),
                        depth: valley.depth,
                        p_value: valley.p_value,
                    }),
                }
            })
            .collect()
    }
}
