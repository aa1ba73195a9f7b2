use clap::Parser as _;

use super::*;
use crate::args::{Arguments, Command};

fn schedule(words: &str) -> Schedule {
    let all = ["undertick", "interference"]
        .into_iter()
        .chain(words.split_whitespace());
    let parsed = Arguments::try_parse_from(all).unwrap_or_else(|e| panic!("{e}"));
    let Command::Interference(arguments) = parsed.command else {
        panic!("not this command");
    };
    request(&arguments, PathBuf::new())
        .unwrap_or_else(|e| panic!("{}", e.text))
        .schedule
}

/// MPL-55: 50 samples of 290 us every 10 s, 100 times; within a page.
#[test]
fn the_published_schedule_is_performed_if_asked_for() {
    let published = schedule("--published");
    assert_eq!(published.mix, Mix::Page);
    assert_eq!(published.blocks.0, Duration::from_micros(290));
    assert_eq!(published.every, Duration::from_secs(10));
    assert_eq!(published.total, Some(Duration::from_secs(1000)));
    let samples =
        published.burst.as_secs_f64() / (published.blocks.0 + published.blocks.1).as_secs_f64();
    assert!((samples - 50.0).abs() < 1e-9, "{samples}");
    let other = schedule("");
    assert_ne!((other.mix, other.every), (published.mix, published.every));
    // A shorter one is still of the published bursts.
    let short = schedule("--published --for 30s");
    assert_eq!(
        (short.total, short.every),
        (Some(Duration::from_secs(30)), published.every)
    );
}
