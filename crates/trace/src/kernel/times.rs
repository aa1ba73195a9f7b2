//! Converts another clock's nanoseconds to ticks of the trace clock.
//!
//! **Question.** What did the trace clock show when the other clock showed a given time?
//!
//! **Method.** The two clocks are read together (`undertick_clock::bracket`) when the recording
//! begins, now and then, and when it ends. Between two such anchors the relation is taken to be a
//! straight line.
//!
//! **Bound.** The bound is the worst bracket plus the largest distance of an anchor from the line
//! between its neighbours. That distance is how far from straight the relation was seen to be
//! over twice the distance. Before the first and after the last anchor the nearest line is
//! continued; its slope is uncertain by the brackets of its two ends.
//!
//! **Caveat.** A clock that leaves the line for less than the time between two anchors and
//! returns is not detected.

/// One bracketed reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Anchor {
    pub(crate) ticks: i64,
    pub(crate) ns: i64,
    pub(crate) error_ns: i64,
}

/// The mapping.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    /// Ascending in both clocks.
    anchors: Vec<Anchor>,
    ticks_per_ns: f64,
}

impl Times {
    /// Makes the mapping from anchors in order; one that does not advance in both clocks is left
    /// out. `ticks_per_ns` is used where there is only one.
    pub(crate) fn new(all: &[Anchor], ticks_per_ns: f64) -> Self {
        let mut anchors: Vec<Anchor> = Vec::new();
        for &anchor in all {
            let ahead = |last: &Anchor| anchor.ns > last.ns && anchor.ticks > last.ticks;
            if anchors.last().is_none_or(ahead) {
                anchors.push(anchor);
            }
        }
        Self {
            anchors,
            ticks_per_ns,
        }
    }

    /// Whether anything can be mapped.
    pub(crate) const fn is_empty(&self) -> bool {
        self.anchors.is_empty()
    }

    /// The trace clock at `ns` of the other one; 0 without any anchor.
    pub(crate) fn ticks(&self, ns: i64) -> i64 {
        let later = self.anchors.partition_point(|anchor| anchor.ns <= ns);
        match self.anchors.len() {
            0 => 0,
            1 => {
                let only = self.anchors[0];
                only.ticks + ((ns - only.ns) as f64 * self.ticks_per_ns).round() as i64
            }
            n => {
                let right = later.clamp(1, n - 1);
                line(self.anchors[right - 1], self.anchors[right], ns)
            }
        }
    }

    /// Bound on the error for times between the first and the last anchor, ns.
    pub(crate) fn error_ns(&self) -> f64 {
        let widest = self.anchors.iter().map(|anchor| anchor.error_ns).max();
        let bent = self.anchors.windows(3).map(|of| {
            let on_line = line(of[0], of[2], of[1].ns);
            (on_line - of[1].ticks).abs()
        });
        // One tick of rounding.
        let bent = bent.max().unwrap_or(0) + 1;
        widest.unwrap_or(0) as f64 + bent as f64 / self.slope()
    }

    /// As [`Self::error_ns`], for a time that may lie outside of the anchors.
    pub(crate) fn error_at_ns(&self, ns: i64) -> f64 {
        let (Some(first), Some(last)) = (self.anchors.first(), self.anchors.last()) else {
            return f64::INFINITY;
        };
        let outside = (first.ns - ns).max(ns - last.ns).max(0) as f64;
        let span = (last.ns - first.ns) as f64;
        let of_slope = (first.error_ns + last.error_ns) as f64;
        let beyond = if outside == 0.0 {
            0.0
        } else if span > 0.0 {
            outside * of_slope / span
        } else {
            // The rate is from elsewhere: 100 ppm is more than any clock is off.
            outside * 1e-4
        };
        self.error_ns() + beyond
    }

    fn slope(&self) -> f64 {
        match (self.anchors.first(), self.anchors.last()) {
            (Some(first), Some(last)) if last.ns > first.ns => {
                (last.ticks - first.ticks) as f64 / (last.ns - first.ns) as f64
            }
            _ => self.ticks_per_ns.max(f64::MIN_POSITIVE),
        }
    }
}

/// The line through two anchors, at `ns`, rounded to the nearest tick.
fn line(left: Anchor, right: Anchor, ns: i64) -> i64 {
    let run = i128::from(right.ns - left.ns);
    let rise = i128::from(right.ticks - left.ticks);
    let product = i128::from(ns - left.ns) * rise;
    let rounded = (2 * product + run).div_euclid(2 * run);
    i64::try_from(i128::from(left.ticks) + rounded).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn anchor(ns: i64, ticks: i64) -> Anchor {
        Anchor {
            ticks,
            ns,
            error_ns: 20,
        }
    }

    #[test]
    fn anchors_lines_and_what_lies_outside() {
        let times = Times::new(&[anchor(1000, 5000), anchor(2000, 8000)], 3.0);
        assert_eq!(times.ticks(1000), 5000);
        assert_eq!(times.ticks(1500), 6500);
        assert_eq!(times.ticks(2000), 8000);
        assert_eq!(times.ticks(900), 4700);
        assert_eq!(times.ticks(2100), 8300);
        assert_eq!(times.error_ns(), 20.0 + 1.0 / 3.0);
        // 100 outside of 1000, ends uncertain by 20 each: 4 more.
        assert_eq!(times.error_at_ns(2100), times.error_ns() + 4.0);
        assert_eq!(times.error_at_ns(900), times.error_ns() + 4.0);
        assert_eq!(times.error_at_ns(1900), times.error_ns());
        let only = Times::new(&[anchor(1000, 5000)], 3.0);
        assert_eq!(only.ticks(1100), 5300);
        assert_eq!(Times::new(&[], 3.0).ticks(7), 0);
        assert!(Times::new(&[], 3.0).error_at_ns(7).is_infinite());
    }

    #[test]
    fn a_bend_widens_the_bound() {
        // The middle one lies 300 ticks, 100 ns, below the line.
        let bent = [anchor(0, 0), anchor(1000, 2700), anchor(2000, 6000)];
        let times = Times::new(&bent, 3.0);
        assert_eq!(times.error_ns(), 20.0 + 301.0 / 3.0);
        // An anchor that went back is not used.
        let times = Times::new(&[anchor(0, 0), anchor(500, -1), anchor(1000, 3000)], 3.0);
        assert_eq!(times.ticks(500), 1500);
    }

    /// A clock whose rate wanders by 50 ppm within ten seconds, brackets that are
    /// off by up to their bound: every time in between is within the bound.
    #[test]
    fn the_truth_lies_within_the_bound() {
        let mut random = ChaCha8Rng::seed_from_u64(4);
        for _ in 0..200 {
            let phase = random.random_range(0.0..6.3);
            let truth = |ns: i64| {
                let s = ns as f64 / 1e9;
                let turn = std::f64::consts::TAU / 10.0;
                let wander = 50e-6 / turn * (s * turn + phase).sin();
                ((s + wander) * 2.6e9).round() as i64
            };
            let anchors: Vec<Anchor> = (0..=10)
                .map(|s| {
                    let ns = s * 1_000_000_000;
                    let off = random.random_range(-18..=18);
                    anchor(ns, truth(ns + off))
                })
                .collect();
            let times = Times::new(&anchors, 2.6);
            let bound = times.error_ns();
            for _ in 0..500 {
                let ns = random.random_range(0..10_000_000_000_i64);
                let off_ns = (times.ticks(ns) - truth(ns)) as f64 / 2.6;
                assert!(off_ns.abs() <= bound, "{off_ns} {bound}");
            }
            // A bound of a millisecond would be no achievement.
            assert!(bound < 60_000.0, "{bound}");
        }
    }
}
