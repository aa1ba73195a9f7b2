//! Does 95 % mean 95 %? This runs the coverage tests of `estimate` with more repetitions.

use crate::run::{self, line};

/// Number of repetitions of each case; the tests have 2000.
const REPETITIONS: &str = "10000";

/// Prints the table; fails outside the bounds of the tests, which hold here too.
pub fn measure() -> Result<(), String> {
    println!("\ncoverage of 95 % intervals, {REPETITIONS} repetitions (target: 93.5 to 96.5 %)");
    let mut tests = line(
        "cargo test --release --locked -p undertick-estimate --test all -- --nocapture \
         coverage_of_numbers:: coverage_of_runs:: coverage_of_lines::",
        &[],
    );
    tests.env("UNDERTICK_REPETITIONS", REPETITIONS);
    run::run(tests)
}
