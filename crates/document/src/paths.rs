//! Spans by path: the call tree of a recording.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use undertick_units::Estimate;

/// The spans of one name with the same names around them, in all threads of one role together. A
/// census: its figures are those of this recording, not estimates for another one.
///
/// A span inside a span of the same name, however far inside, belongs to the outer one's path.
///
/// Threads of one name have one role, and so have those whose names differ in a number at their end
/// alone. Where spans come from threads of several roles, each role is a path that contains the
/// outermost spans of its threads and has no calls itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathReport {
    /// Name of its innermost span, or of the role.
    pub name: String,
    /// Number of threads of the role; `null` for a span.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// Index of the path around it in [`Report::paths`](super::Report::paths); `null`: it is
    /// outermost.
    pub parent: Option<u32>,
    /// Number of paths around it.
    pub depth: u32,
    /// Number of calls, dropped samples included; of sampled spans also those that were not
    /// recorded. A role has none.
    pub calls: u64,
    /// The calls among them that lie inside another call of the same path.
    pub recursive_calls: u64,
    /// Its points, or those of a span around it, were switched off and on (`record --perturbation`): its
    /// calls, its total and its share are those of the time they were on, and the program did more.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_switched: bool,
    /// Time of all calls, ns, compensated and without the known time of disturbances; that of
    /// recursive calls is counted once. Its interval covers what the clock and the cost of recording
    /// leave uncertain. `null` where the sum cannot be true. That of a role is the sum of its outermost
    /// spans.
    pub total: Option<Estimate>,
    /// The part of the total that lies in no span inside, ns. `null` where what was subtracted for
    /// recording exceeds it, where spans inside were recorded for a part of the time alone, and for a
    /// role.
    pub self_ns: Option<f64>,
    /// The part of the total for which its thread waited, slept or had yielded, ns; `null` where no
    /// kernel events show it.
    pub off_cpu_ns: Option<f64>,
    /// The total divided by the sum of the totals of all outermost paths; `null` where
    /// either is unknown, or outermost spans were not recorded all the time.
    pub share: Option<f64>,
    /// Median of the samples, ns, compensated. Where a name has several paths it is exact to
    /// 0.8 %.
    pub median_ns: Option<f64>,
    /// 99 % quantile of the samples, ns, likewise.
    pub p99_ns: Option<f64>,
    /// Longest call, ns, compensated and without the known time of disturbances; also one that is no
    /// sample, because it was disturbed for an unknown time.
    pub max_ns: Option<f64>,
}

// The signature that serde asks for.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(is: &bool) -> bool {
    !is
}

impl PathReport {
    /// Whether no call of it ended, but one of a span inside it did: its total is the time of those inside,
    /// at least.
    #[must_use]
    pub fn is_still_open(&self) -> bool {
        self.threads.is_none() && self.calls == 0
    }

    /// Mean time of a call that lies in no other call of the same path, ns; `None` for a role, and where no
    /// call has ended.
    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        let total = (self.total.as_ref()).filter(|_| self.threads.is_none() && self.calls > 0);
        Some(total?.value / self.outer_calls())
    }

    /// Number of calls that lie in no other call of the same path, at least 1 as a divisor.
    #[must_use]
    pub fn outer_calls(&self) -> f64 {
        self.calls.saturating_sub(self.recursive_calls).max(1) as f64
    }
}
