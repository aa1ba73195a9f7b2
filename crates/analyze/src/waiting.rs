//! Samples that wait until there are many of one interval, to be tallied together.

use crate::reading::{Ends, Inner};
use crate::sample::{Sample, Sampling};
use crate::tree::Path;

/// Samples of an interval tallied at a time; 8 bits can number them: 6 KiB.
pub(crate) const MOST: usize = 256;

/// A sample between the readings of a plain span or of two instants: not descheduled, not
/// sampled, with no pairs and no serialised readings inside.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FastSample {
    /// Reading at its start.
    pub(crate) start: i64,
    /// Reading at its end.
    pub(crate) end: i64,
    /// Readings of the same ring strictly inside.
    pub(crate) inside: Inner,
    pub(crate) path: Path,
}

impl FastSample {
    pub(crate) fn sample(&self, ends: Ends) -> Sample {
        Sample {
            ticks: self.end.saturating_sub(self.start),
            start: self.start,
            ends,
            pairs: [0; 2],
            inner: self.inside,
            inner_ordered: 0,
            hit: false,
            unknown: false,
            sampling: Sampling::default(),
            path: self.path,
        }
    }
}

/// Samples of one interval, stored by the columns of [`FastSample`].
#[derive(Clone, Debug)]
pub(crate) struct Samples {
    starts: [i64; MOST],
    ends: [i64; MOST],
    inside: [Inner; MOST],
    paths: [Path; MOST],
}

impl Samples {
    pub(crate) const NONE: Self = Self {
        starts: [0; MOST],
        ends: [0; MOST],
        inside: [Inner::NONE; MOST],
        paths: [Path::ROOT; MOST],
    };

    /// Stores a sample at that index.
    #[inline]
    pub(crate) fn put(&mut self, at: u8, sample: FastSample) {
        let at = usize::from(at);
        self.starts[at] = sample.start;
        self.ends[at] = sample.end;
        self.inside[at] = sample.inside;
        self.paths[at] = sample.path;
    }

    pub(crate) fn first(&self, n: usize) -> Columns<'_> {
        Columns {
            starts: &self.starts[..n],
            ends: &self.ends[..n],
            inside: &self.inside[..n],
            paths: &self.paths[..n],
        }
    }
}

/// Columns of [`Samples`], of equal length.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'a> {
    pub(crate) starts: &'a [i64],
    pub(crate) ends: &'a [i64],
    pub(crate) inside: &'a [Inner],
    pub(crate) paths: &'a [Path],
}

impl Columns<'_> {
    pub(crate) fn each(&self) -> impl Iterator<Item = FastSample> {
        let readings = self.starts.iter().zip(self.ends);
        readings.zip(self.inside.iter().zip(self.paths)).map(
            |((&start, &end), (&inside, &path))| FastSample {
                start,
                end,
                inside,
                path,
            },
        )
    }

    /// Computes the duration of each; `None` where one does not fit into 64 bits.
    pub(crate) fn ticks(&self, ticks: &mut Vec<i64>) -> Option<()> {
        // The sign bit of this is set where a difference overflows: one check for all.
        let mut far = 0;
        ticks.clear();
        ticks.extend(self.ends.iter().zip(self.starts).map(|(&end, &start)| {
            let ticks = end.wrapping_sub(start);
            far |= (end ^ start) & (end ^ ticks);
            ticks
        }));
        (far >= 0).then_some(())
    }
}

/// Samples that wait to be tallied, by interval.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting {
    pub(crate) by_interval: Vec<IntervalSamples>,
    /// Intervals that may have some.
    pub(crate) some: Vec<u32>,
    /// Buffers for their durations, and for those less the cost of recording.
    pub(crate) ticks: Vec<i64>,
    pub(crate) values: Vec<i64>,
}

/// The samples of one interval that wait.
#[derive(Clone, Debug)]
pub(crate) struct IntervalSamples {
    /// Space for [`MOST`] samples, or none yet.
    pub(crate) samples: Option<Box<Samples>>,
    /// Number of samples that wait.
    pub(crate) n: usize,
    /// Whether it is listed among the intervals that may have some.
    pub(crate) is_some: bool,
    /// All samples so far share one parent: the parent of the next one may matter.
    pub(crate) lies_in_one: bool,
}

impl Default for IntervalSamples {
    fn default() -> Self {
        Self {
            samples: None,
            n: 0,
            is_some: false,
            lies_in_one: true,
        }
    }
}

impl Waiting {
    #[inline]
    pub(crate) fn has(&self, interval: u32) -> bool {
        (self.by_interval.get(interval as usize)).is_some_and(|samples| samples.n > 0)
    }

    /// Extends the table to this many intervals.
    pub(crate) fn know(&mut self, intervals: usize) {
        if self.by_interval.len() < intervals {
            self.by_interval
                .resize_with(intervals, IntervalSamples::default);
        }
    }
}
