//! The published counts (Beilner 1988, tables 15 and 17), and 17b recomputed.

use std::sync::LazyLock;

use serde::Deserialize;
use undertick_estimate::slow::{count_sd, cycles_needed};

/// Tick of the published experiment, us.
pub const TICK_US: f64 = 1000.0;
/// Number of cycles in one repetition.
pub const CYCLES: u64 = 10_000;

/// A row of table 17: counts of ten repetitions, and the figures printed for them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The points, e.g. `(1,2)`.
    pub name: String,
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

/// Table 17.
pub static TABLE_17: LazyLock<[Row; 13]> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct Tables {
        table_17: [Row; 13],
    }
    let tables: Tables =
        toml::from_str(include_str!("published/table_17.toml")).expect("table_17.toml is whole");
    tables.table_17
});

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
