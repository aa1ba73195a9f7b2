//! The typical call of a path, and what the excess of others over it consists of.

use std::collections::{BTreeMap, HashMap};

use undertick_document::StateCondition;
use undertick_document::explanation::{Part, PartCause, TypicalCall};

use super::spent::{KERNEL, Spent};

/// Calls with page faults from which their cost is known.
const FEWEST_FAULTED: usize = 6;

/// A state of calls.
pub(super) struct State {
    pub(super) conditions: Vec<StateCondition>,
    /// The median of its calls' own time, ticks.
    pub(super) own: i64,
}

/// The mean of the calls in the middle, ticks.
#[derive(Clone, Debug)]
pub(super) struct Typical {
    looked_at: usize,
    n: usize,
    pub(super) elapsed: f64,
    within: [i64; 2],
    /// By the causes of [`KERNEL`]: ticks, and how often.
    kernel: [(f64, f64); KERNEL.len()],
    faults: f64,
    /// By interval: ticks, and how many.
    inside: BTreeMap<u32, (f64, f64)>,
    own: f64,
}

/// Names of what parts are about.
pub(super) struct Names<'a> {
    pub(super) intervals: &'a [String],
    /// The program's threads, and others.
    pub(super) roles: &'a HashMap<i32, String>,
    pub(super) others: &'a HashMap<i32, String>,
    pub(super) ns: f64,
}

impl Names<'_> {
    fn interval(&self, interval: u32) -> Option<String> {
        self.intervals.get(interval as usize).cloned()
    }

    fn thread(&self, tid: i32) -> String {
        if tid == 0 {
            return "an interrupt".to_owned();
        }
        match self.roles.get(&tid).or_else(|| self.others.get(&tid)) {
            Some(name) => format!("{name} ({tid})"),
            None => format!("thread {tid}"),
        }
    }
}

impl Typical {
    /// The mean of the middle fifth of these calls; `None` without calls.
    pub(super) fn new(calls: &[Spent]) -> Option<Self> {
        let mut by_time: Vec<&Spent> = calls.iter().collect();
        by_time.sort_by_key(|call| call.elapsed);
        let from = by_time.len() * 2 / 5;
        let until = (by_time.len() * 3).div_ceil(5);
        let middle = by_time.get(from..until).filter(|of| !of.is_empty())?;
        let n = middle.len() as f64;
        let mean = |of: &dyn Fn(&Spent) -> f64| middle.iter().map(|call| of(call)).sum::<f64>() / n;
        let mut inside: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
        for of in middle.iter().flat_map(|call| &call.inside) {
            let mean = inside.entry(of.interval).or_default();
            mean.0 += of.ticks as f64 / n;
            mean.1 += f64::from(of.n) / n;
        }
        Some(Self {
            looked_at: calls.len(),
            n: middle.len(),
            elapsed: mean(&|call| call.elapsed as f64),
            within: [middle.first()?.elapsed, middle.last()?.elapsed],
            kernel: std::array::from_fn(|cause| {
                (
                    mean(&|call| call.kernel[cause].ticks as f64),
                    mean(&|call| call.kernel[cause].n as f64),
                )
            }),
            faults: mean(&|call| call.faults as f64),
            inside,
            own: mean(&|call| call.own as f64),
        })
    }

    /// What a page fault costs, by the excess of the calls' own time that have more of them than the
    /// typical one: the median, ticks.
    pub(super) fn fault_ticks(&self, calls: &[Spent]) -> Option<f64> {
        let each = |call: &Spent| {
            let more = call.faults as f64 - self.faults;
            (more >= 1.0).then(|| ((call.own as f64 - self.own) / more).max(0.0))
        };
        let mut each: Vec<f64> = calls.iter().filter_map(each).collect();
        each.sort_by(f64::total_cmp);
        (each.len() >= FEWEST_FAULTED).then(|| each[each.len() / 2])
    }

    /// The parts of a call's excess, the largest first.
    pub(super) fn excess(
        &self,
        call: &Spent,
        fault_ticks: Option<f64>,
        state: Option<&State>,
        names: &Names<'_>,
    ) -> Vec<Part> {
        let part = |cause, ticks: f64, n, typical_n| Part {
            cause,
            of: None,
            conditions: Vec::new(),
            ns: ticks * names.ns,
            n,
            typical_n: Some(typical_n),
        };
        let mut parts: Vec<Part> = Vec::new();
        for ((cause, hits), (ticks, n)) in KERNEL.into_iter().zip(&call.kernel).zip(self.kernel) {
            parts.push(Part {
                of: hits.by_thread.map(|(_, tid)| names.thread(tid)),
                ..part(cause, hits.ticks as f64 - ticks, hits.n, n)
            });
        }
        let mut inside = self.inside.clone();
        for of in &call.inside {
            inside.entry(of.interval).or_default();
        }
        for (interval, (ticks, n)) in inside {
            let here = call.inside.iter().find(|of| of.interval == interval);
            let (ours, our_n) = here.map_or((0, 0), |of| (of.ticks, of.n));
            parts.push(Part {
                of: names.interval(interval),
                ..part(PartCause::Child, ours as f64 - ticks, u64::from(our_n), n)
            });
        }
        let mut rest = call.own as f64 - self.own;
        let mut explained = |ticks: f64| {
            let ticks = ticks.clamp(0.0, rest.max(0.0));
            rest -= ticks;
            ticks
        };
        let more_faults = call.faults as f64 - self.faults;
        let by_faults = explained(fault_ticks.unwrap_or(0.0) * more_faults);
        // Faults have both parts: those of known times, and the others.
        if let Some(faults) = parts.iter_mut().find(|of| of.cause == PartCause::Fault) {
            faults.ns += by_faults * names.ns;
            faults.n += call.faults;
            faults.typical_n = faults.typical_n.map(|n| n + self.faults);
        }
        if let Some(state) = state {
            let ticks = explained(state.own as f64 - self.own);
            parts.push(Part {
                conditions: state.conditions.clone(),
                typical_n: None,
                ..part(PartCause::State, ticks, 1, 0.0)
            });
        }
        parts.push(Part {
            typical_n: None,
            ..part(PartCause::Unexplained, rest, 1, 0.0)
        });
        parts.retain(|part| part.ns != 0.0 || (part.cause == PartCause::Fault && part.n > 0));
        parts.sort_by(|a, b| b.ns.total_cmp(&a.ns));
        parts
    }

    /// The typical call for the document.
    pub(super) fn document(&self, names: &Names<'_>) -> TypicalCall {
        let part = |cause, of, ticks: f64, n: f64| Part {
            cause,
            of,
            conditions: Vec::new(),
            ns: ticks * names.ns,
            n: n.round() as u64,
            typical_n: Some(n),
        };
        let kernel = KERNEL.into_iter().zip(self.kernel);
        let mut parts: Vec<Part> = kernel
            .map(|(cause, (ticks, n))| part(cause, None, ticks, n))
            .collect();
        parts.extend((self.inside.iter()).map(|(&interval, &(ticks, n))| {
            part(PartCause::Child, names.interval(interval), ticks, n)
        }));
        parts.push(part(PartCause::Own, None, self.own, 1.0));
        parts.retain(|part| part.ns != 0.0);
        parts.sort_by(|a, b| b.ns.total_cmp(&a.ns));
        TypicalCall {
            looked_at: self.looked_at as u64,
            n: self.n as u64,
            took_ns: self.elapsed * names.ns,
            within_ns: self.within.map(|ticks| ticks as f64 * names.ns),
            parts,
        }
    }
}
