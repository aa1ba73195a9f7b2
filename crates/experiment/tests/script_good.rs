//! Good scripts give exactly the plans that they ask for, with plans by hand.

use std::time::Duration;

use undertick_experiment::script::{
    Backend, Between, Call, Channel, ChannelKind, ClockCall, ForkKind, Length, Line, Lock,
    LockKind, Pages, Placement, Plan, Point, Process, RecordKind, Region, RegionKind, Script,
    Stamps, Step, Timed, Verb, Words,
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

/// Each verb, alone as far as possible.
#[test]
fn every_verb() {
    let head = "backend = \"futex\"\n[lock.m]\nkind = \"spin\"\n[region.r]\nbytes = 1\nready = false\n\
        [channel.c]\nkind = \"tcp\"\n[[process]]\nname = \"A\"\n";
    let steps: [(&str, &str, Verb); 28] = [
        ("null = true", "null", Verb::Null),
        ("work = \"2.5us\"", "work", Verb::Work { ns: 2500.0 }),
        ("work = \"0ns\"", "work", Verb::Work { ns: 0.0 }),
        ("sleep = \"1ms\"", "sleep", Verb::Sleep { ns: 1e6 }),
        ("yield = true", "yield", Verb::Yield),
        ("run_out = true", "run_out", Verb::RunOut),
        (
            "call = \"getppid\"",
            "call getppid",
            Verb::Call(Call::Getppid),
        ),
        ("read = \"tai\"", "read tai", Verb::Read(ClockCall::Tai)),
        ("lock = \"m\"", "lock m", Verb::Lock { lock: 0 }),
        ("unlock = \"m\"", "unlock m", Verb::Unlock { lock: 0 }),
        (
            "lock_unlock = \"m\"",
            "lock_unlock m",
            Verb::LockUnlock {
                lock: 0,
                times: 1000,
            },
        ),
        (
            "lock_unlock = \"m\"\ntimes = 7",
            "lock_unlock m",
            Verb::LockUnlock { lock: 0, times: 7 },
        ),
        ("wakeup = \"B\"", "wakeup B", Verb::Wakeup { process: 1 }),
        ("block = true", "block", Verb::Block),
        ("notify = 10", "notify 10", Verb::Notify { event: 10 }),
        ("addevent = 11", "addevent 11", Verb::AddEvent { event: 11 }),
        ("delevent = 11", "delevent 11", Verb::DelEvent { event: 11 }),
        ("wait = true", "wait", Verb::Wait),
        (
            "until_blocked = \"B\"",
            "until_blocked B",
            Verb::UntilBlocked { process: 1 },
        ),
        (
            "send = \"c\"",
            "send c",
            Verb::Send {
                channel: 0,
                words: 0,
            },
        ),
        ("prepare = 50", "prepare", Verb::Prepare { words: 50 }),
        ("access = 0", "access", Verb::Access { words: 0 }),
        (
            "fork = \"posix_spawn\"",
            "posix_spawn",
            Verb::Fork(ForkKind::Spawn),
        ),
        ("reap = true", "reap", Verb::Reap),
        ("create = \"r\"", "create r", Verb::Create { region: 0 }),
        ("touch = \"r\"", "touch r", Verb::Touch { region: 0 }),
        ("fill = \"r\"", "fill r", Verb::Fill { region: 0 }),
        ("free = \"r\"", "free r", Verb::Free { region: 0 }),
    ];
    let mut text = head.to_owned();
    for (lines, _, _) in &steps {
        text += &format!("[[process.step]]\n{lines}\n");
    }
    text += "[[process]]\nname = \"B\"\n[[process.step]]\nreceive = \"c\"\n[[process.step]]\nwakeup = \"A\"\n";
    let made = one(&text).processes.remove(0).steps;
    assert_eq!(made.len(), steps.len());
    for (made, (lines, name, verb)) in made.iter().zip(&steps) {
        assert_eq!((&made.verb, made.name.as_str()), (verb, *name), "{lines}");
    }
}

/// Each word of each kind gives its value.
#[test]
fn every_word() {
    fn all<K: Words + std::fmt::Debug>(text: &str, of: impl Fn(&Plan) -> K) {
        for (word, kind) in K::WORDS {
            let text = text.replace('?', word);
            assert_eq!(of(&one(&text)), *kind, "{text}");
        }
    }
    let a = "[[process]]\nname = \"A\"\n[[process.step]]\n";
    all(&format!("stamps = \"?\"\n{a}null = true\n"), |p| p.stamps);
    all(&format!("[lock.m]\nkind = \"?\"\n{a}null = true\n"), |p| {
        p.locks[0].kind
    });
    let region = |key| format!("[region.m]\nbytes = 1\n{key} = \"?\"\n{a}null = true\n");
    all(&region("kind"), |p| p.regions[0].kind);
    all(&region("pages"), |p| p.regions[0].pages);
    let b = "[[process]]\nname = \"B\"\n[[process.step]]\n";
    all(
        &format!("[channel.c]\nkind = \"?\"\n{a}send = \"c\"\n{b}receive = \"c\"\n"),
        |p| p.channels[0].kind,
    );
    all(
        &format!("backend = \"?\"\n{a}wakeup = \"B\"\n{b}block = true\n"),
        |p| p.control.unwrap(),
    );
    all(&format!("{a}call = \"?\"\n"), |p| {
        match p.processes[0].steps[0].verb {
            Verb::Call(kind) => kind,
            ref other => panic!("{other:?}"),
        }
    });
    all(&format!("{a}read = \"?\"\n"), |p| {
        match p.processes[0].steps[0].verb {
            Verb::Read(kind) => kind,
            ref other => panic!("{other:?}"),
        }
    });
    let fork = format!("{a}fork = \"?\"\n[[process.step]]\nreap = true\n");
    all(&fork, |p| match p.processes[0].steps[0].verb {
        Verb::Fork(kind) => kind,
        ref other => panic!("{other:?}"),
    });
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
fn settings_come_in_order() {
    let text = "passes = \"$n\"\n[sweep]\nwords = [0, 50]\nkind = [\"pipe\", \"unix\"]\nn = \"2..8 by 5\"\n\
        [channel.c]\nkind = \"$kind\"\n[[process]]\nname = \"A\"\n[[process.step]]\nsend = \"c\"\nwords = \"$words\"\n\
        [[process]]\nname = \"B\"\n[[process.step]]\nreceive = \"c\"\n";
    let script = Script::parse(text).unwrap();
    let found: Vec<(u64, ChannelKind, Length)> = script
        .settings
        .iter()
        .map(|s| match s.plan.processes[0].steps[0].verb {
            Verb::Send { words, .. } => (words, s.plan.channels[0].kind, s.plan.length),
            ref other => panic!("{other:?}"),
        })
        .collect();
    let (pipe, unix) = (ChannelKind::Pipe, ChannelKind::Unix);
    let wanted = [
        (0, pipe, 2),
        (0, pipe, 7),
        (0, unix, 2),
        (0, unix, 7),
        (50, pipe, 2),
        (50, pipe, 7),
        (50, unix, 2),
        (50, unix, 7),
    ];
    assert_eq!(found, wanted.map(|(w, k, n)| (w, k, Length::Passes(n))));
    let named = |words: &str, kind: &str, n: &str| {
        [("words", words), ("kind", kind), ("n", n)].map(|(a, b)| (a.to_owned(), b.to_owned()))
    };
    assert_eq!(script.settings[0].parameters, named("0", "pipe", "2"));
    assert_eq!(script.settings[5].parameters, named("50", "pipe", "7"));
}

/// Parameters as whole values, inside strings, twice in one, in lists of numbers with fractions,
/// and as a range.
#[test]
fn parameters_inside_values() {
    let text = "seconds = \"$s\"\nstamps = \"$how\"\nbackend = \"$b\"\nsettle = \"${us}us\"\n\
        [sweep]\ns = [0.25]\nhow = [\"around\"]\nb = [\"pipe\"]\nus = [7]\nn = \"3..3\"\n\
        [[process]]\nname = \"A$n\"\nreplicas = \"$n\"\nplace = \"cpus $n,1$n\"\n[[process.step]]\nnotify = \"$n\"\n\
        [[process.step]]\nwork = \"${n}us\"\n";
    let script = Script::parse(text).unwrap();
    let found = &script.settings[0].plan;
    assert_eq!(found.length, Length::Seconds(0.25));
    assert_eq!(found.stamps, Stamps::Around);
    assert_eq!(found.control, Some(Backend::Pipe));
    assert_eq!(found.settle, Duration::from_micros(7));
    let a = &found.processes[0];
    assert_eq!((a.name.as_str(), a.replicas), ("A3", 3));
    assert_eq!(a.place, Placement::Cpus(vec![3, 13]));
    assert_eq!(a.steps[0].verb, Verb::Notify { event: 3 });
    assert_eq!(a.steps[1].verb, Verb::Work { ns: 3000.0 });
    assert_eq!(script.settings[0].parameters[0].1, "0.25");
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

/// Unusual scripts without mistakes.
#[test]
fn what_is_allowed() {
    let a = |steps: &str| {
        let steps: Vec<&str> = steps.split("; ").collect();
        let steps = steps.join("\n[[process.step]]\n");
        format!(
            "[lock.m]\nkind = \"spin\"\n[region.r]\nbytes = 1\nready = false\n\
             [[process]]\nname = \"A\"\n[[process.step]]\n{steps}\n"
        )
    };
    for steps in [
        // Taken once before the passes; released and taken again in each pass.
        "lock = \"m\"; null = true; unlock = \"m\"; lock = \"m\"; go_to = 2",
        "create = \"r\"; touch = \"r\"; fill = \"r\"; go_to = 2",
        "create = \"r\"; free = \"r\"; create = \"r\"; free = \"r\"",
        "fork = \"vfork\"; reap = true; fork = \"thread\"; reap = true",
        "fork = \"fork\"; reap = true; fork = \"fork\"; go_to = 2",
    ] {
        let text = a(steps);
        assert!(
            Script::parse(&text).is_ok(),
            "{:?}\n{text}",
            Script::parse(&text)
        );
    }
    for steps in [
        // No event is added, so it returns at once.
        "wait = true",
        "addevent = 1; delevent = 1; wait = true",
        // It notifies itself after adding the event, so the event is there.
        "addevent = 1; notify = 1; wait = true",
        // The first wait removes the event, so the second one returns at once.
        "addevent = 1; notify = 1; wait = true; wait = true",
    ] {
        let text = format!("backend = \"pipe\"\n{}", a(steps));
        assert!(
            Script::parse(&text).is_ok(),
            "{:?}\n{text}",
            Script::parse(&text)
        );
    }
    let text = format!(
        "backend = \"pipe\"\n{}",
        a("notify = 1; addevent = 1; wait = true")
    );
    assert!(Script::parse(&text).is_err(), "it notified before it added");
}
