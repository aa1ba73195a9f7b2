//! The shipped scripts have no mistakes, and mean what they are meant to.

use std::path::PathBuf;
use std::time::Duration;

use undertick_experiment::script::{
    Backend, Between, Call, ChannelKind, ClockCall, ForkKind, LockKind, Pages, Placement, Plan,
    Point, Policy, RecordKind, RegionKind, Script, Stamps, Verb, Words,
};

fn file(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    std::fs::read_to_string(path.join(name)).unwrap()
}

fn example(name: &str) -> Script {
    let text = file(name);
    assert!(
        text.starts_with("# "),
        "{name} begins with what it finds out"
    );
    let command = format!("#   undertick run experiments/{name}\n");
    assert!(text.contains(&command), "{name} says how to run it");
    Script::parse(&text).unwrap_or_else(|e| panic!("experiments/{name}:{e}"))
}

fn first(script: &Script) -> &Plan {
    &script.settings[0].plan
}

fn verbs(plan: &Plan, process: usize) -> Vec<Verb> {
    let steps = plan.processes[process].steps.iter();
    steps.map(|step| step.verb.clone()).collect()
}

const SHIPPED: [&str; 10] = [
    "cmstar-messages.toml",
    "clocks.toml",
    "fork.toml",
    "injection.toml",
    "locks.toml",
    "memory.toml",
    "round-trip.toml",
    "rpc.toml",
    "traffic-controller.toml",
    "traffic-two-cpus.toml",
];

/// Every file there is one of these, or a script of slow clocks.
#[test]
fn all_that_are_shipped() {
    for name in SHIPPED {
        let script = example(name);
        assert!(!script.title.is_empty(), "{name}");
    }
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    for entry in std::fs::read_dir(path).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_known = SHIPPED.contains(&name.as_str()) || name.starts_with("slow-");
        assert!(is_known, "{name} is not tested");
    }
}

/// Numbers and verbs as in the published text; the one missing step (number 7 of A) is not timed.
#[test]
fn the_traffic_controller() {
    use Verb::{AddEvent, Block, DelEvent, Notify, UntilBlocked, Wait, Wakeup};
    let order = vec![Policy::Fifo, Policy::Batch];
    let default = vec![Policy::Other];
    for (name, place, policies) in [
        (
            "traffic-controller.toml",
            Placement::SameCpu(0),
            vec![order, default.clone()],
        ),
        (
            "traffic-two-cpus.toml",
            Placement::OtherCpu(0),
            vec![default],
        ),
    ] {
        let script = example(name);
        let mut found: Vec<Vec<Policy>> = (script.settings.iter())
            .map(|s| s.plan.policies.clone())
            .collect();
        found.dedup();
        assert_eq!(found, policies);
        let backends: Vec<Backend> = script
            .settings
            .iter()
            .map(|s| s.plan.control.unwrap())
            .collect();
        use Backend::{Condvar, Eventfd, Futex, Pipe};
        assert_eq!(
            backends,
            [Futex, Eventfd, Pipe, Condvar].repeat(policies.len())
        );
        let plan = first(&script);
        let (a, b) = (&plan.processes[0], &plan.processes[1]);
        let numbered = |p: usize| -> Vec<(u32, Verb, bool)> {
            let steps = plan.processes[p].steps.iter();
            steps.map(|s| (s.number, s.verb.clone(), s.timed)).collect()
        };
        assert_eq!(
            numbered(0),
            [
                (1, Wakeup { process: 1 }, true),
                (2, Block, true),
                (5, Wakeup { process: 1 }, true),
                (6, Block, true),
                (7, UntilBlocked { process: 1 }, false),
                (11, Notify { event: 10 }, true),
                (12, Block, true),
            ]
        );
        assert_eq!(
            numbered(1),
            [
                (3, Wakeup { process: 0 }, true),
                (4, Block, true),
                (7, Wakeup { process: 0 }, true),
                (8, Notify { event: 10 }, true),
                (9, AddEvent { event: 10 }, true),
                (10, Wait, true),
                (13, Notify { event: 11 }, true),
                (14, AddEvent { event: 11 }, true),
                (15, DelEvent { event: 11 }, true),
                (16, Wait, true),
                (17, Wakeup { process: 0 }, true),
                (18, Block, true),
            ]
        );
        assert!(!a.starts_blocked && b.starts_blocked);
        assert_eq!((a.loop_to, b.loop_to), (0, 0));
        assert_eq!((&a.place, &b.place), (&Placement::Cpus(vec![0]), &place));
        // From the begin of a blocking step (process, number) to the end of the other's.
        let hands = [
            ((0, 2), (1, 18)),
            ((1, 4), (0, 2)),
            ((0, 6), (1, 4)),
            ((1, 10), (0, 6)),
            ((0, 12), (1, 10)),
            ((1, 18), (0, 12)),
        ];
        let number = |p: &Point| (p.process, plan.processes[p.process].steps[p.step].number);
        let found = |i: &Between| {
            assert!(!i.from.is_end && i.to.is_end);
            (number(&i.from), number(&i.to))
        };
        assert_eq!(plan.intervals.iter().map(found).collect::<Vec<_>>(), hands);
    }
}

/// Executes the memo's script by hand as one processor would: each interval ends where the other
/// process returns, and each blocking step is in one of them.
#[test]
fn one_processor_plays_the_traffic_controller() {
    let script = example("traffic-controller.toml");
    let plan = first(&script);
    // The published order of the numbered steps of one pass: a process that blocks gives the
    // processor to the other one.
    let order = [
        (0, 1),
        (0, 2),
        (1, 3),
        (1, 4),
        (0, 5),
        (0, 6),
        (1, 7),
        (1, 8),
        (1, 9),
        (1, 10),
        (0, 11),
        (0, 12),
        (1, 13),
        (1, 14),
        (1, 15),
        (1, 16),
        (1, 17),
        (1, 18),
    ];
    // A switch is where the process changes; after the last step of a pass A continues.
    let mut last_of = [2, 18];
    last_of[0] = 12;
    let mut switches = Vec::new();
    for (i, &(process, number)) in order.iter().enumerate() {
        let (next, _) = order[(i + 1) % order.len()];
        if next != process {
            // The other process returns from the step at which it stopped last.
            switches.push(((process, number), (next, last_of[next])));
        }
        last_of[process] = number;
    }
    let number = |p: &Point| (p.process, plan.processes[p.process].steps[p.step].number);
    let found: Vec<_> = plan
        .intervals
        .iter()
        .map(|i| (number(&i.from), number(&i.to)))
        .collect();
    assert_eq!(found, switches);
}

#[test]
fn round_trip() {
    let script = example("round-trip.toml");
    assert_eq!(script.settings.len(), 12);
    let kinds: Vec<ChannelKind> = script
        .settings
        .iter()
        .map(|s| s.plan.channels[1].kind)
        .collect();
    for (i, (_, kind)) in ChannelKind::WORDS.iter().enumerate() {
        assert_eq!(kinds[2 * i..2 * i + 2], [*kind; 2]);
    }
    let place = |i: usize| script.settings[i].plan.processes[1].place.clone();
    assert_eq!(
        (place(0), place(1)),
        (Placement::SameCpu(0), Placement::OtherCpu(0))
    );
    assert_eq!(first(&script).processes[0].place, Placement::Cpus(vec![0]));
    assert_eq!(first(&script).intervals.len(), 3);
}

#[test]
fn rpc() {
    let script = example("rpc.toml");
    let found: Vec<(String, u32)> = script
        .settings
        .iter()
        .map(|s| (s.parameters[0].1.clone(), s.plan.processes[0].replicas))
        .collect();
    let words = ["0", "50", "100", "150", "200"];
    let wanted = words
        .iter()
        .flat_map(|w| (1..=3).map(|n| ((*w).to_owned(), n)));
    assert_eq!(found, wanted.collect::<Vec<_>>());
    let plan = &script.settings[3].plan;
    assert_eq!(
        verbs(plan, 0),
        [
            Verb::Prepare { words: 50 },
            Verb::UntilBlocked { process: 1 },
            Verb::Send {
                channel: 0,
                words: 50
            },
            Verb::Receive { channel: 1 },
            Verb::Access { words: 50 },
        ]
    );
    assert_eq!(
        verbs(plan, 1),
        [
            Verb::Access { words: 50 },
            Verb::Work { ns: 5000.0 },
            Verb::Send {
                channel: 1,
                words: 50
            },
            Verb::Receive { channel: 0 },
        ]
    );
    let at = |process, step, is_end| Point {
        process,
        step,
        is_end,
    };
    let points: Vec<(Point, Point)> = plan.intervals.iter().map(|i| (i.from, i.to)).collect();
    assert_eq!(
        points,
        [
            (at(0, 2, false), at(1, 3, true)),
            (at(0, 2, false), at(0, 4, true))
        ]
    );
    assert!(plan.processes[1].starts_blocked);
}

#[test]
fn locks() {
    let script = example("locks.toml");
    let found: Vec<(LockKind, u32)> = script
        .settings
        .iter()
        .map(|s| (s.plan.locks[0].kind, s.plan.processes[0].replicas))
        .collect();
    let wanted = LockKind::WORDS
        .iter()
        .flat_map(|(_, k)| (1..=2).map(|n| (*k, n)));
    assert_eq!(found, wanted.collect::<Vec<_>>());
    assert_eq!(first(&script).stamps, Stamps::Around);
    assert_eq!(
        verbs(first(&script), 0),
        [
            Verb::Lock { lock: 0 },
            Verb::Unlock { lock: 0 },
            Verb::LockUnlock {
                lock: 0,
                times: 100
            }
        ]
    );
}

#[test]
fn fork() {
    let script = example("fork.toml");
    assert_eq!(script.settings.len(), 4 * 2 * 11);
    let of_fork = script.settings.iter().map(|s| &s.plan).filter(|p| {
        p.regions[0].pages == Pages::Small
            && p.processes[0].steps[1].verb == Verb::Fork(ForkKind::Fork)
    });
    let sizes: Vec<u64> = of_fork.map(|p| p.regions[0].bytes).collect();
    let kib = [
        33, 125, 490, 1096, 1941, 3026, 4351, 16_384, 65_536, 262_144, 1_048_576,
    ];
    assert_eq!(sizes, kib.map(|k| k * 1024));
    assert!(first(&script).timeout >= Duration::from_secs(30));
}

#[test]
fn clocks() {
    let script = example("clocks.toml");
    let mut wanted = vec![Verb::Null];
    wanted.extend(ClockCall::WORDS.iter().map(|(_, clock)| Verb::Read(*clock)));
    wanted.push(Verb::Call(Call::Getppid));
    assert_eq!(verbs(first(&script), 0), wanted);
}

#[test]
fn memory() {
    let script = example("memory.toml");
    assert_eq!(script.settings.len(), RegionKind::WORDS.len() * 8);
    assert_eq!(
        verbs(first(&script), 0),
        [
            Verb::Create { region: 0 },
            Verb::Fill { region: 0 },
            Verb::Fill { region: 0 },
            Verb::Free { region: 0 }
        ]
    );
}

#[test]
fn injection() {
    let script = example("injection.toml");
    let [client, server, load] = &first(&script).processes[..] else {
        panic!("three processes");
    };
    assert_eq!(client.every, Some(Duration::from_millis(2)));
    assert_eq!(client.after, Some(Duration::from_millis(50)));
    assert!(server.starts_blocked && server.measured);
    assert!(load.background && !load.measured);
    let loads: Vec<u32> = script
        .settings
        .iter()
        .map(|s| s.plan.processes[2].replicas)
        .collect();
    assert_eq!(loads, [1, 2]);
}

/// The book's first script has no mistakes, and the book has every word of every kind.
#[test]
fn the_book() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/scripts.md");
    let book = std::fs::read_to_string(path).unwrap();
    let first = book.split("## ").nth(1).unwrap();
    let lines = first.lines().filter_map(|line| line.strip_prefix("    "));
    let script = Script::parse(&lines.collect::<Vec<_>>().join("\n")).unwrap();
    let places = script
        .settings
        .iter()
        .map(|s| s.plan.processes[1].place.clone());
    assert_eq!(
        places.collect::<Vec<_>>(),
        [Placement::SameCpu(0), Placement::OtherCpu(0)]
    );
    fn words<K: Words>() -> Vec<&'static str> {
        K::WORDS.iter().map(|(word, _)| *word).collect()
    }
    let all = [
        words::<Backend>(),
        words::<Call>(),
        words::<ChannelKind>(),
        words::<ClockCall>(),
        words::<ForkKind>(),
        words::<LockKind>(),
        words::<Pages>(),
        words::<RecordKind>(),
        words::<RegionKind>(),
        words::<Stamps>(),
    ];
    for word in all.concat() {
        let is_there = [format!("`{word}`"), format!("\"{word}\"")]
            .iter()
            .any(|form| book.contains(form));
        assert!(is_there, "the book does not know {word}");
    }
}
