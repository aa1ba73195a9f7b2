use super::*;

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

#[test]
fn of_two_recorders_the_span_that_began_last_has_the_time() {
    let of = |start: i64, name: &str| FoundSpans {
        paths: vec![(None, vec![name.to_owned()])],
        spans: vec![(0, 0, start)],
    };
    let paths = Paths {
        places: HashMap::from([(vec!["a".to_owned()], 0), (vec!["b".to_owned()], 1)]),
        have_roles: false,
    };
    for (first, second) in [(of(5, "a"), of(9, "b")), (of(9, "b"), of(5, "a"))] {
        let mut found = first;
        found.append(second);
        assert_eq!(spans(&found, &paths, 2), [Around::Path(1), Around::Nothing]);
    }
}
