use super::*;

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
