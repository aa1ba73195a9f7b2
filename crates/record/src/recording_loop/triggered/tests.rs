use std::time::Duration;

use super::*;

/// Two ticks a nanosecond.
const SECOND: u64 = 2_000_000_000;

fn triggered(at_most: u32, stretch: Duration) -> Triggered {
    let triggers = Triggers {
        rules: Vec::new(),
        before: Duration::from_secs(2),
        after: Duration::ZERO,
        at_most: (at_most, stretch),
        most_bytes: None,
    };
    let clock = Source::open(ClockId::Monotonic).unwrap();
    Triggered::new(triggers, clock, 0.5)
}

fn hit(at: u64, began: u64) -> Hit {
    Hit {
        rule: 0,
        ring: None,
        at,
        began: Some(began),
        measured: Measured::Took(5.2e6, 5e6),
    }
}

fn take(triggered: &mut Triggered, hits: &[Hit]) {
    let rules = ["request > 5ms".parse().unwrap()];
    triggered.take(hits, &rules, 100 * SECOND, Path::new("/nowhere"));
}

/// A directory that is no recording.
fn nothing() -> TraceDir {
    TraceDir::open(Path::new("/")).unwrap()
}

/// Hits that come before a snapshot is begun are reasons of it; it begins before the first.
#[test]
fn hits_share_a_snapshot() {
    let mut triggered = triggered(1, Duration::from_secs(3600));
    take(&mut triggered, &[hit(10 * SECOND, 9 * SECOND)]);
    take(&mut triggered, &[hit(11 * SECOND, 8 * SECOND)]);
    let many = vec![hit(12 * SECOND, 12 * SECOND); 20];
    take(&mut triggered, &many);
    let part = triggered.waiting.take().unwrap().part;
    assert_eq!(part.from_ticks, 6 * SECOND);
    assert_eq!((part.triggered.len(), part.more), (MOST_REASONS, 6));
    let first = &part.triggered[0];
    assert_eq!(first.text, "request took 5.2 ms, more than 5 ms");
    assert_eq!(first.began_ts, Some(9 * SECOND as i64));
    // There is no second one within the hour.
    take(&mut triggered, &many[..3]);
    assert!(triggered.waiting.is_none());
    let (results, _received) = std::sync::mpsc::channel();
    let said = triggered.finish(&nothing(), &results).unwrap();
    assert!(said.contains("met 3 times more"), "{said}");
    assert!(said.contains("allows 1 in 3600s"), "{said}");
}

/// A time that has not come cannot empty the snapshot of all threads, and one that never comes is
/// no failure.
#[test]
fn impossible_times() {
    let mut triggered = triggered(1, Duration::from_secs(1));
    triggered.triggers.after = Duration::MAX;
    take(&mut triggered, &[hit(u64::MAX, u64::MAX)]);
    let waiting = triggered.waiting.as_ref().unwrap();
    assert_eq!((waiting.part.from_ticks, waiting.due), (98 * SECOND, None));
    let (results, received) = std::sync::mpsc::channel();
    triggered.begin(&nothing(), &results, false);
    assert!(triggered.waiting.is_some());
    triggered.begin(&nothing(), &results, true);
    triggered.wait();
    assert!(received.recv().unwrap().is_err());
}
