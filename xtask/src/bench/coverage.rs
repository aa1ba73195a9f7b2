//! Does 95 % mean 95 %? The coverage tests of `estimate` with more repetitions.

use crate::run::{self, command};

/// Repetitions of each case; the tests have 2000.
const REPETITIONS: &str = "10000";

/// Prints the table; the tests' own bounds hold here too, so it fails outside them.
pub fn measure() -> Result<(), String> {
    println!("\ncoverage of 95 % intervals, {REPETITIONS} repetitions (target: 93.5 to 96.5 %)");
    let mut tests = command(&[
        "cargo",
        "test",
        "--release",
        "--locked",
        "-p",
        "undertick-estimate",
        "--test",
        "coverage_of_numbers",
        "--test",
        "coverage_of_runs",
        "--test",
        "coverage_of_lines",
        "--",
        "--nocapture",
    ]);
    tests.env("UNDERTICK_REPETITIONS", REPETITIONS);
    run::run(tests)
}
