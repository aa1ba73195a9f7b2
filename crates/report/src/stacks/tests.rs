use undertick_document::{StackFunction, StackNode};

use super::*;

fn node(caller: Option<u32>, function: u32, on_cpu: u64, waited_ns: f64) -> StackNode {
    StackNode {
        caller,
        function,
        on_cpu,
        waited_ns,
    }
}

fn stacks() -> Stacks {
    let function = |name: &str| StackFunction {
        name: name.to_owned(),
        file: String::new(),
    };
    Stacks {
        every_ns: 1_000_000,
        in_kernel: true,
        when_waiting: true,
        on_cpu: 200,
        waits: 2,
        waits_known: 1.0,
        incomplete: 0.25,
        functions: ["main", "work;\u{1b}[31m", "lock"].map(function).to_vec(),
        paths: vec![PathStacks {
            path: None,
            still_open: Vec::new(),
            on_cpu: 100,
            waits: 2,
            waited_ns: 3e6,
            nodes: vec![
                node(None, 0, 10, 0.0),
                node(Some(0), 1, 90, 0.0),
                node(Some(0), 2, 0, 3e6),
            ],
            left_out: 0,
        }],
        ..Stacks::default()
    }
}

#[test]
fn a_path_has_its_functions_with_shares_and_where_it_waited() {
    let all = stacks();
    let interval = |n: u64, of: u64| Some([n as f64 / of as f64 - 0.05, 0.95]);
    let text = path("request", &all, &all.paths[0], &interval, 200).replace('\u{a0}', " ");
    let line = |name: &str| {
        text.lines()
            .find(|line| line.ends_with(name))
            .expect("a line")
    };
    let words = |name: &str| line(name).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words("lock").contains("3.00 ms"), "{text}");
    assert!(words("main").starts_with("10 % [5"), "{text}");
    assert!(words("main").contains("100 %"), "{text}");
    assert!(
        text.contains("On a CPU, the heaviest stack: 90 % in main > work;"),
        "{text}"
    );
    assert!(
        text.contains("Waiting, the heaviest stack: 100 % in main > lock"),
        "{text}"
    );
    assert!(!text.contains('\u{1b}'), "{text}");
}
