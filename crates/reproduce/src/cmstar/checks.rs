//! Section 5.2: nothing is measured after each call, to see how well Method II follows the load; and
//! what Method II gets wrong if the clock process's pairs are far apart.

use undertick_cmstar::Parameters;
use undertick_cmstar::load::{MessagePairs, PairsRun, message_pairs};
use undertick_estimate::compensation::{Correction, Paired};
use undertick_experiment::jobs::Stopped;
use undertick_report::reproduce::Verdict;
use undertick_units::Estimate;

use super::messages::{OfMachine, of_machine};
use super::pairs::{of_clock_process, own, standard_deviation};
use super::published::{CHECK_K, CHECK_K_UNDISTURBED, CHECK_MEAN_US, LATENCY_US, WORDS};
use super::{Context, item, judged_item};
use crate::Run;
use crate::verdict::beside;

/// The check on one machine.
#[derive(Clone, Copy)]
pub(super) struct Check {
    /// Mean of nothing after correction by the clock process's pairs, us.
    mean_us: f64,
    /// Improvement factor by the client's own pairs (Method I).
    own_k: f64,
    /// Improvement factor by the clock process's pairs (Method II).
    clock_k: f64,
}

impl Check {
    pub(super) fn from_run(run: &PairsRun, tick_us: f64) -> Option<Self> {
        let (own, beside): (Vec<Paired>, Vec<Paired>) = (run.calls.iter())
            .filter_map(|call| {
                let check = call.check?;
                let beside = of_clock_process(&check[1], &check[2], &run.samples)?;
                Some((own(&check)?, beside))
            })
            .unzip();
        let left = |of: &[Paired]| -> Vec<f64> {
            of.iter().map(|s| Correction::pairs().apply(s)).collect()
        };
        let before: Vec<f64> = own.iter().map(|s| s.tm).collect();
        let (by_own, by_clock) = (left(&own), left(&beside));
        let k = |after: &[f64]| (standard_deviation(&before) / standard_deviation(after)).powi(2);
        (own.len() > 1).then(|| Self {
            mean_us: tick_us * by_clock.iter().sum::<f64>() / by_clock.len() as f64,
            own_k: k(&by_own),
            clock_k: k(&by_clock),
        })
    }
}

/// The range of a figure over all loads, and its mean.
fn over_loads(
    context: &Context<'_>,
    loads: &[Vec<Check>],
    unit: &str,
    pick: impl Fn(&Check) -> f64,
) -> ([f64; 2], Option<Estimate>) {
    let of_load =
        |checks: &Vec<Check>| checks.iter().map(&pick).sum::<f64>() / checks.len().max(1) as f64;
    let means: Vec<f64> = loads
        .iter()
        .filter(|c| !c.is_empty())
        .map(of_load)
        .collect();
    let range = (means.iter()).fold([f64::INFINITY, f64::NEG_INFINITY], |[lo, hi], &m| {
        [lo.min(m), hi.max(m)]
    });
    (range, context.mean(means, unit))
}

/// Adds the check of all loads, and of the same machine without interrupts.
pub(super) fn running(context: &mut Context<'_>, machines: &[OfMachine]) -> Result<(), Stopped> {
    let seeds = context.request.seeds() as usize;
    let checks = |machines: &[OfMachine]| -> Vec<Vec<Check>> {
        (machines.chunks(seeds))
            .map(|of| of.iter().filter_map(|m| m.check).collect())
            .collect()
    };
    let mut calm = context.parameters.clone();
    calm.staros.interrupts = None;
    let tick_us = calm.clock.tick_us;
    let all = loads(context, &[0, WORDS[WORDS.len() - 1]]);
    let without = context.run(&all, |pairs| of_machine(&run_of(&calm, pairs), tick_us))?;
    let (with, without) = (checks(machines), checks(&without));
    let mut rows = Vec::new();
    // The paper prints the mean for the experiment as it is.
    for (of, loads, published_k, is_printed) in [
        ("as it is", &with, CHECK_K, true),
        ("without interrupts", &without, CHECK_K_UNDISTURBED, false),
    ] {
        let id = of.replace(' ', "-");
        let ([lo, hi], mean) = over_loads(context, loads, "us", |c| c.mean_us);
        let largest = if -lo > hi { lo } else { hi };
        let nearest = (mean.as_ref())
            .and_then(|mean| Some((mean.interval.lo?, mean.interval.hi?)))
            .map_or(largest, |(lo, hi)| 0.0_f64.clamp(lo, hi));
        let judged = match nearest.abs() <= CHECK_MEAN_US {
            true => (
                Verdict::Agrees,
                format!("agrees: its interval reaches within {CHECK_MEAN_US} us of 0"),
            ),
            false => (
                Verdict::Differs,
                format!("does not agree: no mean was over {CHECK_MEAN_US} us"),
            ),
        };
        let item_of_mean = item(
            format!("check/{id}/mean"),
            format!("mean of nothing by Method II in the experiment, {of}"),
            "us",
            is_printed.then_some(CHECK_MEAN_US),
            mean,
            String::new(),
        );
        let judged = is_printed.then_some(judged);
        let [_, mean] = context.item(judged_item(item_of_mean, judged));
        let mut cells = vec![
            of.to_owned(),
            mean,
            format!("{largest:+.1}"),
            match is_printed {
                true => CHECK_MEAN_US.to_string(),
                false => "–".to_owned(),
            },
        ];
        for (method, pick) in [
            ("I", (|c: &Check| c.own_k) as fn(&Check) -> f64),
            ("II", |c: &Check| c.clock_k),
        ] {
            let ([lo, hi], k) = over_loads(context, loads, "1", pick);
            let (middle, half) = (
                f64::midpoint(published_k[0], published_k[1]),
                (published_k[1] - published_k[0]) / 2.0,
            );
            let judged = (k.as_ref()).map(|k| beside(middle, k, half, ""));
            let factor = item(
                format!("check/{id}/{method}/k"),
                format!("improvement factor of Method {method} in the experiment, {of}"),
                "1",
                Some(middle),
                k,
                String::new(),
            );
            context.item(judged_item(factor, judged));
            cells.push(format!("{lo:.2} to {hi:.2}"));
        }
        cells.push(format!("{} to {}", published_k[0], published_k[1]));
        rows.push(cells);
    }
    context.table(
        "Nothing, measured after each call (Section 5.2)",
        &[
            "The running check of the experiment with messages. The paper prints one range of k and does not \
             say by which pairs; without interrupts means that it left out what they had reached.",
        ],
        &[
            "machine", "mean, us", "largest, us", "published, at most", "k by own pairs",
            "k by the clock process", "published k",
        ],
        rows,
    );
    apart(context)
}

pub(super) fn run_of(parameters: &Parameters, pairs: &MessagePairs) -> PairsRun {
    message_pairs(parameters, pairs).expect("the published Cms are there")
}

/// Every load, each with these numbers of words, on all machines.
pub(super) fn loads(context: &Context<'_>, words: &[u32]) -> Vec<MessagePairs> {
    let seeds = context.request.seeds();
    (1..=LATENCY_US.len())
        .flat_map(|pairs| words.iter().map(move |&words| (pairs, words)))
        .flat_map(|(pairs, words)| {
            (1..=seeds).map(move |seed| MessagePairs {
                seed,
                sample_every_ns: Some(super::messages::SAMPLE_EVERY_NS),
                checks: true,
                ..MessagePairs::new(pairs, words)
            })
        })
        .map(|pairs| MessagePairs {
            repetitions: repetitions(context),
            ..pairs
        })
        .collect()
}

fn repetitions(context: &Context<'_>) -> usize {
    match context.request.run {
        Run::Full => 512,
        Run::Quick => 96,
    }
}

/// Times between the clock process's pairs, ms.
const APART_MS: [f64; 4] = [20.0, 5.0, 1.0, 0.2];

/// What Method II gets wrong, by how far apart the clock process's pairs are.
fn apart(context: &mut Context<'_>) -> Result<(), Stopped> {
    let (parameters, seeds) = (context.parameters, context.request.seeds());
    let repetitions = repetitions(context);
    let all: Vec<MessagePairs> = (APART_MS.iter())
        .flat_map(|ms| (1..=seeds).map(move |seed| (ms, seed)))
        .map(|(ms, seed)| MessagePairs {
            repetitions,
            seed,
            sample_every_ns: Some((ms * 1e6) as u64),
            ..MessagePairs::new(LATENCY_US.len(), 0)
        })
        .collect();
    let machines = context.run(&all, |pairs| {
        of_machine(&run_of(parameters, pairs), parameters.clock.tick_us)
    })?;
    let mut rows = Vec::new();
    for (ms, machines) in APART_MS.iter().zip(machines.chunks(seeds as usize)) {
        let of = |pick: fn(&OfMachine) -> f64| machines.iter().map(pick).collect::<Vec<f64>>();
        let truth = context.mean(of(|m| m.latency.truth_us), "us");
        let off = context.mean(of(|m| m.latency.corrected_us - m.latency.truth_us), "us");
        let [_, off] = context.item(item(
            format!("apart/{ms}/off"),
            format!("latency by Method II less the true one, pairs of readings every {ms} ms"),
            "us",
            None,
            off,
            String::new(),
        ));
        let [_, truth] = context.item(item(
            format!("apart/{ms}/true"),
            format!("true latency, pairs of readings every {ms} ms"),
            "us",
            None,
            truth,
            String::new(),
        ));
        rows.push(vec![ms.to_string(), off, truth]);
    }
    context.table(
        "How far the clock process's pairs may be (3 pairs in each cluster, no words)",
        &[
            "The measured pair is a part of the load. While it reads the clock it sends nothing, so its readings \
             take less than readings at other times. Only a pair of readings close by sees that; one 10 ms away \
             sees the mean of all times, and too much is subtracted. But a process that reads all the time is a \
             load, too.",
        ],
        &["pairs of readings every, ms", "measured less true, us", "true latency, us"],
        rows,
    );
    Ok(())
}

#[cfg(test)]
mod tests;
