//! Warnings for the reader, in plain words, gravest first.

use undertick_document::{IntervalKind, IntervalReport, Warning};
use undertick_format::manifest::{AcrossCpus, Descheduled, Manifest};

use crate::matching::RowCounts;
use crate::options::{Compensate, Cull, Options};

/// Share of dropped samples from which on dropping may hide what is measured.
const MUCH_CULLED: f64 = 0.05;
/// The median is not the figure to use if it has fewer clock steps than this.
pub(crate) const FEW_STEPS: f64 = 20.0;
/// An interval with fewer samples than this is hardly worth a figure.
const FEW_SAMPLES: u64 = 30;
/// Most names listed in one warning.
const LISTED: usize = 4;

/// Facts that are not in the intervals themselves.
pub(crate) struct Facts<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) options: &'a Options,
    pub(crate) rows: RowCounts,
    /// Kernel events that their sources lost.
    pub(crate) kernel_lost: u64,
    /// Whether samples are dropped by kernel events.
    pub(crate) by_evidence: bool,
    pub(crate) pushed_out: u64,
    pub(crate) crowded: u64,
    /// Number of samples with unknown flags.
    pub(crate) unknown: u64,
    /// Whether the calibrations that were used contradict each other.
    pub(crate) disagree: bool,
    /// Intervals with a smallest sample of 0 or less.
    pub(crate) least_below_step: Vec<String>,
}

/// Returns every warning that applies.
pub(crate) fn warnings(facts: &Facts<'_>, intervals: &[IntervalReport]) -> Vec<Warning> {
    let mut list = List(Vec::new());
    completeness(&mut list, facts, intervals);
    if let Some(across) = &facts.manifest.clock.across_cpus {
        clock_across_cpus(&mut list, across, facts.manifest.clock.ns_per_tick());
    }
    culling(&mut list, facts, intervals);
    precision(&mut list, facts, intervals);
    for text in &facts.manifest.warnings {
        list.add("trace", text.clone());
    }
    list.0
}

struct List(Vec<Warning>);

impl List {
    fn add(&mut self, code: &str, text: String) {
        let code = code.to_owned();
        self.0.push(Warning { code, text });
    }
}

fn completeness(list: &mut List, facts: &Facts<'_>, intervals: &[IntervalReport]) {
    let m = facts.manifest;
    let lost = m.lost.max(facts.rows.lost_in_gaps);
    if lost > 0 || facts.rows.gaps > 0 {
        list.add("lost_events", format!(
            "{lost} events were lost in {} places; intervals open there are counted as unmatched. Raise --budget, or record fewer events.",
            facts.rows.gaps
        ));
    }
    let messages = |i: &IntervalReport| i.kind == IntervalKind::Message && i.count > 0;
    if facts.rows.gaps > 0 && intervals.iter().any(messages) {
        list.add(
            "messages_after_loss",
            format!(
                "a key that comes again is matched in order, so after a lost event {} may pair the wrong ones: use keys that do not repeat",
                named(intervals, messages)
            ),
        );
    }
    if facts.rows.bad > 0 {
        list.add("bad_rows", format!(
            "{} rows have a kind, event or stage that does not exist and were left out; the trace may be damaged",
            facts.rows.bad
        ));
    }
    let lost = (m.kernel.as_ref())
        .map_or(0, |k| k.lost)
        .max(facts.kernel_lost);
    let uncounted = m.kernel.as_ref().map_or(0, |k| k.losses_not_counted);
    if lost > 0 || uncounted > 0 {
        list.add(
            "kernel_lost",
            format!(
                "{lost} events of the kernel were lost{}: disturbed samples may have been kept",
                match uncounted {
                    0 => String::new(),
                    n => format!(", and in {n} places it is not known how many"),
                }
            ),
        );
    }
    let switched = facts.manifest.perturbation.as_ref().filter(|p| p.pairs > 0);
    if let Some(about) = switched.filter(|about| about.is_of_kernel()) {
        list.add(
            "perturbation",
            format!(
                "the kernel's trace was switched off and on at random, in {} pairs of halves \
                 (record --perturbation kernel): half of its events are missing, and perf's alone \
                 tell of switches meanwhile",
                about.pairs
            ),
        );
    } else if let Some(about) = switched {
        let kept: Vec<String> = (about.kept.iter().map(ToString::to_string)).collect();
        list.add(
            "perturbation",
            format!(
                "measuring points were switched off and on at random, in {} pairs of halves \
                 (record --perturbation {}): what is not of event {} was recorded half of that time",
                about.pairs,
                about.asked,
                kept.join(", ")
            ),
        );
    }
    if facts.crowded > 0 {
        list.add(
            "too_many_names",
            format!(
                "{} events found no room for their name or thread and are in no figure",
                facts.crowded
            ),
        );
    }
    if facts.pushed_out > 0 {
        list.add("too_many_open", format!(
            "{} starts or ends were given up because too many were open at once: is an end missing in the program?",
            facts.pushed_out
        ));
    }
    if intervals.is_empty() {
        list.add(
            "no_intervals",
            "no two events form an interval: mark sections with begin and end".into(),
        );
    }
    let unmatched: u64 = intervals.iter().map(|i| i.unmatched).sum();
    if unmatched > 0 {
        let by_loss: u64 = intervals.iter().map(|i| i.unmatched_by_loss).sum();
        let starts: u64 = intervals.iter().map(|i| i.unmatched_starts).sum();
        list.add("unmatched", format!(
            "{starts} starts without an end ({by_loss} of them open when events were lost) and {} ends without a start, in {}",
            unmatched - starts,
            named(intervals, |i| i.unmatched > 0)
        ));
    }
    let negative: u64 = intervals.iter().map(|i| i.negative).sum();
    if negative > 0 {
        list.add("clock_stepped_back", format!(
            "{negative} intervals ended before they began, in {}: the clock stepped back, or CPUs' clocks differ; they are in the figures as they are",
            named(intervals, |i| i.negative > 0)
        ));
    }
}

/// Adds the findings of the short audit at the start of the recording.
fn clock_across_cpus(list: &mut List, across: &AcrossCpus, ns_per_tick: f64) {
    let ns = |ticks: f64| (ticks * ns_per_tick).round();
    if across.backward > 0 {
        list.add("clock_goes_back", format!(
            "when the recording began the clock went back from one CPU to another in {} of {} readings, by up to {} ns: intervals that end on another CPU than they began on are wrong by up to that; pin the threads, or record with UNDERTICK_CLOCK=monotonic_raw",
            across.backward,
            across.readings,
            ns(across.worst_backward_ticks as f64)
        ));
    }
    if across.cpus_apart > 0 {
        list.add("clock_differs_by_cpu", format!(
            "when the recording began {} of {} CPUs showed another time than the first one (offsets within {} .. {} ns): intervals between CPUs are wrong by up to that; see undertick clock",
            across.cpus_apart,
            across.cpus,
            ns(across.offset_lo_ticks.unwrap_or(0) as f64),
            ns(across.offset_hi_ticks.unwrap_or(0) as f64)
        ));
    }
}

fn culling(list: &mut List, facts: &Facts<'_>, intervals: &[IntervalReport]) {
    let any_culled = intervals.iter().any(|i| i.culled.count > 0);
    match facts.options.cull {
        Cull::Auto if facts.unknown > 0 => list.add("unknown_descheduled", format!(
            "whether the thread was descheduled is unknown for {} samples; they were kept",
            facts.unknown
        )),
        Cull::Ratio(ratio) => list.add("culled_by_ratio", format!(
            "samples over {ratio} times the minimum were dropped without evidence of what disturbed them: slow samples of the program itself may be among them"
        )),
        _ => {}
    }
    if !facts.least_below_step.is_empty() {
        list.add(
            "least_not_positive",
            format!(
                "the minimum of {} is not above zero, so the ratio is to one step of the clock",
                shortened(facts.least_below_step.iter().map(String::as_str))
            ),
        );
    }
    let much = |i: &IntervalReport| i.culled.share > MUCH_CULLED;
    if intervals.iter().any(much) {
        list.add("culled_share", format!(
            "more than 5 % of the samples were dropped in {}: look at the figures of all samples, too",
            named(intervals, much)
        ));
    }
    if any_culled
        && !facts.by_evidence
        && facts.options.cull == Cull::Auto
        && facts.manifest.descheduled == Descheduled::AnyDeschedule
    {
        list.add("blocking_is_culled", "on this kernel the descheduled flag is also set when a thread blocks, so samples that waited were dropped: if waiting is what you measure, use --cull none".into());
    }
}

fn precision(list: &mut List, facts: &Facts<'_>, intervals: &[IntervalReport]) {
    let samples = intervals.iter().any(|i| i.count > 0);
    if samples
        && facts.options.compensate == Compensate::Auto
        && facts.manifest.calibration.is_none()
    {
        list.add(
            "no_calibration",
            "the trace holds no calibration: the cost of recording is still in every figure".into(),
        );
    }
    if facts.disagree {
        list.add("calibration_disagrees", "an empty span and known doses of work give different costs of recording, so the intervals are wide; serialised readings (begin_ordered, end_ordered) agree better".into());
    }
    let nothing_left = |i: &IntervalReport| {
        let is_all = i.mean.as_ref().is_some_and(|mean| mean.value <= 0.0);
        is_all && i.compensation.cost.is_some() && i.negative == 0
    };
    if intervals.iter().any(nothing_left) {
        list.add("below_the_cost", format!(
            "nothing is left of the mean of {} once the cost of recording is off: the section is shorter than the cost is known",
            named(intervals, nothing_left)
        ));
    }
    let few = |i: &IntervalReport| i.count > 0 && i.count < FEW_SAMPLES;
    if intervals.iter().any(few) {
        list.add(
            "too_few_samples",
            format!(
                "fewer than {FEW_SAMPLES} samples in {}: record for longer",
                named(intervals, few)
            ),
        );
    }
    let coarse = |i: &IntervalReport| i.median_steps.is_some_and(|s| s.abs() < FEW_STEPS);
    if intervals.iter().any(coarse) {
        list.add("granularity", format!(
            "the median is below {FEW_STEPS} steps of the clock in {}: quantiles there are known to a step, use the mean",
            named(intervals, coarse)
        ));
    }
}

fn named(intervals: &[IntervalReport], which: impl Fn(&IntervalReport) -> bool) -> String {
    shortened(
        intervals
            .iter()
            .filter(|i| which(i))
            .map(|i| i.name.as_str()),
    )
}

/// The first few names, and the number of further ones.
fn shortened<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let shown = names[..names.len().min(LISTED)].join(", ");
    match names.len().saturating_sub(LISTED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests;
