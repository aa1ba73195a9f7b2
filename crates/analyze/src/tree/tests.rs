use super::*;

fn calls(tree: &Tree) -> Vec<(u32, u32, u64, i128)> {
    (tree.nodes().iter())
        .map(|node| {
            let figures = &node.figures;
            (
                node.parent,
                node.interval().unwrap(),
                figures.calls,
                figures.ticks,
            )
        })
        .collect()
}

fn call(ticks: i64) -> Call {
    Call {
        ticks,
        off_cpu: 0,
        is_kept: true,
        calls: 1,
    }
}

#[test]
fn a_span_inside_one_of_its_name_belongs_to_the_outer_node() {
    let mut tree = Tree::default();
    let a = tree.child(Path::ROOT, 1);
    let b = tree.child(a, 2);
    let again = tree.child(b, 1);
    let below = tree.child(again, 3);
    assert_eq!(tree.child(a, 3), below);
    tree.add(again, 1, call(10));
    tree.add(a, 1, call(100));
    assert_eq!(
        calls(&tree),
        [(0, 1, 1, 100), (1, 2, 0, 0), (2, 1, 1, 10), (1, 3, 0, 0)]
    );
    let aliases: Vec<u32> = tree.nodes().iter().map(|node| node.alias_of).collect();
    assert_eq!(aliases, [1, 2, 1, 4]);
}

#[test]
fn rows_that_begin_nothing_lie_at_the_root_and_make_no_node() {
    let mut tree = Tree::default();
    let a = tree.child_if(true, Path::ROOT, 1);
    assert_ne!(a, Path::ROOT);
    assert_eq!(tree.child_if(false, a, 2), Path::ROOT);
    assert_eq!(tree.child_if(false, Path::ROOT, 1), Path::ROOT);
    assert_eq!(tree.nodes().len(), 1);
}

/// Pairs that share an entry of the table of recent children do not take each other's nodes.
#[test]
fn nodes_are_told_apart_where_entries_are_shared() {
    let mut tree = Tree::default();
    let outer: Vec<Path> = (0..60).map(|i| tree.child(Path::ROOT, i)).collect();
    let mut inner = HashMap::new();
    for (i, &around) in outer.iter().enumerate() {
        for interval in 100..160 {
            assert_eq!(
                inner.insert(tree.child(around, interval), (i, interval)),
                None
            );
        }
    }
    assert!(inner.len() > RECENT);
    for (&path, &(i, interval)) in &inner {
        assert_eq!(tree.child(outer[i], interval), path);
    }
}

#[test]
fn calls_without_room_are_counted_by_interval() {
    let mut tree = Tree::default();
    for interval in 0..MOST_PATHS as u32 {
        tree.child(Path::ROOT, interval);
    }
    let nowhere = tree.child(Path::ROOT, 60_000);
    let inside = tree.child(nowhere, 3);
    tree.add(nowhere, 60_000, call(5));
    tree.add(inside, 3, call(2));
    assert_eq!(tree.beyond(60_000), (1, 5));
    assert_eq!(tree.beyond(3), (1, 2));
    assert_eq!(tree.nodes().len(), MOST_PATHS);
    assert!(tree.nodes().iter().all(|node| node.figures.calls == 0));
}

#[test]
fn shards_are_merged_by_path() {
    let shard = |names: &[u32]| {
        let mut tree = Tree::default();
        let mut around = Path::ROOT;
        for (&interval, ticks) in names.iter().zip([100, 10, 1]) {
            around = tree.child(around, interval);
            tree.add(around, interval, call(ticks));
        }
        tree.take()
    };
    let mut tree = Tree::default();
    tree.merge(shard(&[1, 2, 3]), Some);
    // There the first interval has the number 5, and the third none here.
    tree.merge(shard(&[5, 2, 9]), |place| match place {
        5 => Some(1),
        9 => None,
        same => Some(same),
    });
    assert_eq!(calls(&tree), [(0, 1, 2, 200), (1, 2, 2, 20), (2, 3, 1, 1)]);
}
