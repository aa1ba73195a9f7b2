//! What other programs cost this one: the interference meter's figures.

use undertick_report::survey::Metric;

use super::Request;

/// Why the figures are not there.
pub(super) const NOT_MEASURED: &str =
    "not measured: this version of the survey has no interference meter";

/// The meter's figures; `None` where it is not part of the survey.
pub(super) fn metrics(_request: Request<'_>) -> Option<Vec<Metric>> {
    None
}
