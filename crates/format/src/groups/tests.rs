use super::*;

const M: u64 = 1 << 20;

fn shape(groups: &[Group]) -> Vec<(usize, u64)> {
    (groups.iter())
        .map(|group| (group.row_groups.len(), group.rows))
        .collect()
}

#[test]
fn cut_between_rings_when_there_is_enough() {
    let rings = [(0, 0), (0, 0), (0, 2), (3, 3), (4, 9), (10, 10), (10, 10)];
    let rows = rings.map(|rings| (Some(rings), M / 2));
    let parts = [(true, vec![(Some((-1, -1)), 5)]), (true, rows.to_vec())];
    let found = groups(&parts);
    // Ring 10 continues, so it is not cut.
    assert_eq!(shape(&found), [(3, 3 * M / 2), (2, M), (2, M)]);
    assert!(found.iter().all(|group| group.by_ring));
    assert_eq!(found[1].row_groups, [(1, 3), (1, 4)]);
}

#[test]
fn at_most_64_pieces() {
    let rows: Vec<RowGroup> = (0..1000).map(|i| (Some((i, i)), M)).collect();
    let found = groups(&[(true, rows)]);
    assert_eq!(found.len(), 63);
    assert_eq!(found.iter().map(|group| group.rows).sum::<u64>(), 1000 * M);
}

#[test]
fn mixed_rings_are_one_piece() {
    let rows = |rings: &[(i32, i32)]| -> Vec<RowGroup> {
        rings.iter().map(|&rings| (Some(rings), 2 * M)).collect()
    };
    for parts in [
        vec![(false, rows(&[(0, 0), (1, 1)]))],
        vec![(true, rows(&[(1, 1), (0, 0)]))],
        vec![(true, rows(&[(0, 5), (3, 9)]))],
        vec![(true, rows(&[(0, 1)])), (true, rows(&[(0, 1)]))],
        vec![(true, vec![(None, 2 * M), (Some((4, 4)), 2 * M)])],
    ] {
        let found = groups(&parts);
        assert_eq!(shape(&found), [(2, 4 * M)], "{parts:?}");
        assert!(!found[0].by_ring);
    }
    assert!(groups(&[(true, vec![(Some((-1, -1)), 9)])]).is_empty());
}
