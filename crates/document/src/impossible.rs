//! The filter between analysis and every output: it removes figures that cannot be true.
//!
//! Some figures contradict themselves (a value outside its interval), physics (a duration below 0,
//! a share above 1) or their neighbours (a median above the 99 % quantile). These are replaced by
//! `null`, and the notes of their interval give the reason. Bounds that reach beyond what is
//! possible are clipped to it: the truth lies within both.

use undertick_units::Estimate;

use super::{
    Alternative, Compensation, FrequencyReport, Histogram, IntervalKind, IntervalReport, Mode,
    PathReport, PathStates, Report, SampleStatistics, Slowed, Tasks, TraceSummary,
};

/// Number of clock steps below which a span is near the resolution: estimates of its quantiles may
/// lie that far below 0.
const NEAR_STEPS: f64 = 20.0;
/// Relative error of sums of rounded figures.
const ROUNDING: f64 = 1e-9;

/// Returns the report without its impossible figures.
///
/// Applying it twice gives the same as applying it once.
#[must_use]
pub fn without_impossible(mut report: Report) -> Report {
    clock(&mut report.trace);
    let thread_time_ns = thread_time_ns(&report.trace);
    for interval in &mut report.intervals {
        let mut gate = Gate::default();
        gate.interval(interval, thread_time_ns);
        interval.notes.extend(gate.note());
    }
    // Each comes after the one around it; otherwise the way out of it may have no end.
    let is_tree =
        (report.paths.iter().zip(0..)).all(|(path, at)| path.parent.is_none_or(|outer| outer < at));
    if !is_tree {
        report.paths.clear();
    }
    let near = NEAR_STEPS * report.trace.clock.granularity_ns.max(1.0);
    (report.paths.iter_mut()).for_each(|of| path(of, near));
    report.states.retain_mut(PathStates::is_possible);
    let paths = report.paths.len();
    (report.locks.iter_mut()).for_each(|of| of.keep_possible(paths));
    (report.allocations.iter_mut()).for_each(|of| of.keep_possible(paths));
    (report.tasks.iter_mut()).for_each(Tasks::keep_possible);
    report.stacks =
        (report.stacks.take()).and_then(|mut stacks| stacks.is_possible(paths).then_some(stacks));
    let confidence = &mut report.settings.confidence;
    if !(*confidence > 0.0 && *confidence < 1.0) {
        *confidence = f64::NAN;
    }
    for frequency in &mut report.frequencies {
        rate(frequency);
    }
    (report.lines).retain(|line| {
        contradiction(&line.slope).is_none() && contradiction(&line.intercept).is_none()
    });
    let perturbation = &mut report.trace.perturbation;
    if perturbation
        .as_ref()
        .is_some_and(|p| contradiction(p).is_some())
    {
        *perturbation = None;
    }
    report
}

/// Takes the impossible figures out of a path; nothing says why, because those of its interval do.
/// Samples may be `near` ns below 0.
fn path(path: &mut PathReport, near: f64) {
    let is_possible = |total: &mut Estimate| Must::NotNegative.judge(total).is_none();
    path.total = path
        .total
        .take()
        .and_then(|mut total| is_possible(&mut total).then_some(total));
    let most = path
        .total
        .as_ref()
        .map_or(f64::INFINITY, |total| total.value * (1.0 + ROUNDING));
    for part in [&mut path.self_ns, &mut path.off_cpu_ns] {
        *part = part.filter(|ns| (0.0..=most).contains(ns));
    }
    path.share = path
        .share
        .filter(|share| (0.0..=1.0 + ROUNDING).contains(share));
    let mut above = f64::INFINITY;
    for figure in [&mut path.max_ns, &mut path.p99_ns, &mut path.median_ns] {
        *figure = figure
            .filter(|ns| ns.is_finite() && (-near..=above + ROUNDING * above.abs()).contains(ns));
        above = figure.unwrap_or(above);
    }
}

/// A 0 in the clock's figures means that the value is not known.
fn clock(trace: &mut TraceSummary) {
    let clock = &mut trace.clock;
    for figure in [
        &mut clock.ns_per_tick,
        &mut clock.granularity_ns,
        &mut clock.read_cost_ns_median,
        &mut clock.rate_error_ppb,
    ] {
        if !(figure.is_finite() && *figure >= 0.0) {
            *figure = 0.0;
        }
    }
    trace.duration_ns = trace.duration_ns.filter(|ns| *ns >= 0);
    (trace.events_span_ns) = trace
        .events_span_ns
        .filter(|ns| ns.is_finite() && *ns >= 0.0);
}

/// Time that all threads together could have spent, ns.
fn thread_time_ns(trace: &TraceSummary) -> Option<f64> {
    let span_ns = trace.events_span_ns?;
    Some(trace.threads as f64 * (span_ns + trace.clock.granularity_ns))
}

/// Why an estimate contradicts itself; `None` if it does not.
fn contradiction(estimate: &Estimate) -> Option<&'static str> {
    let bounds = [estimate.interval.lo, estimate.interval.hi];
    if !estimate.value.is_finite() || bounds.iter().flatten().any(|x| x.is_nan()) {
        return Some("not a number");
    }
    if !(estimate.level > 0.0 && estimate.level <= 1.0) {
        return Some("of no level");
    }
    let slack = estimate.value.abs() * ROUNDING;
    let holds = estimate
        .interval
        .lo
        .is_none_or(|lo| lo <= estimate.value + slack)
        && estimate
            .interval
            .hi
            .is_none_or(|hi| estimate.value <= hi + slack);
    (!holds).then_some("outside its own interval")
}

/// Whether a bound is missing.
#[must_use]
pub fn is_open(estimate: &Estimate) -> bool {
    estimate.interval.lo.is_none() || estimate.interval.hi.is_none()
}

/// Clips the bounds of a possible value to what is possible.
fn draw_in(estimate: &mut Estimate, least: f64, most: f64) {
    let value = estimate.value;
    let interval = &mut estimate.interval;
    // The value itself stays inside: rounding may have put it just outside.
    interval.lo = interval.lo.map(|lo| lo.max(least).min(value));
    interval.hi = interval.hi.map(|hi| hi.min(most).max(value));
}

/// The range in which a figure must lie.
#[derive(Clone, Copy)]
pub enum Must {
    /// At 0 or above.
    NotNegative,
    /// At 0 or above; or below 0 by at most this much, with an interval that reaches 0.
    NearZero(f64),
    /// From 0 to 1.
    Share,
    /// Anywhere.
    Any,
}

impl Must {
    /// Why the figure is impossible; otherwise `None`, and its bounds are clipped to what is
    /// possible.
    pub fn judge(self, estimate: &mut Estimate) -> Option<&'static str> {
        // An infinite bound counts as none.
        for bound in [&mut estimate.interval.lo, &mut estimate.interval.hi] {
            *bound = bound.filter(|bound| !bound.is_infinite());
        }
        if let Some(why) = contradiction(estimate) {
            return Some(why);
        }
        let value = estimate.value;
        match self {
            Self::NotNegative if value < 0.0 => return Some("below 0"),
            Self::NearZero(margin) if value < 0.0 => {
                let reaches = estimate.interval.hi.is_some_and(|hi| hi >= 0.0);
                return (!reaches || value < -margin).then_some("below 0");
            }
            Self::Share if value < 0.0 => return Some("below 0"),
            Self::Share if value > 1.0 => return Some("above 100 %"),
            Self::Share => draw_in(estimate, 0.0, 1.0),
            Self::NotNegative | Self::NearZero(_) => draw_in(estimate, 0.0, f64::INFINITY),
            Self::Any => {}
        }
        None
    }
}

/// Judges the figures of one interval and keeps the reasons.
#[derive(Default)]
struct Gate {
    reasons: Vec<String>,
}

impl Gate {
    fn note(self) -> Option<String> {
        (!self.reasons.is_empty())
            .then(|| format!("impossible, so not given: {}", self.reasons.join(", ")))
    }

    fn refuse(&mut self, name: &str, why: &str) {
        self.reasons.push(format!("{name} ({why})"));
    }

    fn estimate(&mut self, name: &str, figure: &mut Option<Estimate>, must: Must) {
        if let Some(why) = figure.as_mut().and_then(|figure| must.judge(figure)) {
            *figure = None;
            self.refuse(name, why);
        }
    }

    fn number(&mut self, name: &str, figure: &mut Option<f64>, least: f64) {
        let why = match *figure {
            Some(x) if !x.is_finite() => "not a number",
            Some(x) if x < least => "below 0",
            _ => return,
        };
        *figure = None;
        self.refuse(name, why);
    }

    fn interval(&mut self, interval: &mut IntervalReport, thread_time_ns: Option<f64>) {
        if !(interval.granularity_ns.is_finite() && interval.granularity_ns >= 0.0) {
            interval.granularity_ns = 0.0;
        }
        let near = match interval.kind {
            // The clocks of two CPUs or hosts may differ by more than the message takes.
            IntervalKind::Message => f64::INFINITY,
            _ => NEAR_STEPS * interval.granularity_ns.max(1.0),
        };
        // Steps of an experiment are differences to a null step. Its zero check is only such a
        // difference and has no distribution.
        let is_repeated = interval.repeated.is_some();
        let mean = match (is_repeated, interval.histogram.counts.is_empty()) {
            (true, true) => Must::Any,
            (true, false) => Must::NearZero(near),
            (false, _) if interval.kind == IntervalKind::Message || interval.negative > 0 => {
                Must::NearZero(near)
            }
            (false, _) => Must::NotNegative,
        };
        self.estimate("mean", &mut interval.mean, mean);
        self.estimate("median", &mut interval.median, Must::NearZero(near));
        self.quantiles(interval, near);
        self.extremes(interval, near);
        if let Some(own) = &mut interval.of_this_run {
            self.estimate("mean of this run", &mut own.mean, mean);
            self.estimate("median of this run", &mut own.median, Must::NearZero(near));
            let possible = |key: &String, figure: &mut Estimate| {
                let why = Must::NearZero(near).judge(figure);
                why.is_none() || {
                    self.refuse(&format!("{key} quantile of this run"), why.unwrap_or(""));
                    false
                }
            };
            own.quantiles.retain(possible);
        }
        for (name, figure) in interval.statistics.not_negative() {
            self.number(name, figure, 0.0);
        }
        self.compensation(&mut interval.compensation);
        self.alternative("before dropping", &mut interval.before_culling, near);
        self.alternative("uncompensated", &mut interval.uncompensated, near);
        self.times(interval, thread_time_ns);
        self.shares(interval);
        self.distribution("distribution", &mut interval.histogram);
        self.modes(&mut interval.modes);
        if let Some(slowed) = &mut interval.slowed
            && !self.slowed(slowed)
        {
            interval.slowed = None;
        }
        if let Some(sampled) = &mut interval.sampled {
            self.estimate(
                "total of the sampled",
                &mut sampled.total,
                Must::NotNegative,
            );
        }
        if let Some(repeated) = &mut interval.repeated
            && let Some(why) = contradiction(&repeated.typical)
        {
            interval.repeated = None;
            self.refuse("typical", why);
        }
    }

    /// Quantiles must rise with their probability, from the median on.
    fn quantiles(&mut self, interval: &mut IntervalReport, near: f64) {
        let mut below = interval.median.as_ref().map(|m| m.value);
        let mut keys: Vec<(f64, String)> = (interval.quantiles.keys())
            .map(|key| (key.parse().unwrap_or(f64::NAN), key.clone()))
            .collect();
        keys.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (p, key) in keys {
            let name = format!("{key} quantile");
            let mut figure = interval.quantiles.remove(&key);
            self.estimate(&name, &mut figure, Must::NearZero(near));
            let Some(figure) = figure else { continue };
            let is_lower = below.is_some_and(|below| figure.value < below * (1.0 - ROUNDING));
            if !(0.0..=1.0).contains(&p) {
                self.refuse(&name, "no probability");
            } else if p >= 0.5 && is_lower {
                self.refuse(&name, "below a lower quantile");
            } else {
                below = if p >= 0.5 { Some(figure.value) } else { below };
                interval.quantiles.insert(key, figure);
            }
        }
    }

    /// Judges the minimum and the maximum, and that every quantile lies between them.
    fn extremes(&mut self, interval: &mut IntervalReport, near: f64) {
        let SampleStatistics { min, max, .. } = &mut interval.statistics;
        self.number("least", min, -near);
        self.number("greatest", max, -near);
        if min.zip(*max).is_some_and(|(min, max)| min > max) {
            (*min, *max) = (None, None);
            self.refuse("least and greatest", "in the wrong order");
        }
        let (min, max) = (*min, *max);
        let is_outside = |value: f64| {
            let slack = ROUNDING * value.abs();
            min.is_some_and(|min| value < min - slack) || max.is_some_and(|max| value > max + slack)
        };
        let medians = interval
            .median
            .as_ref()
            .is_some_and(|m| is_outside(m.value));
        let others: Vec<String> = (interval.quantiles.iter())
            .filter(|(_, q)| is_outside(q.value))
            .map(|(key, _)| key.clone())
            .collect();
        if medians {
            interval.median = None;
            self.refuse("median", "beyond every sample");
        }
        for key in others {
            interval.quantiles.remove(&key);
            self.refuse(&format!("{key} quantile"), "beyond every sample");
        }
    }

    fn compensation(&mut self, compensation: &mut Compensation) {
        // An experiment subtracts a null step, which may be shorter than its cost.
        let must = match compensation.method.as_str() {
            "null step" => Must::Any,
            _ => Must::NotNegative,
        };
        self.estimate("cost", &mut compensation.cost, must);
        self.estimate("k", &mut compensation.k, Must::NotNegative);
        self.ratio("k", &mut compensation.k);
        self.number("records inside", &mut compensation.inner_records, 0.0);
    }

    /// Judges a ratio: one whose interval has no end has a denominator that may be 0.
    fn ratio(&mut self, name: &str, figure: &mut Option<Estimate>) {
        if figure.as_ref().is_some_and(is_open) {
            *figure = None;
            self.refuse(name, "a ratio to what may be 0");
        }
    }

    fn alternative(&mut self, name: &str, alternative: &mut Alternative, near: f64) {
        let must = Must::NearZero(near);
        self.estimate(&format!("mean {name}"), &mut alternative.mean, must);
        self.estimate(&format!("median {name}"), &mut alternative.median, must);
        if let Some(histogram) = &mut alternative.histogram {
            self.distribution(&format!("distribution {name}"), histogram);
        }
    }

    fn times(&mut self, interval: &mut IntervalReport, thread_time_ns: Option<f64>) {
        self.number("total", &mut interval.total_ns, 0.0);
        self.number("on CPU", &mut interval.on_cpu_ns, 0.0);
        self.number("off CPU", &mut interval.off_cpu_ns, 0.0);
        if !(interval.taken_off.time_ns.is_finite() && interval.taken_off.time_ns >= 0.0) {
            interval.taken_off = super::TakenOff::default();
            self.refuse("time taken off", "below 0");
        }
        let (Some(total), Some(possible)) = (interval.total_ns, thread_time_ns) else {
            return;
        };
        // Nested spans, keys and messages may lie inside one another, and each counts in full.
        let is_apart = matches!(interval.kind, IntervalKind::Stage | IntervalKind::Period);
        // The time of sampled spans is an estimate, not a reading.
        let is_read = interval.repeated.is_none() && interval.sampled.is_none();
        if is_apart && is_read && total > possible * (1.0 + ROUNDING) {
            interval.total_ns = None;
            self.refuse("total", "more than the time of all threads");
        }
    }

    fn shares(&mut self, interval: &mut IntervalReport) {
        if let Some(share_of) = &mut interval.share_of {
            let name = format!("share of {}", share_of.of);
            self.estimate(&name, &mut share_of.share, Must::Share);
        }
        if let Some(unexplained) = &mut interval.unexplained
            && let Some(why) = Must::Share.judge(&mut unexplained.share)
        {
            interval.unexplained = None;
            self.refuse("share of unexplained samples", why);
        }
        let is_share = |share: f64| (0.0..=1.0).contains(&share);
        if !is_share(interval.culled.share) {
            let culled = &mut interval.culled;
            let matched = culled.count.saturating_add(interval.count);
            culled.share = culled.count as f64 / matched.max(1) as f64;
            self.refuse("share of dropped samples", "not from 0 to 1");
        }
        let before = interval.evidence.len();
        (interval.evidence)
            .retain(|e| is_share(e.share) && e.time_ns.is_finite() && e.time_ns >= 0.0);
        if interval.evidence.len() < before {
            self.refuse("a cause of disturbance", "its share or time is impossible");
        }
    }

    fn distribution(&mut self, name: &str, histogram: &mut Histogram) {
        let edges = &histogram.edges;
        let is_drawn = match edges.len() {
            0 => histogram.counts.is_empty(),
            n => histogram.counts.len() == n - 1,
        };
        let rises = edges.iter().all(|e| e.is_finite()) && edges.windows(2).all(|e| e[0] < e[1]);
        if !is_drawn || !rises {
            *histogram = Histogram {
                unit: std::mem::take(&mut histogram.unit),
                ..Histogram::default()
            };
            self.refuse(name, "its bins do not ascend");
        }
    }

    fn modes(&mut self, modes: &mut Vec<Mode>) {
        let is_possible = |mode: &Mode| {
            let places = [mode.lo, mode.at, mode.hi];
            places.iter().all(|x| x.is_finite())
                && places.is_sorted()
                && (0.0..=1.0 + ROUNDING).contains(&mode.share)
                && mode
                    .place
                    .iter()
                    .chain(&mode.share_interval)
                    .all(|e| contradiction(e).is_none())
        };
        if !modes.iter().all(is_possible) {
            modes.clear();
            self.refuse("modes", "not within their bounds");
        }
        for share in modes
            .iter_mut()
            .filter_map(|mode| mode.share_interval.as_mut())
        {
            draw_in(share, 0.0, 1.0);
        }
    }

    /// Judges the slow-down; returns whether any figure of it is left.
    fn slowed(&mut self, slowed: &mut Slowed) -> bool {
        if let Some(why) = contradiction(&slowed.by) {
            self.refuse("what its points cost", why);
            return false;
        }
        let share = &slowed.share;
        if contradiction(share).is_some() || (is_open(share) && !is_open(&slowed.by)) {
            self.refuse("share that its points cost", "a ratio to what may be 0");
            return false;
        }
        self.estimate("cost of one point", &mut slowed.per_point, Must::Any);
        true
    }
}

fn rate(frequency: &mut FrequencyReport) {
    let mut per_second = frequency.per_second.take();
    if per_second
        .as_mut()
        .is_some_and(|rate| Must::NotNegative.judge(rate).is_none())
    {
        frequency.per_second = per_second;
    }
    if let Some(share_of) = &mut frequency.share_of {
        let mut share = share_of.share.take();
        if share
            .as_mut()
            .is_some_and(|share| Must::Share.judge(share).is_none())
        {
            share_of.share = share;
        }
    }
}
