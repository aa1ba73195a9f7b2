use super::*;

const MS: i64 = 1_000_000;

fn samples(rows: &[(Kind, i64, i32, i64)]) -> Samples {
    let mut samples = Samples::new(1.0);
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
fn a_thread_that_never_comes_back_waits_until_the_last_row() {
    let rows = [
        (Kind::Stack, MS, LEAVES, 3),
        (Kind::SwitchOut, MS, 0, 0),
        (Kind::Fault, 9 * MS, 0, 0),
    ];
    let samples = samples(&rows);
    assert_eq!(samples.all[0].waited, 8 * MS);
    assert_eq!((samples.known, samples.waited), (8 * MS, 8 * MS));
}

/// Spans by their begins and ends, inner ones before outer ones.
fn joined(samples: &[i64], spans: &[(i64, i64)]) -> Vec<(u32, u32)> {
    let by: ByThread = HashMap::from([(7, samples.iter().copied().zip(0..).collect())]);
    let mut tree = crate::tree::Tree::default();
    let mut join = Join::new(Arc::new(by));
    let mut waiting = Waiting::default();
    for (&span, interval) in spans.iter().zip(0..) {
        let path = tree.child(Path::ROOT, interval);
        join.end(&mut waiting, 7, path, span);
    }
    let found = join.finish(|path| (None, vec![tree.names(path).1[0].to_string()]));
    let name = |at: u32| found.paths[at as usize].1[0].parse().expect("a number");
    found
        .spans
        .iter()
        .map(|&(sample, path, _)| (sample, name(path)))
        .collect()
}

#[test]
fn a_sample_belongs_to_the_innermost_span_around_it() {
    // 10..20 and 30..40 inside 5..50; a sample at an edge counts as inside.
    let spans = [(10, 20), (30, 40), (5, 50)];
    let mut found = joined(&[1, 7, 10, 15, 25, 40, 45, 60], &spans);
    found.sort_unstable();
    assert_eq!(found, [(1, 2), (2, 0), (3, 0), (4, 2), (5, 1), (6, 2)]);
}

#[test]
fn a_span_inside_one_of_its_name_has_the_path_of_the_outer_one() {
    let by: ByThread = HashMap::from([(7, vec![(15, 0), (25, 1)])]);
    let mut tree = crate::tree::Tree::default();
    let outer = tree.child(Path::ROOT, 4);
    let between = tree.child(outer, 5);
    let inner = tree.child(between, 4);
    let mut join = Join::new(Arc::new(by));
    let mut waiting = Waiting::default();
    join.end(&mut waiting, 7, inner, (10, 20));
    join.end(&mut waiting, 7, outer, (0, 30));
    let found = join.finish(|path| {
        let (_, intervals) = tree.names(path);
        (None, intervals.iter().map(ToString::to_string).collect())
    });
    let names = |at: usize| &found.paths[found.spans[at].1 as usize].1;
    assert_eq!(
        (names(0), names(1)),
        (&vec!["4".to_owned()], &vec!["4".to_owned()])
    );
}
