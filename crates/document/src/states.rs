//! States: what tells the short calls of a path from the long ones.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use undertick_units::Estimate;

use super::impossible::Must;

/// The states of the calls of one path. Facts that were known of each call tell them apart, which
/// does not make these facts the cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathStates {
    /// Index of the path in [`Report::paths`](super::Report::paths).
    pub path: u32,
    /// Number of calls that were looked at, evenly over the recording; of several runs together.
    pub looked_at: u64,
    /// Share of the scatter of these calls (the variance of the logarithms of their times) that the
    /// states explain, in stretches of time that had no part in finding them.
    pub explained: f64,
    /// Edges of the bins in which the calls of each state are counted, ns, compensated, ascending.
    /// The first and the last bin also count what lies beyond them.
    #[serde(default)]
    pub edges_ns: Vec<f64>,
    /// The states, that with most calls first.
    pub states: Vec<StateReport>,
}

impl PathStates {
    /// Takes the impossible figures out; returns whether anything is left.
    pub(crate) fn is_possible(&mut self) -> bool {
        self.states.retain_mut(|state| {
            let is_time = |median: &mut Estimate| Must::NotNegative.judge(median).is_none();
            state.median =
                (state.median.take()).and_then(|mut median| is_time(&mut median).then_some(median));
            let at_possible_times = state.conditions.iter().all(StateCondition::is_possible);
            at_possible_times && Must::Share.judge(&mut state.share).is_none()
        });
        if !self.are_bins() {
            self.edges_ns.clear();
            for state in &mut self.states {
                state.counts.clear();
            }
        }
        (0.0..=1.0).contains(&self.explained) && !self.states.is_empty()
    }

    /// Whether each state has a count for each bin, and the bins have a width.
    fn are_bins(&self) -> bool {
        let are_ascending = self.edges_ns.is_sorted_by(|a, b| a < b);
        let are_finite = self.edges_ns.iter().all(|edge| edge.is_finite());
        let bins = self.edges_ns.len().saturating_sub(1);
        let looked_at = self.looked_at;
        are_ascending
            && are_finite
            && (self.states.iter()).all(|state| {
                let sum = (state.counts.iter()).try_fold(0_u64, |sum, n| sum.checked_add(*n));
                state.counts.len() == bins && sum.is_some_and(|sum| sum <= looked_at)
            })
    }
}

/// Calls of which the same is true.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StateReport {
    /// What is true of them.
    pub conditions: Vec<StateCondition>,
    /// Their share of all calls of the path. Its interval comes from the choice of the calls that were
    /// looked at; it has no width where all were.
    pub share: Estimate,
    /// Their median, ns, compensated; `null` where they lie in too few stretches of time. Of several
    /// runs it is the middle one of the runs' medians, with the interval of a repetition.
    pub median: Option<Estimate>,
    /// How many of those that were looked at lie in each bin of [`PathStates::edges_ns`].
    #[serde(default)]
    pub counts: Vec<u64>,
}

/// What is true of the calls of a state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StateCondition {
    /// The kind of fact.
    pub fact: StateFact,
    /// What it is about: the name of a thread, a span or an event. `null` where the kind says it all.
    pub of: Option<String>,
    /// Whether it is so; `null` for numbers and words.
    pub is: Option<bool>,
    /// The words that it is among.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub among: Vec<String>,
    /// The least number, or the time since the first event, ns; `null` without a bound.
    pub from: Option<f64>,
    /// What it is below, likewise.
    pub below: Option<f64>,
}

impl StateCondition {
    /// Times count from the first event.
    fn is_possible(&self) -> bool {
        let mut bounds = [self.from, self.below].into_iter().flatten();
        bounds.all(|bound| bound.is_finite() && (self.fact != StateFact::Time || bound >= 0.0))
    }
}

/// Kinds of facts about a call.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum StateFact {
    /// The thread, among names.
    Thread,
    /// The CPU on which it began, among numbers.
    Cpu,
    /// A thread of that name, another one, was running on some CPU when it began.
    Beside,
    /// Its thread had been off the CPU between the record before it and its begin.
    Resumed,
    /// The span that ended last in the span around it, among names; `nothing` for the first.
    After,
    /// A span of that name was directly inside it.
    With,
    /// An event of that name was directly inside it.
    WithEvent,
    /// A number that an event of that name carried, directly inside it.
    Value,
    /// A page fault hit it.
    Faulted,
    /// When it began, ns after the first event.
    Time,
    /// The run, among names, where there are several.
    Run,
}
