//! Good scripts give exactly the plans that they ask for, with plans by hand.

mod sweeps;
mod verbs;

use std::time::Duration;

use undertick_experiment::script::{
    Backend, Between, Channel, ChannelKind, Length, Line, Lock, LockKind, Pages, Placement, Plan,
    Point, Policy, Process, RecordKind, Region, RegionKind, Script, Stamps, Step, Timed, Verb,
};

fn process(name: &str, steps: Vec<Step>) -> Process {
    Process {
        name: name.to_owned(),
        is_thread: false,
        starts_blocked: false,
        place: Placement::Any,
        replicas: 1,
        measured: true,
        every: None,
        after: None,
        background: false,
        steps,
        loop_to: 0,
        pass: String::new(),
        includes: String::new(),
    }
}

fn step(number: u32, name: &str, verb: Verb, line: usize) -> Step {
    Step {
        number,
        name: name.to_owned(),
        verb,
        timed: true,
        line,
        includes: String::new(),
    }
}

fn plan(processes: Vec<Process>) -> Plan {
    Plan {
        length: Length::Seconds(0.2),
        warm_up: 20,
        timeout: Duration::from_secs(10),
        settle: Duration::from_micros(50),
        stamps: Stamps::Between,
        control: None,
        policies: vec![Policy::Other],
        locks: vec![],
        channels: vec![],
        regions: vec![],
        processes,
        intervals: vec![],
        lines: vec![],
    }
}

/// A line, and what times include, by hand.
#[test]
fn lines_and_what_is_included() {
    let text = "[sweep]\nn = [1, 2]\nsize = [\"4KiB\", \"1MiB\"]\n[region.r]\nbytes = \"$size\"\n\
        [[process]]\nname = \"A\"\npass = \"all\"\nincludes = \"both\"\n\
        [[process.step]]\ntouch = \"r\"\nincludes = \"$n pages\"\n[[process.step]]\nturns = \"$n\"\n\
        [[process.step]]\nrecord = \"pair\"\n\
        [[interval]]\nname = \"i\"\nfrom = \"A.touch\"\nto = \"A.turns\"\nincludes = \"two\"\n\
        [[line]]\nname = \"step\"\nof = \"A.touch\"\nagainst = \"size\"\nper = 1024\n\
        [[line]]\nname = \"pass\"\nof = \"all\"\nagainst = \"n\"\nincludes = \"x\"\n\
        [[line]]\nname = \"interval\"\nof = \"i\"\nagainst = \"n\"\n";
    let script = Script::parse(text).unwrap();
    let plan = &script.settings[3].plan;
    assert_eq!(plan.processes[0].pass, "all");
    assert_eq!(plan.processes[0].includes, "both");
    assert_eq!(plan.processes[0].steps[0].includes, "2 pages");
    assert_eq!(plan.processes[0].steps[1].verb, Verb::Turns { turns: 2 });
    assert_eq!(
        plan.processes[0].steps[2].verb,
        Verb::Record(RecordKind::Pair)
    );
    assert_eq!(plan.processes[0].steps[2].name, "record pair");
    assert_eq!(plan.intervals[0].includes, "two");
    let line = |name: &str, of, against: &str, x, per, includes: &str| Line {
        name: name.to_owned(),
        of,
        against: against.to_owned(),
        x,
        per,
        includes: includes.to_owned(),
    };
    let step = Timed::Step {
        process: 0,
        step: 0,
    };
    assert_eq!(
        plan.lines,
        [
            line("step", step, "size", 1_048_576.0, 1024.0, ""),
            line("pass", Timed::Pass(0), "n", 2.0, 1.0, "x"),
            line("interval", Timed::Between(0), "n", 2.0, 1.0, ""),
        ]
    );
}

fn one(text: &str) -> Plan {
    let mut script = Script::parse(text).unwrap();
    assert_eq!(script.settings.len(), 1);
    let setting = script.settings.remove(0);
    assert!(setting.parameters.is_empty());
    setting.plan
}

#[test]
fn the_least_script() {
    let text = "[[process]]\nname = \"A\"\n[[process.step]]\nnull = true\n";
    let script = Script::parse(text).unwrap();
    assert_eq!(script.title, "");
    assert_eq!((script.repetitions, script.seed), (8, 1));
    let steps = vec![step(1, "null", Verb::Null, 4)];
    assert_eq!(one(text), plan(vec![process("A", steps)]));
}

#[test]
fn everything_that_can_be_set() {
    let text = r#"
title = "all"
passes = 1000
warm_up = 100
repetitions = 3
seed = 18446744073709551615
timeout = "2.5s"
settle = "0us"
stamps = "around"
backend = "eventfd"
policy = "rr else batch else other"
[lock.m]
kind = "mcs"

[channel.c]
kind = "queue"

[region.small]
bytes = "33KB"

[region.large]
bytes = 1_048_576
kind = "memfd"
pages = "2MiB"
ready = false

[[process]]
name = "A"
as = "thread"
start = "blocked"
place = "other core than B"
replicas = 2
every = "10ms"
after = "100ms"
[[process.step]]
number = 3
name = "hand over"
wakeup = "B"
[[process.step]]
block = true
timed = false
[[process.step]]
number = 11
send = "c"
words = 7
[[process.step]]
number = 20
go_to = 4

[[process]]
name = "B"
place = "cpus 0,2-3"
replicas = 2
measured = false
[[process.step]]
wakeup = "A"
[[process.step]]
receive = "c"
[[process.step]]
block = true

[[process]]
name = "C"
background = true
[[process.step]]
yield = true
"#;
    let script = Script::parse(text).unwrap();
    assert_eq!(script.title, "all");
    assert_eq!((script.repetitions, script.seed), (3, u64::MAX));
    let a = Process {
        is_thread: true,
        starts_blocked: true,
        place: Placement::OtherCore(1),
        replicas: 2,
        every: Some(Duration::from_millis(10)),
        after: Some(Duration::from_millis(100)),
        loop_to: 1,
        ..process(
            "A",
            vec![
                step(3, "hand over", Verb::Wakeup { process: 1 }, 38),
                Step {
                    timed: false,
                    ..step(4, "block", Verb::Block, 40)
                },
                step(
                    11,
                    "send c",
                    Verb::Send {
                        channel: 0,
                        words: 7,
                    },
                    44,
                ),
            ],
        )
    };
    let b = Process {
        place: Placement::Cpus(vec![0, 2, 3]),
        replicas: 2,
        measured: false,
        ..process(
            "B",
            vec![
                step(1, "wakeup A", Verb::Wakeup { process: 0 }, 56),
                step(2, "receive c", Verb::Receive { channel: 0 }, 58),
                step(3, "block", Verb::Block, 60),
            ],
        )
    };
    let c = Process {
        measured: false,
        background: true,
        ..process("C", vec![step(1, "yield", Verb::Yield, 66)])
    };
    let wanted = Plan {
        length: Length::Passes(1000),
        warm_up: 100,
        timeout: Duration::from_millis(2500),
        settle: Duration::ZERO,
        stamps: Stamps::Around,
        control: Some(Backend::Eventfd),
        policies: vec![Policy::Rr, Policy::Batch, Policy::Other],
        locks: vec![Lock {
            name: "m".to_owned(),
            kind: LockKind::Mcs,
        }],
        channels: vec![Channel {
            name: "c".to_owned(),
            kind: ChannelKind::Queue,
        }],
        regions: vec![
            Region {
                name: "small".to_owned(),
                bytes: 33_792,
                kind: RegionKind::Private,
                pages: Pages::Default,
                ready: true,
            },
            Region {
                name: "large".to_owned(),
                bytes: 1_048_576,
                kind: RegionKind::Memfd,
                pages: Pages::Huge,
                ready: false,
            },
        ],
        ..plan(vec![a, b, c])
    };
    assert_eq!(script.settings[0].plan, wanted);
}

#[test]
fn places() {
    let place = |words: &str| {
        let text = format!(
            "[[process]]\nname = \"A\"\n[[process.step]]\nnull = true\n[[process]]\nname = \"a b\"\nplace = \"{words}\"\n[[process.step]]\nnull = true\n"
        );
        one(&text).processes.remove(1).place
    };
    assert_eq!(place("any"), Placement::Any);
    assert_eq!(place("cpu 5"), Placement::Cpus(vec![5]));
    assert_eq!(place("cpus 3,0-1"), Placement::Cpus(vec![0, 1, 3]));
    assert_eq!(place("same cpu as A"), Placement::SameCpu(0));
    assert_eq!(place("other cpu than A"), Placement::OtherCpu(0));
    assert_eq!(place("same core as A"), Placement::SameCore(0));
    assert_eq!(place("other core than A"), Placement::OtherCore(0));
}

#[test]
fn intervals_by_number_name_and_verb() {
    let text = "[channel.c]\nkind = \"pipe\"\n[[process]]\nname = \"A\"\n[[process.step]]\nprepare = 3\n\
        [[process.step]]\nname = \"ask\"\nsend = \"c\"\n[[process.step]]\nnumber = 9\nprepare = 4\n\
        [[process]]\nname = \"B\"\n[[process.step]]\nreceive = \"c\"\n\
        [[interval]]\nname = \"1\"\nfrom = \"A.ask\"\nto = \"B.receive\"\n\
        [[interval]]\nname = \"2\"\nfrom = \"A.send\"\nto = \"begin of B.receive c\"\n\
        [[interval]]\nname = \"3\"\nfrom = \"end of A.1\"\nto = \"A.9\"\n";
    let at = |process, step, is_end| Point {
        process,
        step,
        is_end,
    };
    let named = |name: &str, from, to| Between {
        name: name.to_owned(),
        from,
        to,
        includes: String::new(),
    };
    assert_eq!(
        one(text).intervals,
        [
            named("1", at(0, 1, false), at(1, 0, true)),
            named("2", at(0, 1, false), at(1, 0, false)),
            named("3", at(0, 0, true), at(0, 2, true)),
        ]
    );
}
