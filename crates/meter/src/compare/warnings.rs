//! Warnings about differences that make two sides hard to compare.

use undertick_document::Warning;

use super::input::Input;

pub(super) fn find(a: &Input, b: &Input) -> Vec<Warning> {
    let (of_a, of_b) = (&a.about().host, &b.about().host);
    let mut warnings = Vec::new();
    let mut warn = |code: &str, text: String| {
        warnings.push(Warning {
            code: code.to_owned(),
            text,
        });
    };
    let mut other = |what: &str, a: &str, b: &str| {
        if a != b {
            warn("other_machine", format!("{what}: {a:?} in A, {b:?} in B"));
        }
    };
    other("CPU model", &of_a.cpu_model, &of_b.cpu_model);
    other("clock", &of_a.clock, &of_b.clock);
    other(
        "version of undertick",
        &of_a.tool_version,
        &of_b.tool_version,
    );
    for (which, side) in [("A", a), ("B", b)] {
        if matches!(side, Input::One(one) if one.interrupted) {
            warn(
                "interrupted",
                format!("{which} was interrupted: its figures have fewer repetitions"),
            );
        }
    }
    if a == b {
        let what = match a {
            Input::One(_) => "document",
            Input::Runs(_) => "set of runs",
        };
        warn("same", format!("both are the same {what}"));
    }
    if a.is_one_run() || b.is_one_run() {
        warn(
            "single_runs",
            "these are single runs: the intervals hold what varies within one, and two runs of the very same \
             program differ by more (where its memory lies, how fast its core runs, who else is there). What \
             is called a difference here is one between these two runs; for one between the programs record \
             several of each: undertick compare --runs 10 'COMMAND A' 'COMMAND B'"
                .to_owned(),
        );
    }
    warnings
}
