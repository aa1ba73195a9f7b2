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
mod tests;
