//! What the pairs that a section carries tell of its cost.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int32Type, Int64Type};
use undertick_estimate::compensation::{
    Correction, Method, Paired, Tested, control_variate, zero_test,
};
use undertick_estimate::spread_of_mean;
use undertick_trace::manifest::{PairedCost, SpanCost};
use undertick_trace::read::Trace;
use undertick_trace::schema::Kind;
use undertick_units::{Estimate, Interval};

use super::{DOSES, NotCalibrated, Sections, in_any_surroundings, less_work, together};

const LEVEL: f64 = 0.95;
/// As the ratio rule for the other figures.
const RATIO: f64 = 4.0;

/// From the sections whose events are `of` and the numbers after them; a dose is
/// in pairs of instructions of `pair` each.
pub(super) fn measure(
    trace: &Trace,
    of: Sections,
    pair: &Estimate,
    span: &SpanCost,
) -> Result<PairedCost, NotCalibrated> {
    let samples = sections(trace, of.regular)?;
    let in_random_order = sections(trace, of.random)?;
    let clock = &trace.manifest.clock;
    let ns = clock.ns_per_tick();
    let few = || NotCalibrated("too few undisturbed sections with pairs".to_owned());
    let zero = zero_test(&samples[0], None, LEVEL, clock.granularity_ticks).ok_or_else(few)?;
    let k = |method: Method| {
        let found: Option<&Tested> = zero.methods.iter().find(|t| t.method == method);
        found.and_then(|t| t.k.clone())
    };
    let left_by = |correction: &Correction| {
        let each = |samples: &[Vec<Paired>]| -> Option<Vec<Estimate>> {
            (DOSES.iter().zip(&samples[1..]))
                .map(|(&(_, pairs), of_dose)| {
                    Some(less_work(&mean_ns(of_dose, correction, ns)?, pair, pairs))
                })
                .collect()
        };
        let regular = each(&samples).ok_or_else(few)?;
        let random = each(&in_random_order).ok_or_else(few)?;
        let cost = together(&regular, &random);
        Ok::<_, NotCalibrated>(in_any_surroundings(cost, pair))
    };
    let fitted = control_variate(&samples[0]);
    // As it is among the samples that doses were measured with.
    let believed = |s: &&Paired| fitted.held(s.t1) == s.t1 && fitted.held(s.t4) == s.t4;
    let pairs: Vec<Paired> = (samples[1..].iter().flatten())
        .filter(believed)
        .map(|s| Paired {
            tm: (s.t1 + s.t4) / 2.0,
            ..*s
        })
        .collect();
    let pair_ns = mean_ns(&pairs, &Correction::constant(0.0), ns).ok_or_else(few)?;
    Ok(PairedCost {
        span: span.clone(),
        pairs_bias_ns: left_by(&Correction::pairs())?,
        shares: [fitted.b1, fitted.b4],
        fence_ticks: [fitted.fence.0, fitted.fence.1].map(|t| t.clamp(-1e15, 1e15)),
        constant_ns: left_by(&Correction {
            constant: 0.0,
            ..fitted
        })?,
        pair_ns,
        pairs_k: k(Method::Pairs),
        control_variate_k: k(Method::ControlVariate),
        chosen: zero.chosen.name().into(),
        why: zero.why,
    })
}

/// Sections around nothing and by dose, in the order of the trace; without those
/// during which the thread was descheduled or that are far beyond the usual.
fn sections(trace: &Trace, first: u32) -> Result<Vec<Vec<Paired>>, NotCalibrated> {
    let first = first as i32;
    let mut found = vec![Vec::new(); DOSES.len() + 1];
    let mut open: HashMap<i32, (i64, i64)> = HashMap::new();
    for batch in trace.batches() {
        let batch = batch?;
        let column = |name: &str| {
            (batch.column_by_name(name))
                .unwrap_or_else(|| unreachable!("the schema has {name}"))
                .clone()
        };
        let (ts, payload) = (column("ts"), column("payload"));
        let (kind, flag, event) = (column("kind"), column("descheduled"), column("event"));
        let (ts, payload) = (
            ts.as_primitive::<Int64Type>().values(),
            payload.as_primitive::<Int64Type>().values(),
        );
        let (kind, flag) = (
            kind.as_primitive::<Int8Type>().values(),
            flag.as_primitive::<Int8Type>().values(),
        );
        let event = event.as_primitive::<Int32Type>().values();
        for i in 0..batch.num_rows() {
            let Some(of_dose) = usize::try_from(event[i] - first)
                .ok()
                .and_then(|dose| found.get_mut(dose))
            else {
                continue;
            };
            if kind[i] == Kind::BeginOrdered as i8 {
                open.insert(event[i], (ts[i], payload[i]));
            } else if let Some((start, t1)) = open.remove(&event[i])
                && flag[i] != 1
            {
                of_dose.push(Paired {
                    t1: t1 as f64,
                    tm: (ts[i] - start) as f64,
                    t4: payload[i] as f64,
                });
            }
        }
    }
    found.iter_mut().for_each(cut);
    Ok(found)
}

/// Leaves out sections of which any part is four times the usual.
fn cut(samples: &mut Vec<Paired>) {
    let median = |part: fn(&Paired) -> f64| {
        let mut all: Vec<f64> = samples.iter().map(part).collect();
        all.sort_unstable_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(0.0)
    };
    let limit = Paired {
        t1: RATIO * median(|s| s.t1),
        tm: RATIO * median(|s| s.tm),
        t4: RATIO * median(|s| s.t4),
    };
    samples.retain(|s| s.t1 <= limit.t1 && s.tm <= limit.tm && s.t4 <= limit.t4);
}

fn mean_ns(samples: &[Paired], correction: &Correction, ns: f64) -> Option<Estimate> {
    let values: Vec<f64> = samples.iter().map(|s| correction.apply(s) * ns).collect();
    let spread = spread_of_mean(&values)?;
    let value = values.iter().sum::<f64>() / values.len() as f64;
    let half = spread.half_width(LEVEL);
    Some(Estimate {
        value,
        interval: Interval::new(value - half, value + half),
        level: LEVEL,
        unit: "ns".into(),
        method: "mean, batch means".into(),
        n: values.len() as u64,
        n_effective: values.len() as f64,
        notes: Vec::new(),
    })
}
