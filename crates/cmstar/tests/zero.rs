//! The paper's eight zero tests: on which side of 1 the improvement k lies, and the error of the
//! mean. The tests use plain sums, and no estimator.

mod support;

use support::{mean, variance};
use undertick_cmstar::load::{MethodOne, MethodTwo, Repetition, ZeroRun, method_one, method_two};
use undertick_cmstar::{Os, Parameters, Reading, Routine};

/// Elapsed time between two readings, us, as the clock shows it.
fn us(pair: &[Reading; 2]) -> f64 {
    2.0 * (pair[1].ticks.unwrap() as f64 - pair[0].ticks.unwrap() as f64)
}

/// Returns k and the mean error over the runs of several seeds, and the error's standard error.
fn figures(runs: &[ZeroRun]) -> (f64, f64, f64) {
    let all: Vec<&Repetition> = runs.iter().flat_map(|run| &run.repetitions).collect();
    let measured: Vec<f64> = all.iter().map(|r| us(&r.measured)).collect();
    let corrected: Vec<f64> = (all.iter())
        .map(|r| us(&r.measured) - (us(&r.before) + us(&r.after)) / 2.0)
        .collect();
    let standard_error = (variance(&corrected) / all.len() as f64).sqrt();
    (
        variance(&measured) / variance(&corrected),
        mean(&corrected),
        standard_error,
    )
}

/// Largest mean error that was published, us, rounded up.
const MOST_ERROR_US: f64 = 7.0;

fn check(name: &str, runs: &[ZeroRun]) {
    let parameters = Parameters::published();
    let published = parameters.figure(name).unwrap().value;
    let (k, error, standard_error) = figures(runs);
    println!("{name}: k {k:.2} ({published}), error {error:+.2} +- {standard_error:.2} us");
    assert_eq!(
        k > 1.0,
        published > 1.0,
        "{name}: k {k}, published {published}"
    );
    // An error with too large a standard error shows nothing.
    assert!(standard_error < MOST_ERROR_US / 3.0, "{standard_error}");
    assert!(error.abs() < MOST_ERROR_US, "{name}: {error} us");
}

fn one(os: Os, routine: Routine, seeds: u64) -> Vec<ZeroRun> {
    let parameters = Parameters::published();
    let test = MethodOne::new(&parameters, os, routine);
    (1..=seeds)
        .map(|seed| method_one(&parameters, &MethodOne { seed, ..test }).unwrap())
        .collect()
}

fn two(os: Os, routine: Routine) -> Vec<ZeroRun> {
    let parameters = Parameters::published();
    let test = MethodTwo::new(&parameters, os, routine);
    let runs: Vec<ZeroRun> = (1..=5)
        .map(|seed| method_two(&parameters, &MethodTwo { seed, ..test }).unwrap())
        .collect();
    assert!(runs.iter().all(|run| run.repetitions.len() == 1_000));
    runs
}

#[test]
#[ignore = "long: cargo xtask test --all"]
fn method_one_staros_4_read() {
    check("k_one_staros_4_read", &one(Os::StarOs, Routine::Four, 6));
}

#[test]
fn method_one_staros_1_read() {
    check("k_one_staros_1_read", &one(Os::StarOs, Routine::One, 1));
}

#[test]
fn method_one_medusa_4_read() {
    check("k_one_medusa_4_read", &one(Os::Medusa, Routine::Four, 2));
}

#[test]
fn method_one_medusa_1_read() {
    check("k_one_medusa_1_read", &one(Os::Medusa, Routine::One, 1));
}

#[test]
fn method_two_staros_4_read() {
    check("k_two_staros_4_read", &two(Os::StarOs, Routine::Four));
}

#[test]
fn method_two_staros_1_read() {
    check("k_two_staros_1_read", &two(Os::StarOs, Routine::One));
}

#[test]
fn method_two_medusa_4_read() {
    check("k_two_medusa_4_read", &two(Os::Medusa, Routine::Four));
}

#[test]
fn method_two_medusa_1_read() {
    check("k_two_medusa_1_read", &two(Os::Medusa, Routine::One));
}

/// The use of a truth beside each reading: nothing was measured, and the true interval between the
/// two samplings is all that the clock showed, to a tick.
#[test]
fn the_clock_shows_the_true_time_between_samplings() {
    for run in [
        one(Os::StarOs, Routine::Four, 1),
        two(Os::Medusa, Routine::One),
    ] {
        for repetition in run.iter().flat_map(|run| &run.repetitions) {
            for pair in [&repetition.before, &repetition.measured, &repetition.after] {
                let truth = pair[1].sampled.ns_since(pair[0].sampled) as f64 / 1e3;
                assert!((us(pair) - truth).abs() < 2.0, "{pair:?}");
            }
        }
    }
}
