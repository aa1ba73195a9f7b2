use super::*;

/// Two functions, one of no file; nodes: `main`, `work` below it, `work` of a stack that is not whole.
fn table() -> StackTable {
    let function = |name: &str, file: &str| (name.to_owned(), file.to_owned());
    StackTable {
        functions: vec![function("main", "/bin/x"), function("work", "")],
        nodes: vec![(0, -1), (1, -1), (2, -1), (0, 0), (3, 1), (1, 1)],
    }
}

/// The bytes of a message with numbers below 128.
fn numbers(of: &[(u64, u64)]) -> Message {
    let mut message = Message::default();
    for &(field, value) in of {
        message.number(field, value);
    }
    message
}

fn contains(interned: &Message, field: u64, message: &Message) -> bool {
    let mut whole = Message::default();
    whole.message(field, message);
    (interned.0.windows(whole.0.len())).any(|bytes| bytes == whole.0)
}

#[test]
fn each_part_is_described_once() {
    let mut stacks = Callstacks::new(table());
    let mut interned = Message::default();
    assert_eq!(stacks.id(4, &mut interned), 6);
    // The outermost frame first; the function without a file has a mapping, too.
    assert!(contains(&interned, 7, &numbers(&[(1, 6), (2, 1), (2, 2)])));
    assert!(contains(&interned, 6, &numbers(&[(1, 1), (2, 1), (3, 1)])));
    assert!(contains(&interned, 6, &numbers(&[(1, 2), (2, 2), (3, 2)])));
    let mut again = Message::default();
    assert_eq!(stacks.id(4, &mut again), 6);
    assert!(again.0.is_empty());
    // What is missing of a stack is its outermost frame.
    let mut cut = Message::default();
    assert_eq!(stacks.id(5, &mut cut), 7);
    assert!(contains(&cut, 7, &numbers(&[(1, 7), (2, 3), (2, 2)])));
    // It has no file, as `work`: theirs is one.
    assert!(contains(&cut, 6, &numbers(&[(1, 3), (2, 3), (3, 2)])));
    assert!(!contains(&cut, 6, &numbers(&[(1, 2), (2, 2), (3, 2)])));
}

#[test]
fn what_does_not_exist_has_one_stack() {
    let mut stacks = Callstacks::new(table());
    let mut interned = Message::default();
    for node in [-1, 0, 1, 2, 6, i64::MIN, i64::MAX] {
        assert_eq!(stacks.id(node, &mut interned), NO_FRAMES, "{node}");
    }
    let described = numbers(&[(1, NO_FRAMES), (2, 3)]);
    assert!(contains(&interned, 7, &described));
    assert_eq!(stacks.ids.len(), 1);
}

/// A tree of one deep chain: its stacks together have far more frames than it has nodes.
#[test]
fn a_deep_tree_is_described_up_to_a_bound() {
    let mut deep = table();
    deep.nodes.truncate(3);
    let nodes = 20_000_u32;
    deep.nodes
        .extend((0..nodes).map(|at| (if at == 0 { 0 } else { at + 2 }, 0)));
    let mut stacks = Callstacks::new(deep);
    let mut bytes = 0;
    for node in 3..i64::from(nodes) + 3 {
        let mut interned = Message::default();
        stacks.id(node, &mut interned);
        bytes += interned.0.len();
    }
    assert!(stacks.ids.len() < 17_500, "{}", stacks.ids.len());
    assert!(stacks.ids.contains(&NO_FRAMES));
    assert!(bytes < 3 * MOST_FRAMES, "{bytes}");
}
