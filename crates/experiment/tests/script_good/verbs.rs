//! Every verb and every word of a script, and scripts that are unusual without a mistake.

use undertick_experiment::script::{Call, ClockCall, ForkKind, Plan, Script, Verb, Words};

use crate::one;

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
