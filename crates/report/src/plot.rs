//! Curves in a plane: what a figure of a source shows.

use serde::{Deserialize, Serialize};
use undertick_units::Estimate;

/// A figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plot {
    /// What it shows.
    pub title: String,
    /// Sentences below the title.
    pub text: Vec<String>,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// In the order of the legend.
    pub curves: Vec<Curve>,
}

/// An axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// What it counts.
    pub name: String,
    /// Its unit; `1` for a bare number.
    pub unit: String,
    /// Each step is a factor; only positive values are drawn.
    pub log: bool,
}

impl Axis {
    /// One whose steps are equal.
    #[must_use]
    pub fn new(name: &str, unit: &str) -> Self {
        Self {
            name: name.to_owned(),
            unit: unit.to_owned(),
            log: false,
        }
    }

    /// One whose steps are factors.
    #[must_use]
    pub fn log(name: &str, unit: &str) -> Self {
        Self {
            log: true,
            ..Self::new(name, unit)
        }
    }

    /// Name and unit.
    #[must_use]
    pub fn label(&self) -> String {
        match self.unit.as_str() {
            "1" => self.name.clone(),
            unit => format!("{}, {unit}", self.name),
        }
    }
}

/// A curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// For the legend.
    pub name: String,
    /// How it is drawn.
    pub style: Style,
    /// x, y, and the interval of y where there is one.
    pub points: Vec<Point>,
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Its place.
    pub x: f64,
    /// Its value.
    pub y: f64,
    /// The value's interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<[f64; 2]>,
}

impl Point {
    /// One without an interval.
    #[must_use]
    pub const fn new(x: f64, y: f64) -> Self {
        Self { x, y, within: None }
    }

    /// An estimate with its interval.
    #[must_use]
    pub fn of(x: f64, y: &Estimate) -> Self {
        let bounds = y.interval.lo.zip(y.interval.hi);
        Self {
            x,
            y: y.value,
            within: bounds.map(|(lo, hi)| [lo, hi]),
        }
    }
}

/// How a curve is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// Lines from point to point.
    Line,
    /// Each value holds until the next point: a histogram.
    Steps,
    /// Points only.
    Dots,
    /// Points as printed in the source.
    Published,
}
