//! The cost of recording, as stored in a manifest.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;
use undertick_units::Estimate;

use super::read_cost::Change;

/// The cost of recording, nanoseconds, all with intervals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    /// Cost of a plain span (`ut_begin`/`ut_end`, `ut_next`).
    pub plain: SpanCost,
    /// Cost of a span of serialised readings (`ut_begin_ordered`/`ut_end_ordered`).
    pub ordered: SpanCost,
    /// What one event inside a span adds to it, and what lies between two readings that
    /// wait for nothing (of events, `ut_begin_fast`/`ut_end_fast`).
    pub inner_event_ns: Estimate,
    /// What one begin, end or next of a plain span inside another span adds to that span; absent
    /// in older traces, where it is that of an event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inner_span_ns: Option<Estimate>,
    /// What one serialised record inside a span adds to it.
    pub inner_ordered_ns: Estimate,
    /// What one point that is switched off inside a span adds to it (`record --perturbation`);
    /// absent in older traces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inner_off_ns: Option<Estimate>,
    /// Cost of records inside a span where about a microsecond of other code is executed between two
    /// records; only its upper bounds are used. Absent in older traces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sparse: Option<SparseCost>,
    /// Cost of functions that the compiler's hooks record; measured where some are recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub functions: Option<FunctionCost>,
    /// Cost of sampled spans (`ut_begin_sampled`/`ut_end_sampled`); absent in older traces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled: Option<SampledCost>,
    /// Cost of spans with pairs of readings (`ut_begin_paired`/`ut_end_paired`).
    #[serde(default)]
    pub paired: Option<PairedCost>,
    /// What an interrupt takes beside the time that rows of the kernel give it; absent where
    /// those rows contain no interrupts, and in older traces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupt: Option<InterruptCost>,
    /// One reading of the clock while this was measured, as the recorder samples it
    /// ([`super::ReadCost`]); absent in older traces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_ns: Option<Estimate>,
    /// When it was measured, Unix time, nanoseconds; absent in older traces. It may be long
    /// before a recording, if the recording confirmed that the values for the machine still hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_unix_ns: Option<i64>,
}

impl Calibration {
    /// Returns all costs that consist of readings and records, with names.
    pub fn costs_mut(&mut self) -> Vec<(&'static str, &mut Estimate)> {
        let mut costs = vec![
            ("plain, around nothing", &mut self.plain.empty_ns),
            ("plain", &mut self.plain.dosed_ns),
            ("ordered, around nothing", &mut self.ordered.empty_ns),
            ("ordered", &mut self.ordered.dosed_ns),
            ("event inside", &mut self.inner_event_ns),
            ("ordered record inside", &mut self.inner_ordered_ns),
        ];
        costs.extend((self.inner_span_ns.iter_mut()).map(|cost| ("span record inside", cost)));
        costs.extend((self.inner_off_ns.iter_mut()).map(|cost| ("point off inside", cost)));
        if let Some(sparse) = &mut self.sparse {
            costs.extend([
                ("event inside, far from others", &mut sparse.event_ns),
                ("span record inside, far from others", &mut sparse.span_ns),
                (
                    "ordered record inside, far from others",
                    &mut sparse.ordered_ns,
                ),
            ]);
        }
        costs.extend(self.functions.iter_mut().flat_map(FunctionCost::costs_mut));
        if let Some(sampled) = &mut self.sampled {
            costs.extend([
                ("sampled, around nothing", &mut sampled.span.empty_ns),
                ("sampled", &mut sampled.span.dosed_ns),
                ("counting inside", &mut sampled.counted_ns),
                ("sampled record inside", &mut sampled.record_ns),
            ]);
        }
        if let Some(paired) = &mut self.paired {
            costs.extend([
                ("paired", &mut paired.span.dosed_ns),
                ("bias of pairs", &mut paired.pairs_bias_ns),
            ]);
        }
        costs
    }

    /// How readings have changed since this was measured, if one now costs `read_ns`.
    #[must_use]
    pub fn change_to(&self, read_ns: Option<&Estimate>) -> Option<Change> {
        Change::between(self.read_ns.as_ref(), read_ns)
    }

    /// Returns the costs after such a change. Costs of pairs of readings follow it by themselves
    /// ([`PairedCost::pair_ns`]), so their constants stay.
    #[must_use]
    pub fn after(&self, change: &Change) -> Self {
        let mut there = self.clone();
        let paired = there.paired.take();
        for (_, cost) in there.costs_mut() {
            change.apply(cost);
        }
        Self { paired, ..there }
    }
}

impl FunctionCost {
    /// Returns all its costs, with names.
    pub fn costs_mut(&mut self) -> [(&'static str, &mut Estimate); 3] {
        [
            ("function, around nothing", &mut self.span.empty_ns),
            ("function", &mut self.span.dosed_ns),
            ("record of a function inside", &mut self.inner_ns),
        ]
    }
}

/// Cost of records inside a span, ns, where about a microsecond of other code is executed between two
/// records: the recorder's code and data and the program's have then evicted each other from the
/// nearest caches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SparseCost {
    /// Added by one event, ns.
    pub event_ns: Estimate,
    /// Added by one begin, end or next of a plain span, ns.
    pub span_ns: Estimate,
    /// Added by one serialised record, ns.
    pub ordered_ns: Estimate,
}

/// Cost of a recorded function (`--functions`): its records, and the compiler's calls of the
/// hooks that write them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionCost {
    /// Cost of the function's own span.
    pub span: SpanCost,
    /// What the begin or the end of a function inside another span adds to that span.
    pub inner_ns: Estimate,
}

/// Cost of sampled spans: each execution is counted, and some are recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampledCost {
    /// Cost of the own span of a recorded execution.
    pub span: SpanCost,
    /// What one execution inside another span adds to that span, recorded or not.
    pub counted_ns: Estimate,
    /// What the begin or the end of a recorded one adds to an outer span beyond that.
    pub record_ns: Estimate,
}

/// What an interrupt takes of a program beside the time that rows of the kernel give it: the way
/// into the kernel and out of it, and on a guest what its host does first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InterruptCost {
    /// Which interrupt, as in rows of the kernel: the one that came most often, the timer.
    pub event: i32,
    /// Time from the program's last instruction to the begin that the kernel knows; at least
    /// three of four interrupts take this long.
    pub before_ns: Estimate,
    /// Time from the end that the kernel knows to the program's next instruction, likewise.
    pub after_ns: Estimate,
    /// Interquartile distance of the two together, ns.
    pub spread_ns: f64,
}

/// What a span's own pairs of readings tell of its cost, by the zero-elapsed-time test, and what
/// known doses tell of the rest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairedCost {
    /// Constant cost of such a span beside pairs of [`Self::pair_ns`].
    pub span: SpanCost,
    /// What published pairs (half of both) leave around known doses: it is subtracted in addition
    /// to them.
    pub pairs_bias_ns: Estimate,
    /// Shares of the pairs before and after that control variates subtract.
    pub shares: [f64; 2],
    /// Pairs outside of these limits count as the limits, ticks.
    pub fence_ticks: [f64; 2],
    /// What is subtracted in addition to the shares, so that known doses come out right.
    pub constant_ns: Estimate,
    /// Mean of these pairs. If the pairs of a recording have another mean, readings have become
    /// dearer or cheaper by the difference since.
    pub pair_ns: Estimate,
    /// Improvement factor of the pairs, around nothing.
    pub pairs_k: Option<Estimate>,
    /// Improvement factor of control variates.
    pub control_variate_k: Option<Estimate>,
    /// The method to use: `long-term`, `pairs` or `control-variate`.
    pub chosen: String,
    /// Why it was chosen.
    pub why: String,
}

/// By how much the cost of a span with pairs changes, relative to how much its pairs do: as this
/// power. Both are readings and waits on the same core, but a span also holds the recorder's stores
/// and checks. Observed on an Intel guest whose pairs took 29 to 43 ns, depending on the core's
/// second thread: beside pairs of 30 ns, spans took 0.0 to 0.3 ns more than a pair, beside 40 ns 0.5
/// to 2.8 ns, and the process decides where in this range (four builds of a program, six runs of
/// each).
const PAIR_POWER: f64 = 1.15;

impl PairedCost {
    /// By how many ns the cost of a span changes when its pairs change by one.
    #[must_use]
    pub fn slope(&self) -> f64 {
        if self.pair_ns.value > 0.0 {
            PAIR_POWER * self.span.dosed_ns.value.max(0.0) / self.pair_ns.value
        } else {
            0.0
        }
    }
}

/// What a span shows beyond the work in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpanCost {
    /// Mean of a span around nothing.
    pub empty_ns: Estimate,
    /// Mean of a span around known doses of work, less the work.
    pub dosed_ns: Estimate,
    /// The smallest of these doses: spans of more work have the dosed cost.
    #[serde(default)]
    pub least_dose_ns: Option<f64>,
}
