//! The published counts (Beilner 1988, tables 15 and 17), and 17b recomputed.

use undertick_estimate::slow::{count_sd, cycles_needed};

/// Tick of the published experiment, us.
pub const TICK_US: f64 = 1000.0;
/// Number of cycles in one repetition.
pub const CYCLES: u64 = 10_000;

/// A row of table 17: counts of ten repetitions, and the figures printed for them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// The points, e.g. `(1,2)`.
    pub name: &'static str,
    /// Ticks counted in each repetition (17a).
    pub ticks: [u32; 10],
    /// Their sum as printed.
    pub sum: u32,
    /// Mean, us (17b).
    pub mean_us: u32,
    /// Predicted standard deviation of a mean, us (17b).
    pub predicted_us: f64,
    /// Observed standard deviation over the repetitions, us (17b).
    pub observed_us: f64,
}

const fn row(name: &'static str, ticks: [u32; 10], sum: u32, printed: (u32, f64, f64)) -> Row {
    let (mean_us, predicted_us, observed_us) = printed;
    Row {
        name,
        ticks,
        sum,
        mean_us,
        predicted_us,
        observed_us,
    }
}

/// Table 17.
pub const TABLE_17: [Row; 13] = [
    row(
        "(1,1)",
        [
            56913, 56855, 56856, 56853, 56854, 56854, 56854, 56854, 56853, 56856,
        ],
        568_602,
        (5686, 4.64, 1.86),
    ),
    row(
        "(1,2)",
        [
            11931, 11949, 11931, 11899, 11912, 11906, 11940, 11902, 11963, 11935,
        ],
        119_268,
        (1193, 3.94, 2.14),
    ),
    row(
        "(2,3)",
        [820, 806, 817, 829, 849, 821, 821, 882, 832, 811],
        8288,
        (83, 2.76, 2.22),
    ),
    row(
        "(3,4)",
        [1858, 1846, 1847, 1843, 1845, 1882, 1823, 1816, 1832, 1846],
        18_438,
        (184, 3.88, 1.83),
    ),
    row(
        "(4,5)",
        [
            11995, 12023, 12033, 12013, 11953, 11981, 12028, 12014, 11972, 12029,
        ],
        120_041,
        (1200, 4.00, 2.75),
    ),
    row(
        "(5,6)",
        [894, 872, 859, 864, 909, 871, 852, 832, 888, 847],
        8688,
        (87, 2.82, 2.33),
    ),
    row(
        "(6,7)",
        [1425, 1403, 1404, 1455, 1436, 1399, 1459, 1488, 1461, 1428],
        14_358,
        (144, 3.51, 2.96),
    ),
    row(
        "(7,8)",
        [
            11918, 11918, 11924, 11875, 11870, 11959, 11867, 11882, 11860, 11902,
        ],
        118_975,
        (1190, 3.92, 3.19),
    ),
    row(
        "(8,9)",
        [844, 867, 873, 905, 892, 830, 892, 865, 884, 898],
        8750,
        (88, 2.83, 2.41),
    ),
    row(
        "(9,10)",
        [1819, 1823, 1801, 1757, 1806, 1806, 1806, 1775, 1826, 1774],
        17_993,
        (180, 3.84, 2.31),
    ),
    row(
        "(10,11)",
        [9629, 9585, 9597, 9634, 9606, 9604, 9606, 9636, 9587, 9628],
        96_112,
        (961, 1.93, 1.92),
    ),
    row(
        "(11,12)",
        [855, 859, 830, 843, 835, 846, 865, 859, 852, 839],
        8483,
        (85, 2.79, 1.15),
    ),
    row(
        "(12,1)",
        [2925, 2904, 2940, 2936, 2941, 2949, 2895, 2903, 2896, 2919],
        29_208,
        (292, 4.55, 2.03),
    ),
];

/// The correct values of table 17b for a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recomputed {
    /// Mean over all repetitions by 6b, us.
    pub mean_us: f64,
    /// Standard deviation of a repetition's mean by 10a, us.
    pub predicted_us: f64,
    /// Standard deviation over the repetitions, us.
    pub observed_us: f64,
}

impl Row {
    /// Recomputes 17b from the counts.
    #[must_use]
    pub fn recomputed(&self) -> Recomputed {
        let repetitions = self.ticks.len() as f64;
        let total: f64 = self.ticks.iter().map(|&t| f64::from(t)).sum();
        let mean_ticks = total / (repetitions * CYCLES as f64);
        let of_one = total / repetitions;
        let squares: f64 = (self.ticks.iter())
            .map(|&t| (f64::from(t) - of_one).powi(2))
            .sum();
        Recomputed {
            mean_us: mean_ticks * TICK_US,
            predicted_us: count_sd(mean_ticks, CYCLES) * TICK_US,
            observed_us: (squares / (repetitions - 1.0)).sqrt() / CYCLES as f64 * TICK_US,
        }
    }
}

/// A row of table 15: required precision and the cycles printed for a tick of
/// 20, 40 and 200 activities.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Required {
    /// Level, percent.
    pub level_percent: u32,
    /// Width of the interval over the mean, as printed.
    pub precision: f64,
    /// Width in standard deviations, as printed.
    pub width_sds: f64,
    /// Cycles printed.
    pub cycles: [u32; 3],
}

/// Tick over duration of the columns of table 15.
pub const RATIOS: [f64; 3] = [20.0, 40.0, 200.0];

/// Table 15. All three rows follow from 14b with a precision of 0.1, regardless of the precision
/// they state.
pub const TABLE_15: [Required; 3] = [
    Required {
        level_percent: 90,
        precision: 0.1,
        width_sds: 3.30,
        cycles: [20_700, 42_500, 216_700],
    },
    Required {
        level_percent: 95,
        precision: 0.05,
        width_sds: 3.94,
        cycles: [29_500, 60_500, 308_900],
    },
    Required {
        level_percent: 99,
        precision: 0.01,
        width_sds: 5.16,
        cycles: [50_600, 103_800, 529_800],
    },
];

impl Required {
    /// Number of cycles by 14b with that precision, for each ratio.
    #[must_use]
    pub fn by_formula(&self, precision: f64) -> [f64; 3] {
        RATIOS.map(|ratio| cycles_needed(self.width_sds, precision, ratio))
    }
}

#[cfg(test)]
mod tests;
