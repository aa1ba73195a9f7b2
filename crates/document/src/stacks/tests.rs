use super::*;

fn node(caller: Option<u32>, function: u32, on_cpu: u64, waited_ns: f64) -> StackNode {
    StackNode {
        caller,
        function,
        on_cpu,
        waited_ns,
    }
}

/// main (0) calls work (1), which calls itself and wait (2).
fn some() -> PathStacks {
    PathStacks {
        path: Some(0),
        still_open: Vec::new(),
        on_cpu: 10,
        waits: 1,
        waited_ns: 7.0,
        nodes: vec![
            node(None, 0, 1, 0.0),
            node(Some(0), 1, 4, 0.0),
            node(Some(1), 1, 5, 0.0),
            node(Some(2), 2, 0, 7.0),
        ],
        left_out: 0,
    }
}

#[test]
fn what_a_function_calls_through_itself_counts_once() {
    let by = some().by_function();
    let of = |function: u32| by.iter().find(|of| of.function == function).expect("there");
    assert_eq!((of(0).own, of(0).all, of(0).all_waited_ns), (1, 10, 7.0));
    assert_eq!((of(1).own, of(1).all, of(1).all_waited_ns), (9, 9, 7.0));
    assert_eq!((of(2).own, of(2).all, of(2).waited_ns), (0, 0, 7.0));
    assert_eq!(by[0].function, 1, "the one with most samples comes first");
}

#[test]
fn trees_are_added_by_who_called() {
    let mut merged = some();
    merged.add(&PathStacks {
        nodes: vec![node(None, 1, 2, 0.0), node(Some(0), 2, 3, 0.5)],
        on_cpu: 5,
        waited_ns: 0.5,
        ..PathStacks::default()
    });
    merged.add(&some());
    assert_eq!(merged.nodes.len(), 6);
    assert_eq!(merged.nodes[2], node(Some(1), 1, 10, 0.0));
    assert_eq!(merged.nodes[5], node(Some(4), 2, 3, 0.5));
    assert_eq!((merged.on_cpu, merged.waited_ns), (25, 14.5));
    let roots = merged.nodes.iter().zip(merged.totals());
    let sum: u64 = roots
        .filter(|(of, _)| of.caller.is_none())
        .map(|(_, all)| all.0)
        .sum();
    assert_eq!(sum, 25);
}

#[test]
fn stacks_that_refer_to_nothing_are_taken_out() {
    let function = |name: &str| StackFunction {
        name: name.to_owned(),
        file: String::new(),
    };
    let all = Stacks {
        functions: ["main", "work", "wait"].map(function).to_vec(),
        incomplete: 0.5,
        every_ns: 1_000_000,
        on_cpu: 10,
        waits: 1,
        paths: vec![some()],
        ..Stacks::default()
    };
    let left = |change: fn(&mut Stacks)| {
        let mut stacks = all.clone();
        change(&mut stacks);
        (stacks.is_possible(1), stacks.paths.len())
    };
    assert_eq!(left(|_| {}), (true, 1));
    assert_eq!(left(|of| of.paths[0].path = Some(1)), (true, 0));
    assert_eq!(left(|of| of.paths[0].nodes[1].caller = Some(1)), (true, 0));
    assert_eq!(left(|of| of.paths[0].nodes[1].function = 3), (true, 0));
    assert_eq!(left(|of| of.paths[0].waited_ns = -1.0), (true, 0));
    assert_eq!(
        left(|of| of.paths[0].nodes[0].waited_ns = f64::NAN),
        (true, 0)
    );
    assert_eq!(left(|of| of.paths[0].nodes[0].on_cpu = 3), (true, 0));
    assert_eq!(left(|of| of.paths[0].nodes[0].on_cpu = u64::MAX), (true, 0));
    assert!(!left(|of| of.on_cpu = 9).0);
    assert!(!left(|of| of.every_ns = 0).0);
    assert!(!left(|of| of.waits = 0).0);
    let chain = |of: &mut Stacks| {
        let deep = (0..=MOST_DEPTH as u32).map(|at| node(at.checked_sub(1), 0, 0, 0.0));
        of.paths[0].nodes = deep.collect();
    };
    assert_eq!(left(chain), (true, 0));
}

#[test]
fn a_path_that_is_still_open_is_found_by_its_last_names() {
    let open = |names: &[&str]| PathStacks {
        path: None,
        still_open: names.iter().map(|name| (*name).to_owned()).collect(),
        ..some()
    };
    let stacks = Stacks {
        paths: vec![
            some(),
            open(&["main thread", "request", "parse"]),
            open(&["main thread", "request", "send"]),
        ],
        ..Stacks::default()
    };
    let found = |text: &str| {
        let found = stacks.still_open(text)?;
        Some((found.still_open.join("/"), found.on_cpu))
    };
    assert_eq!(
        found("request"),
        Some(("main thread/request".to_owned(), 20))
    );
    assert_eq!(
        found("request/send"),
        Some(("main thread/request/send".to_owned(), 10))
    );
    assert_eq!(found("est"), None);
    assert_eq!(found("work"), None);
}
