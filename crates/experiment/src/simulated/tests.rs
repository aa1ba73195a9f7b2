//! Tests of scripts on the simulated machine, against the truth that it records.

use std::collections::HashMap;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use undertick_cmstar::Os;
use undertick_format::read::Trace;
use undertick_format::schema;
use undertick_record::synthetic::{self, TRUTH_FILE};

use super::Simulated;
use crate::{Ended, Experiment, ExperimentProgress, Machine as _, Options, Outcome, Why, perform};

const TICK_NS: i64 = 2000;

fn experiment(text: &str) -> Experiment {
    match Experiment::new([("s".to_owned(), text.to_owned())]) {
        Ok(experiment) => experiment,
        Err((_, bad)) => panic!("{bad}"),
    }
}

fn performed(text: &str, os: Os, trace: &Path) -> Outcome {
    let options = Options {
        cull: None,
        confidence: 0.95,
    };
    let machine = Simulated::published(os);
    perform(&experiment(text), &machine, trace, options, &mut |_| {}).expect("it runs")
}

/// A message to the other process and back.
const MESSAGES: &str = r#"
passes = 40
warm_up = 3
repetitions = 3
[channel.there]
kind = "pipe"
[channel.back]
kind = "pipe"
[[process]]
name = "client"
[[process.step]]
send = "there"
words = 10
[[process.step]]
receive = "back"
[[process]]
name = "server"
start = "blocked"
[[process.step]]
access = 10
[[process.step]]
send = "back"
[[process.step]]
receive = "there"
[[interval]]
name = "round trip"
from = "client.send"
to = "client.receive"
"#;

/// The reading of every record, and its true time: ring, event and payload, ticks, ns.
fn rows(trace: &Path) -> Vec<(i32, i32, i64, i64, i64)> {
    let read = Trace::open(trace).unwrap();
    let mut rows = Vec::new();
    for batch in read.batches() {
        let batch = batch.unwrap();
        let ring = batch.column(schema::RING).as_primitive::<Int32Type>();
        let event = batch.column(schema::EVENT).as_primitive::<Int32Type>();
        let payload = batch.column(schema::PAYLOAD).as_primitive::<Int64Type>();
        let ts = batch.column(schema::TS).as_primitive::<Int64Type>();
        for i in 0..batch.num_rows() {
            rows.push((
                ring.value(i),
                event.value(i),
                payload.value(i),
                ts.value(i),
                0,
            ));
        }
    }
    let truth = synthetic::truth(trace)
        .unwrap()
        .expect("a simulated machine knows it");
    assert_eq!(truth.len(), rows.len(), "a true time for each");
    for (row, truth) in rows.iter_mut().zip(truth) {
        assert_eq!((row.0, row.3), (truth.ring, truth.ts), "the same reading");
        row.4 = truth.true_ns;
    }
    rows
}

#[test]
fn what_is_read_is_the_true_time_to_a_tick() {
    for os in [Os::StarOs, Os::Medusa] {
        let dir = tempfile::tempdir().unwrap();
        let trace = dir.path().join("t.ut");
        let outcome = performed(MESSAGES, os, &trace);
        assert!(outcome.is_complete());
        let rows = rows(&trace);
        assert!(rows.len() > 3 * 40 * 8, "{}", rows.len());
        for (_, _, _, ticks, true_ns) in rows {
            assert_eq!(ticks, true_ns.div_euclid(TICK_NS));
        }
    }
}

/// The stated interval of each step contains the mean of the true times, with the null step taken
/// off as the analysis does.
#[test]
fn figures_are_those_of_the_true_times() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("t.ut");
    let text = MESSAGES.replace("repetitions = 3", "repetitions = 12");
    let outcome = performed(&text, Os::StarOs, &trace);
    // True durations of spans, by the event that begins them.
    let mut lengths: HashMap<i64, Vec<f64>> = HashMap::new();
    let mut open: HashMap<i32, (i64, i64)> = HashMap::new();
    for (ring, event, payload, _, true_ns) in rows(&trace) {
        if let Some((begun, since)) = open.insert(ring, (payload, true_ns)) {
            assert_eq!(begun, i64::from(event), "the section that is open ends");
            let of = lengths.entry(begun).or_default();
            of.push((true_ns - since) as f64);
        }
    }
    let names = Trace::open(&trace).unwrap().manifest.names;
    let mean_of = |what: &str| {
        let events = names.iter().filter(|n| n.name.ends_with(what));
        let means: Vec<f64> = events
            .filter_map(|n| lengths.get(&i64::from(n.event)))
            .map(|all| all.iter().sum::<f64>() / all.len() as f64)
            .collect();
        assert_eq!(means.len(), 12, "{what}");
        means.iter().sum::<f64>() / 12.0
    };
    for (process, step) in [
        ("client", "send there"),
        ("client", "receive back"),
        ("server", "access"),
        ("server", "send back"),
    ] {
        let null = f64::midpoint(
            mean_of(&format!("{process}.null before")),
            mean_of(&format!("{process}.null after")),
        );
        let truth = mean_of(&format!("{process}.{step}")) - null;
        let interval = outcome.report.intervals.iter().find(|i| {
            let of = i.repeated.as_ref().map(|r| r.process.as_str());
            i.name == step && of == Some(process)
        });
        let mean = interval.and_then(|i| i.mean.as_ref()).expect(step);
        let half = mean.interval.half_width().unwrap();
        // It is the figure of the median repetition, not the mean of all, so within three
        // half-widths.
        assert!(
            (mean.value - truth).abs() < 3.0 * half,
            "{process}.{step}: {mean:?}, true {truth}"
        );
        assert!(
            half < 0.1 * truth.abs().max(1e5),
            "{step}: {half} of {truth}"
        );
    }
}

#[test]
fn the_same_on_one_cpu_and_on_all() {
    let dir = tempfile::tempdir().unwrap();
    let run = |name: &str| {
        let trace = dir.path().join(name);
        performed(MESSAGES, Os::StarOs, &trace);
        (
            std::fs::read(trace.join("events.parquet")).unwrap(),
            std::fs::read(trace.join(TRUTH_FILE)).unwrap(),
        )
    };
    let all = run("all.ut");
    let one = std::thread::scope(|scope| {
        let on_one = scope.spawn(|| {
            undertick_clock::cpus::pin(undertick_clock::cpus::allowed()[0]).unwrap();
            run("one.ut")
        });
        on_one.join().unwrap()
    });
    assert!(all == one, "bit for bit");
    assert!(all == run("again.ut"), "again");
}

#[test]
fn who_waits_for_each_other_is_told_at_once() {
    let text = r#"
passes = 5
warm_up = 0
repetitions = 1
timeout = "60s"
backend = "futex"
[[process]]
name = "A"
[[process.step]]
block = true
[[process.step]]
wakeup = "B"
[[process]]
name = "B"
[[process.step]]
block = true
[[process.step]]
wakeup = "A"
"#;
    let dir = tempfile::tempdir().unwrap();
    let machine = Simulated::published(Os::Medusa);
    let done = machine
        .perform(
            &experiment(text),
            &dir.path().join("t.ut"),
            &mut |_: ExperimentProgress| {},
        )
        .unwrap();
    let Ended::Failed(why) = &done.repetitions[0].ended else {
        panic!("{:?}", done.repetitions[0].ended);
    };
    for word in ["A is in step 1", "B is in step 1", "blocked"] {
        assert!(why.contains(word), "{word}: {why}");
    }
}

/// Scripts that ship: each runs, or reports what the machine lacks.
#[test]
fn the_scripts_that_ship() {
    let shipped = [
        (
            "traffic-controller",
            include_str!("../../../../experiments/traffic-controller.toml"),
            "",
        ),
        (
            "round-trip",
            include_str!("../../../../experiments/round-trip.toml"),
            "",
        ),
        (
            "locks",
            include_str!("../../../../experiments/locks.toml"),
            "",
        ),
        (
            "injection",
            include_str!("../../../../experiments/injection.toml"),
            "",
        ),
        (
            "fork",
            include_str!("../../../../experiments/fork.toml"),
            "memory that is mapped",
        ),
        (
            "clocks",
            include_str!("../../../../experiments/clocks.toml"),
            "clocks of Linux",
        ),
    ];
    for (name, text, lacking) in shipped {
        let dir = tempfile::tempdir().unwrap();
        let experiment = experiment(text);
        let machine = Simulated::published(Os::Medusa);
        let done = machine
            .perform(
                &experiment,
                &dir.path().join("t.ut"),
                &mut |_: ExperimentProgress| {},
            )
            .unwrap();
        assert_eq!(done.repetitions.len(), experiment.order().len());
        for repetition in &done.repetitions {
            match &repetition.ended {
                Ended::Done => assert_eq!(lacking, "", "{name}"),
                Ended::Lacking(what) => {
                    assert!(
                        !lacking.is_empty() && what.contains(lacking),
                        "{name}: {what}"
                    );
                }
                other => panic!("{name}: {other:?}"),
            }
        }
    }
}

#[test]
fn machines_by_their_names() {
    assert_eq!(Simulated::named("cmstar").unwrap().os, Os::StarOs);
    assert_eq!(Simulated::named("cmstar:medusa").unwrap().os, Os::Medusa);
    let none = Simulated::named("moon").unwrap_err();
    assert!(
        none.why == Why::Input && none.text.contains("cmstar:medusa"),
        "{none}"
    );
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("own.toml");
    let own = undertick_cmstar::Parameters::published_text().replace("tick_us = 2", "tick_us = 50");
    std::fs::write(&file, own).unwrap();
    let named = Simulated::named(&format!("{}:medusa", file.display())).unwrap();
    assert_eq!(
        (named.os, named.parameters.clock.tick_us),
        (Os::Medusa, 50.0)
    );
    std::fs::write(&file, "nonsense = 1").unwrap();
    let bad = Simulated::named(&file.display().to_string()).unwrap_err();
    assert!(
        bad.why == Why::Input && bad.text.contains("own.toml"),
        "{bad}"
    );
}
