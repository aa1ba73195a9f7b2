use undertick_document::{PathStates, StateCondition, StateFact, StateReport};
use undertick_units::{Estimate, Interval};

use super::sentence;

fn condition(fact: StateFact, of: &str) -> StateCondition {
    StateCondition {
        fact,
        of: (!of.is_empty()).then(|| of.to_owned()),
        is: None,
        among: Vec::new(),
        from: None,
        below: None,
    }
}

fn state(share: f64, median_ns: f64, conditions: Vec<StateCondition>) -> StateReport {
    StateReport {
        conditions,
        share: estimate(share, 0.01, "1"),
        median: Some(estimate(median_ns, 0.01 * median_ns, "ns")),
        counts: Vec::new(),
    }
}

fn estimate(value: f64, half: f64, unit: &str) -> Estimate {
    Estimate {
        value,
        interval: Interval::new(value - half, value + half),
        level: 0.95,
        unit: unit.to_owned(),
        method: "of the test".to_owned(),
        n: 100,
        n_effective: 100.0,
        notes: Vec::new(),
    }
}

fn told(states: Vec<StateReport>) -> String {
    let states = PathStates {
        path: 0,
        looked_at: 1000,
        explained: 0.62,
        edges_ns: Vec::new(),
        states,
    };
    sentence("\"lookup/step\"", &states).replace('\u{a0}', " ")
}

#[test]
fn two_states_are_one_condition_and_otherwise() {
    let beside = |is| StateCondition {
        is: Some(is),
        ..condition(StateFact::Beside, "compress")
    };
    let text = told(vec![
        state(0.59, 1770.0, vec![beside(true)]),
        state(0.41, 3530.0, vec![beside(false)]),
    ]);
    assert_eq!(
        text,
        "\"lookup/step\" takes 1.77 us beside \"compress\" (59 % of calls), 3.53 us otherwise (41 %); \
         that explains 62 % of its scatter."
    );
}

#[test]
fn the_second_of_two_states_refers_to_the_first() {
    let with = |is| StateCondition {
        is: Some(is),
        ..condition(StateFact::With, "flush")
    };
    let text = told(vec![
        state(0.98, 1160.0, vec![with(false)]),
        state(0.02, 5560.0, vec![with(true)]),
    ]);
    assert_eq!(
        text,
        "\"lookup/step\" takes 1.16 us without \"flush\" (98 % of calls), 5.56 us with it (2.0 %); that \
         explains 62 % of its scatter."
    );
    let after = |name: &str| StateCondition {
        among: vec![name.to_owned()],
        ..condition(StateFact::After, "")
    };
    let text = told(vec![
        state(0.98, 3680.0, vec![after("insert")]),
        state(0.02, 8150.0, vec![after("commit")]),
    ]);
    assert!(text.contains("8.15 us after \"commit\" (2.0 %)"), "{text}");
}

#[test]
fn times_and_numbers_have_their_bounds() {
    let during = |from: Option<f64>, below| StateCondition {
        from,
        below,
        ..condition(StateFact::Time, "")
    };
    let size = StateCondition {
        from: Some(4096.0),
        ..condition(StateFact::Value, "size")
    };
    let text = told(vec![
        state(0.5, 2000.0, vec![during(None, Some(1.25e9))]),
        state(0.4, 1000.0, vec![during(Some(1.25e9), None), size]),
    ]);
    assert_eq!(
        text,
        "\"lookup/step\" takes 2.00 us until 1.250 s (50 % of calls), 1.00 us from 1.250 s on and where \
         \"size\" is 4 096 or more (40 %); that explains 62 % of its scatter."
    );
}

#[test]
fn a_median_without_an_interval_has_two_digits() {
    let with = |is| StateCondition {
        is: Some(is),
        ..condition(StateFact::With, "flush")
    };
    let mut open = state(0.98, 1163.4, vec![with(false)]);
    let median = open.median.as_mut().expect("given");
    median.interval = Interval { lo: None, hi: None };
    let text = told(vec![open, state(0.02, 5560.0, vec![with(true)])]);
    assert!(
        text.starts_with("\"lookup/step\" takes about 1.2 us without \"flush\""),
        "{text}"
    );
}

#[test]
fn names_are_shortened_cleaned_and_counted() {
    let among = |fact, words: &[&str]| StateCondition {
        among: words.iter().map(|&word| word.to_owned()).collect(),
        ..condition(fact, "")
    };
    let text = told(vec![
        state(0.5, 2000.0, vec![among(StateFact::After, &["nothing"])]),
        state(
            0.3,
            1000.0,
            vec![among(
                StateFact::Thread,
                &["a\u{1b}[31m", "b", "c", "d", "e"],
            )],
        ),
    ]);
    assert!(!text.contains('\u{1b}'), "{text:?}");
    assert!(text.contains("as the first in its span"), "{text}");
    assert!(text.contains("or \"b\" or \"c\" or 2 others"), "{text}");
    let many = (0..6).map(|at| {
        let cpu = among(StateFact::Cpu, &[&at.to_string()]);
        state(0.1, 100.0, vec![cpu])
    });
    let text = told(many.collect());
    assert!(text.contains("on CPU 3 (10 %), 2 more states; "), "{text}");
}
