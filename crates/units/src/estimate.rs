/// A closed interval `[lo, hi]`. A bound that the data cannot give is `None`
/// (`null` in JSON): no answer beats a wrong one.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(
    feature = "serde",
    serde(
        from = "(Option<f64>, Option<f64>)",
        into = "(Option<f64>, Option<f64>)"
    )
)]
pub struct Interval {
    /// Lower bound, in the unit of the estimate.
    pub lo: Option<f64>,
    /// Upper bound, in the unit of the estimate.
    pub hi: Option<f64>,
}

impl From<(Option<f64>, Option<f64>)> for Interval {
    fn from((lo, hi): (Option<f64>, Option<f64>)) -> Self {
        Self { lo, hi }
    }
}

impl From<Interval> for (Option<f64>, Option<f64>) {
    fn from(i: Interval) -> Self {
        (i.lo, i.hi)
    }
}

impl Interval {
    /// An interval with both bounds known.
    #[must_use]
    pub fn new(lo: f64, hi: f64) -> Self {
        Self {
            lo: Some(lo),
            hi: Some(hi),
        }
    }

    /// Half the width, where both bounds are known.
    #[must_use]
    pub fn half_width(&self) -> Option<f64> {
        Some((self.hi? - self.lo?) / 2.0)
    }
}

/// An estimate with its confidence interval. Other programs read the field names
/// as JSON: add fields, but never rename one.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Estimate {
    /// The estimate itself, in `unit`; not a number (`null` in JSON) where too little is known.
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub value: f64,
    /// The confidence interval, which covers the truth with probability `level`.
    pub interval: Interval,
    /// Nominal coverage, e.g. 0.95.
    pub level: f64,
    /// Unit of `value` and `interval`: `"ns"`, `"1/s"`, `"1"`.
    pub unit: String,
    /// The method of the estimate, e.g. `"batch means"`.
    pub method: String,
    /// Number of samples used.
    pub n: u64,
    /// Number of independent samples that would carry the same information.
    pub n_effective: f64,
    /// What the reader must know to use the figure.
    pub notes: Vec<String>,
}
