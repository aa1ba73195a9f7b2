//! Zero tests under other loads than ours, the four whose k is not that of the paper: how many processes
//! worked, and for how much of a test, is not printed.

use undertick_cmstar::{Os, Parameters, Routine};
use undertick_estimate::compensation::{Correction, Paired};
use undertick_experiment::jobs::Stopped;

use super::pairs::{of_repetition, standard_deviation};
use super::published::{ZERO_TESTS, ZeroTest};
use super::zero::{K_SCATTER, name, repetitions};
use super::{Context, item, number};

/// A load of a zero test.
struct Load {
    test: &'static ZeroTest,
    what: String,
    /// The same in ids.
    id: String,
    parameters: Parameters,
}

/// Machines of each load; more would take minutes.
const MACHINES: u64 = 3;
/// Numbers of Cms that read.
const READERS: [usize; 5] = [4, 8, 16, 24, 28];
/// For how much of a test the load begins and ends.
const RAMPS: [f64; 4] = [0.0, 0.005, 0.05, 0.2];
/// Pairs in each cluster that exchange messages, and words of a message.
const PAIRS: [(usize, u32); 5] = [(2, 0), (2, 200), (3, 0), (3, 50), (3, 200)];

fn loads(parameters: &Parameters) -> Vec<Load> {
    let test = |method: u8, os: Os, routine: Routine| {
        (ZERO_TESTS.iter())
            .find(|test| (test.method, test.os, test.routine) == (method, os, routine))
            .expect("it is printed")
    };
    let mut all = Vec::new();
    for os in [Os::Medusa, Os::StarOs] {
        for readers in READERS {
            let mut parameters = parameters.clone();
            parameters.workload.method_one_readers = readers;
            all.push(Load {
                test: test(1, os, Routine::One),
                what: format!("{readers} Cms"),
                id: format!("{readers}-cms"),
                parameters,
            });
        }
    }
    for routine in [Routine::One, Routine::Four] {
        for share in RAMPS {
            let mut parameters = parameters.clone();
            let work = &mut parameters.workload;
            work.method_one_ramp_ms = share / 2.0 * work.method_one_ms;
            all.push(Load {
                test: test(1, Os::StarOs, routine),
                what: format!("beginning and ending in {:.1} % of the test", 100.0 * share),
                id: format!("ramps-{share}"),
                parameters,
            });
        }
    }
    for (pairs, words) in PAIRS {
        let mut parameters = parameters.clone();
        parameters.workload.method_two_pairs = pairs;
        parameters.workload.method_two_words = words;
        all.push(Load {
            test: test(2, Os::StarOs, Routine::Four),
            what: format!("{pairs} pairs in each cluster, {words} words"),
            id: format!("{pairs}-pairs-{words}-words"),
            parameters,
        });
    }
    all
}

/// Mean of nothing, us, and k, by the published pairs.
fn corrected(repetitions: &[Paired], tick_us: f64) -> [f64; 2] {
    let before: Vec<f64> = repetitions.iter().map(|s| s.tm).collect();
    let pairs = Correction::pairs();
    let after: Vec<f64> = repetitions.iter().map(|s| pairs.apply(s)).collect();
    [
        tick_us * after.iter().sum::<f64>() / after.len() as f64,
        (standard_deviation(&before) / standard_deviation(&after)).powi(2),
    ]
}

pub(super) fn of_zero_tests(context: &mut Context<'_>) -> Result<(), Stopped> {
    let tick_us = context.parameters.clock.tick_us;
    let loads = loads(context.parameters);
    let machines = context.request.seeds().min(MACHINES);
    let all: Vec<(&Load, u64)> = (loads.iter())
        .flat_map(|load| (1..=machines).map(move |seed| (load, seed)))
        .collect();
    let found = context.run(&all, |(load, seed)| {
        let all = repetitions(&load.parameters, load.test, *seed);
        let pairs: Vec<Paired> = all.iter().filter_map(of_repetition).collect();
        corrected(&pairs, tick_us)
    })?;
    let (mut rows, mut ks) = (Vec::new(), Vec::new());
    for (load, of) in loads.iter().zip(found.chunks(machines as usize)) {
        let mean = context.mean(of.iter().map(|[mean, _]| *mean).collect(), "us");
        let k = context.mean(of.iter().map(|[_, k]| *k).collect(), "1");
        let id = format!("load/{}/{}", load.test.id(), load.id);
        ks.extend(k.as_ref().map(|k| (load, k.value)));
        let mut row = vec![name(load.test), load.what.clone()];
        for (figure, unit, printed, estimate) in [
            ("mean", "us", load.test.mean_us, mean),
            ("k", "1", Some(load.test.k), k),
        ] {
            let [_, cell] = context.item(item(
                format!("{id}/{figure}"),
                format!(
                    "{figure} of the zero test by {}, {}",
                    name(load.test),
                    load.what
                ),
                unit,
                None,
                estimate,
                String::new(),
            ));
            row.extend([printed.map_or_else(|| "–".to_owned(), number), cell]);
        }
        rows.push(row);
    }
    for of in ks.chunk_by(|(one, _), (other, _)| one.test == other.test) {
        context.found.findings.push(finding(of));
    }
    context.table(
        "Four zero tests by their load",
        &[
            "How many processes made the load of a zero test, and for how much of the test, is not printed. By the \
             published pairs, whatever the test would choose.",
        ],
        &["test", "load", "published mean, us", "mean, us", "published k", "k"],
        rows,
    );
    Ok(())
}

/// Which loads of a test give the published k.
fn finding(of: &[(&Load, f64)]) -> String {
    let test = of[0].0.test;
    let ks = || of.iter().map(|(_, k)| *k);
    let (min, max) = (ks().fold(f64::INFINITY, f64::min), ks().fold(0.0, f64::max));
    let near: Vec<String> = (of.iter())
        .filter(|(_, k)| (k / test.k - 1.0).abs() <= K_SCATTER)
        .map(|(load, k)| format!("{} ({k:.2})", load.what))
        .collect();
    let verdict = match near.is_empty() {
        true => "none of them gives it".to_owned(),
        false => format!("it comes out with {}", near.join("; ")),
    };
    format!(
        "{}: k is {min:.2} to {max:.2} by the load, which is not printed, for the published {}; {verdict}.",
        name(test),
        test.k
    )
}
