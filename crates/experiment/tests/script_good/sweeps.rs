//! Sweeps: the order of their settings, and parameters in values.

use std::time::Duration;

use undertick_experiment::script::{Backend, ChannelKind, Length, Placement, Script, Stamps, Verb};

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
