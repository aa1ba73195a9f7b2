use super::*;
use crate::block::BlockHeader;

/// Makes a file of blocks, by ring and rows of each; a row's time is its number in the file.
fn file(blocks: &[(u32, usize)]) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("raw.utb");
    let (mut bytes, mut time) = (Vec::new(), 0);
    for &(ring, rows) in blocks {
        let records: Vec<[u64; 2]> = (0..rows as u64).map(|i| [time + i, 0]).collect();
        time += rows as u64;
        let header = BlockHeader {
            ring,
            pid: 1,
            tid: 1,
            position: 0,
            records: rows as u32,
        };
        block::encode(header, &records, &mut bytes);
    }
    std::fs::write(&path, bytes).unwrap();
    (dir, path)
}

/// Returns ring and first time of the blocks of each piece.
fn pieces(groups: &mut RawGroups) -> Vec<Vec<(u32, u64)>> {
    let mut pieces = Vec::new();
    let mut records = Vec::new();
    let mut bytes = Vec::new();
    while groups.next_group(&mut bytes).unwrap() {
        let mut rest = &bytes[..];
        let mut piece = Vec::new();
        while let block::Next::Block(header, bytes) = block::decode(rest, &mut records) {
            piece.push((header.ring, records[0].ts));
            rest = &rest[bytes..];
        }
        assert!(rest.is_empty());
        pieces.push(piece);
    }
    pieces
}

#[test]
fn ring_by_ring_and_in_order_within() {
    let (_dir, path) = file(&[(2, 3), (0, 1), (2, 5), (1, 4), (0, 2)]);
    let mut groups = RawGroups::open(&path).unwrap();
    let one = [(0, 3), (0, 13), (1, 9), (2, 0), (2, 4)];
    assert_eq!(pieces(&mut groups), [one]);
    assert_eq!((groups.share(), groups.damaged), (1.0, false));
    assert!(groups.is_by_ring());
}

/// 8 blocks of 8192 rows suffice for the next ring to begin a piece, and 64 fill one; a small
/// ring joins the ones before it.
#[test]
fn pieces_end_where_rings_end() {
    let mut blocks = vec![(5, 8192); 70];
    blocks.extend([(6, 10), (7, 10)]);
    blocks.extend([(4, 8192); 8]);
    let (_dir, path) = file(&blocks);
    let sizes: Vec<Vec<u32>> = pieces(&mut RawGroups::open(&path).unwrap())
        .iter()
        .map(|piece| {
            let mut rings: Vec<u32> = piece.iter().map(|&(ring, _)| ring).collect();
            rings.push(piece.len() as u32);
            rings.dedup();
            rings
        })
        .collect();
    assert_eq!(sizes, [vec![4, 8], vec![5, 64], vec![5, 6, 7, 8]]);
}

#[test]
fn more_blocks_than_fit_are_ordered_piece_by_piece() {
    let (_dir, path) = file(&[(2, 1), (0, 1), (1, 1), (0, 1), (2, 1)]);
    let mut groups = RawGroups::open(&path).unwrap();
    groups.most_blocks = 2;
    let expected = [vec![(0, 1), (2, 0)], vec![(0, 3), (1, 2)], vec![(2, 4)]];
    assert_eq!(pieces(&mut groups), expected);
    assert!(!groups.is_by_ring());
}

#[test]
fn a_cut_file_ends_and_a_damaged_one_says_so() {
    let (_dir, path) = file(&[(1, 100), (0, 100), (1, 100)]);
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    let mut groups = RawGroups::open(&path).unwrap();
    assert_eq!(pieces(&mut groups), [[(0, 100), (1, 0)]]);
    assert!(!groups.damaged);
    let third = whole.len() / 3;
    for (at, left) in [
        (third + 60, vec![vec![(1, 0)]]),
        (third, vec![vec![(1, 0)]]),
        (3, vec![]),
    ] {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        std::fs::write(&path, bytes).unwrap();
        let mut groups = RawGroups::open(&path).unwrap();
        assert_eq!(pieces(&mut groups), left, "{at}");
        assert!(groups.damaged, "{at}");
    }
}

/// An index has the pieces in their order, and can read them in any.
#[test]
fn an_index_reads_pieces_in_any_order() {
    let mut blocks = vec![(5, 8192); 70];
    blocks.extend([(6, 10), (7, 10)]);
    blocks.extend([(4, 8192); 8]);
    let (_dir, path) = file(&blocks);
    let index = RawIndex::open(&path).unwrap();
    let groups: Vec<RowGroup> = index.groups().collect();
    assert_eq!(
        groups,
        [
            (Some((4, 4)), 8 * 8192),
            (Some((5, 5)), 64 * 8192),
            (Some((5, 7)), 6 * 8192 + 20),
        ]
    );
    let mut in_order = RawGroups::open(&path).unwrap();
    let mut pieces = Vec::new();
    let mut piece = Vec::new();
    while in_order.next_group(&mut piece).unwrap() {
        pieces.push(piece.clone());
    }
    for group in [2, 0, 1, 0] {
        index.read(group, &mut piece).unwrap();
        assert!(piece == pieces[group], "{group}");
    }
}

/// Only a file of whole blocks has an index.
#[test]
fn an_index_is_of_whole_blocks_only() {
    let (_dir, path) = file(&[(1, 100), (0, 100), (1, 100)]);
    let whole = std::fs::read(&path).unwrap();
    assert!(RawIndex::open(&path).is_ok());
    let changed = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        bytes
    };
    for bytes in [
        whole[..whole.len() - 1].to_vec(),
        [&whole[..], &whole[..20]].concat(),
        [&whole[..], b"x"].concat(),
        changed(3),
        changed(whole.len() / 2),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let error = RawIndex::open(&path).unwrap_err();
        assert!(matches!(error, TraceError::Damaged { .. }), "{error}");
    }
    std::fs::write(&path, b"").unwrap();
    assert_eq!(RawIndex::open(&path).unwrap().groups().count(), 0);
}
