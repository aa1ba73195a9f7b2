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
fn of_two_recorders_the_span_that_began_last_has_the_sample() {
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
        assert_eq!(found.spans(&paths, 2), [Around::Path(1), Around::Nothing]);
    }
}

fn table() -> StackTable {
    let function = |name: &str| (name.to_owned(), String::new());
    StackTable {
        functions: ["main", "work", "rare"].map(function).to_vec(),
        nodes: vec![(0, -1), (1, -1), (2, -1), (0, 0), (3, 1), (3, 2)],
    }
}

#[test]
fn functions_with_few_samples_are_left_out_and_counted() {
    let taken = |on_cpu: u64, waited: i64| Taken {
        on_cpu,
        waits: u64::from(waited > 0),
        waited,
    };
    let all = HashMap::from([
        (3, taken(0, 0)),
        (4, taken(4000, 0)),
        (5, taken(3, 0)),
        (2, taken(1, 0)),
    ]);
    let found = of_path(Around::Path(0), &all, &table(), 2.0);
    assert_eq!((found.on_cpu, found.left_out), (4004, 4));
    assert_eq!(found.nodes.len(), 2);
    assert_eq!(
        (found.nodes[1].caller, found.nodes[1].on_cpu),
        (Some(0), 4000)
    );
    // A function that waited stays.
    let all = HashMap::from([(4, taken(4000, 0)), (5, taken(0, 50))]);
    let found = of_path(Around::Path(0), &all, &table(), 2.0);
    assert_eq!(found.nodes.len(), 3);
    assert_eq!(found.waited_ns, 100.0);
}

#[test]
fn the_document_has_a_bounded_number_of_functions() {
    let node = |at: u64| StackNode {
        function: at as u32,
        on_cpu: 1 + at % 7,
        ..StackNode::default()
    };
    let nodes: Vec<StackNode> = (0..2 * MOST_NODES as u64).map(node).collect();
    let on_cpu = nodes.iter().map(|of| of.on_cpu).sum();
    let mut stacks = Stacks {
        on_cpu,
        functions: nodes
            .iter()
            .map(|of| StackFunction {
                name: of.function.to_string(),
                file: String::new(),
            })
            .collect(),
        paths: vec![PathStacks {
            on_cpu,
            nodes,
            ..PathStacks::default()
        }],
        ..Stacks::default()
    };
    bound(&mut stacks);
    only_used_functions(&mut stacks);
    let of = &stacks.paths[0];
    assert!(of.nodes.len() <= MOST_NODES, "{}", of.nodes.len());
    let kept: u64 = of.nodes.iter().map(|of| of.on_cpu).sum();
    assert_eq!(kept + of.left_out, on_cpu);
    assert_eq!(stacks.functions.len(), of.nodes.len());
}
