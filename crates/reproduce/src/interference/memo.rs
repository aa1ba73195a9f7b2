//! The figures that the memo prints.

/// A bin of the printed histogram of rates with interlace off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PrintedBin {
    /// Rate, mips.
    pub(super) rate: f64,
    pub(super) count: u64,
    /// Maximum count where a digit is doubtful; the minimum is then 0.
    pub(super) at_most: Option<u64>,
}

const fn bin(rate: f64, count: u64) -> PrintedBin {
    PrintedBin {
        rate,
        count,
        at_most: None,
    }
}

const fn doubtful(rate: f64, count: u64, at_most: u64) -> PrintedBin {
    PrintedBin {
        rate,
        count,
        at_most: Some(at_most),
    }
}

/// The legible bins. Bins in between that are missing here cannot be read.
pub(super) const INTERLACE_OFF: [PrintedBin; 28] = [
    bin(0.224, 1),
    bin(0.232, 1),
    bin(0.240, 5),
    bin(0.244, 13),
    bin(0.248, 15),
    bin(0.252, 41),
    bin(0.256, 60),
    bin(0.260, 32),
    doubtful(0.264, 88, 99),
    bin(0.268, 22),
    bin(0.276, 1),
    bin(0.280, 0),
    bin(0.284, 5),
    bin(0.292, 24),
    bin(0.296, 47),
    bin(0.304, 37),
    bin(0.312, 2),
    bin(0.316, 8),
    doubtful(0.320, 6, 9),
    doubtful(0.324, 6, 9),
    bin(0.328, 14),
    bin(0.332, 16),
    bin(0.336, 36),
    bin(0.340, 136),
    bin(0.344, 496),
    bin(0.348, 1746),
    bin(0.352, 2037),
    bin(0.356, 0),
];

/// Runs in succession, and how often.
pub(super) const SCHEDULE: (f64, f64) = (50.0, 100.0);
/// Sleep between them, s.
pub(super) const SLEEP_S: f64 = 10.0;
/// Instructions of the loop; all but one are executed ten times.
pub(super) const LOOP_INSTRUCTIONS: f64 = 11.0;
/// Duration of a run, us.
pub(super) const LOOP_US: f64 = 290.0;
/// Instructions of a trial, as printed beside the histogram.
pub(super) const TRIAL_INSTRUCTIONS: f64 = 62.0;
/// Duration of the measurement for the histogram, s.
pub(super) const METERING_S: f64 = 995.86;
/// Instructions and memory accesses per second of the probe.
pub(super) const MIX: (f64, f64) = (342_000.0, 419_000.0);

/// Interlace on: the rates of the peaks, mips, and the share of the samples in the second one.
pub(super) const ON_PEAKS: (f64, f64) = (0.352, 0.328);
pub(super) const ON_SHARE: f64 = 0.10;
/// Loss at full load with interlace on.
pub(super) const ON_FULL_LOSS: f64 = 0.02;

/// Interlace off: the peaks, mips, and their shares of the samples.
pub(super) const OFF_PEAKS: [(f64, f64); 3] = [(0.352, 0.90), (0.296, 0.025), (0.256, 0.069)];
/// Average rate, mips.
pub(super) const OFF_AVERAGE: f64 = 0.343;
/// Mean loss, and loss at full load.
pub(super) const OFF_LOSS: (f64, f64) = (0.03, 0.05);
/// The drum's cycle, us.
pub(super) const DRUM_CYCLE_US: f64 = 4.0;
/// Number of pages of the two controllers.
pub(super) const PAGES: (f64, f64) = (50.0, 100.0);
/// Share of the time in which drum and processor meet in one of them.
pub(super) const MEETING: f64 = 0.55;
/// Share of the time for which the drum was active, interlace off.
pub(super) const OFF_ACTIVITY: f64 = 0.18;
/// The same at full load.
pub(super) const FULL_ACTIVITY: f64 = 0.30;
/// The value of interlace.
pub(super) const WORTH: f64 = 0.03;
/// The slow-down without interlace over that with it: "about a factor of four".
pub(super) const SLOWER_WITHOUT: f64 = 4.0;
