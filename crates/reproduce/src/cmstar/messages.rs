//! How well Method II measures the latency of messages and the time of remote calls of Section 5, whose
//! truth the simulation knows. Figures 16 and 17 themselves are those of the script ([`super::script`]).

use undertick_cmstar::load::PairsRun;
use undertick_estimate::Numbers;
use undertick_estimate::compensation::Correction;

use super::checks::Check;
use super::pairs::of_clock_process;
use super::published::{LATENCY_US, WORDS};
use super::{Context, item};
use undertick_experiment::jobs::Stopped;

/// Time between two pairs of readings of the clock process, ns: it reads nearly all the time, so that
/// a pair is never far from a reading ([`super::checks`] shows what becomes of pairs that are).
pub(super) const SAMPLE_EVERY_NS: u64 = 200_000;

/// The true and the measured time of a call, us.
#[derive(Clone, Copy)]
pub(super) struct Times {
    pub(super) truth_us: f64,
    /// Less the nearest pairs of the clock process (Method II).
    pub(super) corrected_us: f64,
}

/// Mean latency and mean duration of a call on one machine.
pub(super) struct OfMachine {
    pub(super) latency: Times,
    call: Times,
    pub(super) check: Option<Check>,
}

pub(super) fn messages(context: &mut Context<'_>) -> Result<(), Stopped> {
    let (parameters, seeds) = (context.parameters, context.request.seeds());
    let all = super::checks::loads(context, &WORDS);
    let tick_us = parameters.clock.tick_us;
    let machines = context.run(&all, |pairs| {
        of_machine(&super::checks::run_of(parameters, pairs), tick_us)
    })?;
    let mut rows = Vec::new();
    let each = (1..=LATENCY_US.len()).flat_map(|pairs| WORDS.map(|words| (pairs, words)));
    for ((pairs, words), machines) in each.zip(machines.chunks(seeds as usize)) {
        let mut cells = vec![pairs.to_string(), words.to_string()];
        for name in ["latency", "call"] {
            let times = |of: &OfMachine| match name {
                "latency" => of.latency,
                _ => of.call,
            };
            let of = |pick: fn(Times) -> f64| machines.iter().map(|m| pick(times(m))).collect();
            let off = context.mean(of(|t| t.corrected_us - t.truth_us), "us");
            let truth = context.mean(of(|t| t.truth_us), "us");
            let [_, off] = context.item(item(
                format!("method-ii/{name}/{pairs}/{words}"),
                format!("{name} by Method II less the true one, {pairs} pairs, {words} words"),
                "us",
                None,
                off,
                String::new(),
            ));
            cells.push(truth.map_or_else(|| "–".to_owned(), |t| format!("{:.0}", t.value)));
            cells.push(off);
        }
        rows.push(cells);
    }
    context.table(
        "Messages and remote calls by Method II (StarOS)",
        &[
            "The load of the experiment with a clock process beside the measured pair, by whose pairs of readings the \
             simulated clock's times are corrected.",
        ],
        &["pairs", "words", "true latency, us", "measured less true", "true call, us", "measured less true"],
        rows,
    );
    super::checks::running(context, &machines)
}

pub(super) fn of_machine(run: &PairsRun, tick_us: f64) -> OfMachine {
    let mean =
        |values: Vec<f64>| (Numbers::new(values).mean(0.95)).map_or(f64::NAN, |mean| mean.value);
    // The latency is meaningful only if the server was waiting.
    let times = |truth: &dyn Fn(&undertick_cmstar::load::Call) -> i64, ends: [usize; 2]| {
        let calls = || {
            run.calls
                .iter()
                .filter(|call| ends[1] == 2 || call.server_was_blocked)
        };
        let measured: Vec<f64> = calls()
            .filter_map(|call| {
                let readings = call.readings?;
                of_clock_process(&readings[ends[0]], &readings[ends[1]], &run.samples)
            })
            .map(|sample| Correction::pairs().apply(&sample) * tick_us)
            .collect();
        Times {
            truth_us: mean(calls().map(|call| truth(call) as f64 / 1e3).collect()),
            corrected_us: mean(measured),
        }
    };
    OfMachine {
        latency: times(&|call| call.latency_ns(), [0, 1]),
        call: times(&|call| call.call_ns(), [0, 2]),
        check: Check::from_run(run, tick_us),
    }
}
