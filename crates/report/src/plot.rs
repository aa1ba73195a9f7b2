//! Curves in a plane: the drawing of a figure of a source.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use undertick_units::Estimate;

/// A figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plot {
    /// What it shows.
    pub title: String,
    /// Sentences below the title.
    pub text: Vec<String>,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The curves, in the order of the legend.
    pub curves: Vec<Curve>,
}

/// An axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Axis {
    /// The quantity that it shows.
    pub name: String,
    /// Its unit; `1` for a bare number.
    pub unit: String,
    /// Whether the axis is logarithmic; only positive values are then drawn.
    pub log: bool,
}

impl Axis {
    /// A linear axis.
    #[must_use]
    pub fn new(name: &str, unit: &str) -> Self {
        Self {
            name: name.to_owned(),
            unit: unit.to_owned(),
            log: false,
        }
    }

    /// A logarithmic axis.
    #[must_use]
    pub fn log(name: &str, unit: &str) -> Self {
        Self {
            log: true,
            ..Self::new(name, unit)
        }
    }

    /// Name and unit, for the axis title.
    #[must_use]
    pub fn label(&self) -> String {
        match self.unit.as_str() {
            "1" => self.name.clone(),
            unit => format!("{}, {unit}", self.name),
        }
    }
}

/// A curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Curve {
    /// Its name in the legend.
    pub name: String,
    /// How it is drawn.
    pub style: Style,
    /// Its points: x, y, and the interval of y where there is one.
    pub points: Vec<Point>,
    /// It has the colour of the curve before it.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub is_of_previous: bool,
}

impl Curve {
    /// Returns a curve drawn as a line.
    pub fn line(name: impl Into<String>, points: Vec<Point>) -> Self {
        Self {
            name: name.into(),
            style: Style::Line,
            points,
            is_of_previous: false,
        }
    }
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Its x value.
    pub x: f64,
    /// Its y value.
    pub y: f64,
    /// The confidence interval of the y value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<[f64; 2]>,
}

impl Point {
    /// A point without an interval.
    #[must_use]
    pub const fn new(x: f64, y: f64) -> Self {
        Self { x, y, within: None }
    }

    /// A point at an estimate, with its interval.
    #[must_use]
    pub fn from_estimate(x: f64, y: &Estimate) -> Self {
        let bounds = y.interval.lo.zip(y.interval.hi);
        Self {
            x,
            y: y.value,
            within: bounds.map(|(lo, hi)| [lo, hi]),
        }
    }
}

/// How a curve is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// Lines from point to point.
    Line,
    /// Each value holds until the next point, as in a histogram.
    Steps,
    /// Points only.
    Dots,
    /// Points as printed in the source.
    Published,
}
