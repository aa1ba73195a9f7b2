//! The running-out of a quantum: what the memo prints, and a real one here.

use undertick_report::reproduce::{Reproduction, Table};
use undertick_units::Estimate;

use super::{Here, missing};
use crate::compared::{ItemDescription, Published, cell, item, published, times};
use crate::tables::words;

/// The script under a policy.
struct Policy {
    id: &'static str,
    script: &'static str,
    /// As the key of a script.
    policy: &'static str,
    words: &'static str,
    /// Duration of a step, and number of passes. A quantum of the default policy is some
    /// milliseconds long, and one of `SCHED_RR` 100 ms.
    step: &'static str,
    passes: u32,
}

const POLICIES: [Policy; 2] = [
    Policy {
        id: "default",
        script: "quantum-default",
        policy: "other",
        words: "the default policy",
        step: "1us",
        passes: 15_000,
    },
    Policy {
        id: "rr",
        script: "quantum-rr",
        policy: "rr",
        words: "the policy rr",
        step: "2us",
        passes: 30_000,
    },
];

/// The memo's figures: the process itself is chosen as successor.
const PRINTED: [(&str, Published); 2] = [
    ("A", published(1454.0, "1454")),
    ("B", published(1511.0, "1511")),
];

/// Two processes that compute on one CPU, in steps of one length.
pub(super) fn scripts(repetitions: u32) -> impl Iterator<Item = (String, String)> {
    POLICIES.iter().map(move |of| {
        let mut text = format!(
            "title = \"The quantum runs out\"\nrepetitions = {repetitions}\npasses = {}\nwarm_up = 10\n\
             policy = {:?}\ntimeout = \"30s\"\n",
            of.passes, of.policy
        );
        for (name, place) in [("A", ""), ("B", "place = \"same cpu as A\"\n")] {
            text.push_str(&format!("[[process]]\nname = {name:?}\n{place}"));
            for _ in 0..8 {
                text.push_str(&format!("[[process.step]]\nwork = {:?}\n", of.step));
            }
        }
        (of.script.to_owned(), text)
    })
}

pub(super) fn add(found: &mut Reproduction, here: Here<'_>) {
    let mut rows = Vec::new();
    for of in &POLICIES {
        for (process, printed) in PRINTED {
            let run_out = (here.run_outs.iter())
                .find(|r| r.script == of.script && r.run_out.process == process)
                .map(|r| &r.run_out);
            let switch = run_out.and_then(|r| r.switch.as_ref());
            let length = run_out.and_then(|r| r.quantum.as_ref());
            let n = run_out.map_or(0, |r| r.count);
            let missing = match n {
                0 => missing(here.figures, of.script, &[]),
                _ => format!("not measured: {n} times is too few"),
            };
            let run_out = item(
                ItemDescription {
                    id: format!("traffic/quantum/run-out/{}/{process}", of.id),
                    quantity: format!("the quantum of {process} runs out, {}", of.words),
                    unit: "us",
                    published: Some(printed),
                    formula: None,
                    note: format!(
                        "published with the process itself as successor; here the other process is, because a process \
                         that is alone on its CPU is not taken from it; {n} times"
                    ),
                },
                switch,
                &missing,
            );
            let quantum = item(
                ItemDescription {
                    id: format!("traffic/quantum/length/{}/{process}", of.id),
                    quantity: format!("length of a quantum of {process}, {}", of.words),
                    unit: "ms",
                    published: None,
                    formula: None,
                    note: "not published".to_owned(),
                },
                length,
                &missing,
            );
            rows.push(vec![
                of.words.to_owned(),
                process.to_owned(),
                printed.printed.to_owned(),
                cell(switch),
                times(run_out.ratio),
                cell(length),
                n.to_string(),
            ]);
            found.items.extend([run_out, quantum]);
        }
    }
    let yielded = [
        (
            "yield-oneself",
            "offer the CPU, with no other process to take it",
            "calls",
            "call sched_yield",
            "one sched_yield",
        ),
        (
            "yield-another",
            "offer the CPU to another that takes it, and get it back",
            "yield",
            "yield to another",
            "two sched_yield, two switches",
        ),
    ];
    for (id, quantity, script, name, note) in yielded {
        let measured: Option<&Estimate> = here.figures.typical(script, &[], name);
        let description = ItemDescription {
            id: format!("traffic/quantum/{id}"),
            quantity: quantity.to_owned(),
            unit: "us",
            published: None,
            formula: None,
            note: format!("{note}; not published"),
        };
        found.items.push(item(
            description,
            measured,
            &missing(here.figures, script, &[]),
        ));
    }
    found.tables.push(Table {
        title: "The quantum runs out".to_owned(),
        text: vec![
            "Two processes compute on one CPU. The time is from where the one stops until the other goes on: the \
             timer's interrupt, the scheduler and the switch. Published, us: with the process itself as successor."
                .to_owned(),
        ],
        columns: words(&["policy", "process", "published, us", "switch", "times", "quantum", "n"]),
        rows,
    });
}
