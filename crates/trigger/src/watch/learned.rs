//! Limits that are learned from the spans so far.

use hdrhistogram::Histogram;

use crate::rule::Limit;

/// Before a quantile is used, this many spans must be above it.
const ABOVE: f64 = 20.0;
/// Before the median is used, there must be this many spans.
const MEDIAN_OF: u64 = 100;
/// Significant digits of the durations that are kept, and the longest, ns: an hour.
const DIGITS: u8 = 3;
const LONGEST_NS: u64 = 3_600_000_000_000;

/// A quantile of all spans so far, or a multiple of their median.
#[derive(Debug)]
pub(super) struct Learned {
    quantile: f64,
    times: f64,
    /// Durations, ns.
    spans: Histogram<u64>,
    limit_ns: Option<f64>,
    /// Number of spans from which on the limit is computed again.
    again_from: u64,
}

impl Learned {
    /// `None` for a limit that is a time.
    pub(super) fn new(limit: Limit) -> Option<Self> {
        let (quantile, times, enough) = match limit {
            Limit::Nanoseconds(_) => return None,
            Limit::Quantile(quantile) => {
                let enough = ABOVE / (1.0 - quantile).max(f64::EPSILON);
                (quantile, 1.0, enough.round() as u64)
            }
            Limit::Medians(times) => (0.5, times, MEDIAN_OF),
        };
        Some(Self {
            quantile,
            times,
            spans: Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).ok()?,
            limit_ns: None,
            again_from: enough,
        })
    }

    /// Returns the limit for a span, if it is known, and then learns its duration.
    pub(super) fn limit_for(&mut self, took_ns: f64) -> Option<f64> {
        self.spans.saturating_record(took_ns.max(0.0) as u64);
        self.limit_ns
    }

    /// Computes the limit for the spans that come. This walks through the histogram, so a hundredth
    /// more spans must have come since.
    pub(super) fn settle(&mut self) {
        let n = self.spans.len();
        if n >= self.again_from {
            let ns = self.spans.value_at_quantile(self.quantile) as f64;
            self.limit_ns = Some(ns * self.times);
            self.again_from = n + n / 100 + 1;
        }
    }
}
