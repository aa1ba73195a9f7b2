use undertick_format::manifest::Anchor;

use super::*;

const MS: i64 = 1_000_000;

fn samples(rows: &[(Kind, i64, i32, i64)]) -> Samples {
    samples_until(None, rows)
}

/// Those of a recording that ended then.
fn samples_until(end: Option<i64>, rows: &[(Kind, i64, i32, i64)]) -> Samples {
    let mut clock = crate::support::manifest().clock;
    clock.anchors = end
        .map(|ticks| Anchor {
            ticks,
            unix_ns: 0,
            error_ns: 0,
        })
        .into_iter()
        .collect();
    let mut samples = Samples::new(&clock);
    for &(kind, ts, event, payload) in rows {
        samples.row(kind, (7, ts), event, payload);
    }
    samples.settle();
    samples
}

const LEAVES: i32 = Sampled::Leaves as i32;

#[test]
fn a_thread_waits_from_its_switch_to_the_next_unless_it_was_preempted() {
    let waited = |rows: &[(Kind, i64, i32, i64)]| samples(rows).all[0].waited;
    let sample = (Kind::Stack, MS, LEAVES, 3);
    let (before, after) = (
        (Kind::SwitchOut, MS - 400, 0, 0),
        (Kind::SwitchOut, MS + 400, 0, 0),
    );
    let back = (Kind::SwitchIn, 3 * MS, 0, 0);
    assert_eq!(waited(&[before, sample, back]), 2 * MS + 400);
    assert_eq!(waited(&[sample, after, back]), 2 * MS - 400);
    assert_eq!(
        waited(&[sample, (Kind::SwitchOut, MS, 0, 1), back]),
        0,
        "preempted"
    );
    let later = (Kind::SwitchOut, 2 * MS, 0, 0);
    assert_eq!(waited(&[sample, later, back]), 0, "of another switch");
    assert_eq!(waited(&[sample, back]), 0, "no switch");
}

#[test]
fn a_thread_that_never_comes_back_waits_until_the_end() {
    let rows = [
        (Kind::Stack, MS, LEAVES, 3),
        (Kind::SwitchOut, MS, 0, 0),
        (Kind::Fault, 9 * MS, 0, 0),
    ];
    let samples = samples(&rows);
    assert_eq!(samples.all[0].waited, 8 * MS);
    assert_eq!((samples.known, samples.waited), (8 * MS, 8 * MS));
    // Of a program whose only thread sleeps there is no row after that.
    let samples = samples_until(Some(101 * MS), &rows[..2]);
    assert_eq!(samples.all[0].waited, 100 * MS);
}
