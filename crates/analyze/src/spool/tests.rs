use super::*;

/// 7 (i mod 1009) - 3000 falls back again and again; the expected order is that of the
/// standard library.
fn records(n: i64) -> Vec<Words> {
    (0..n)
        .map(|i| [i % 3, (i * 7) % 1009 - 300, i, -i])
        .collect()
}

#[test]
fn in_order_from_memory_from_files_and_from_both() {
    for n in [0, 10, 5000] {
        for cuts in [1, 3] {
            let mut spool = Spool::default();
            for piece in records(n).chunks((n as usize / cuts).max(1)) {
                let mut part = Spool::default();
                piece.iter().for_each(|&record| part.push(record));
                if cuts > 1 {
                    part.write_out();
                    assert!(part.tail.is_empty());
                }
                part.push([9, 9, 9, 9]);
                spool.append(part);
            }
            let found: Vec<Words> = spool.clone().sorted().collect();
            let mut wanted = records(n);
            let pieces = wanted.chunks((n as usize / cuts).max(1)).len();
            wanted.extend(vec![[9, 9, 9, 9]; pieces]);
            wanted.sort_unstable();
            assert_eq!(found, wanted, "{n} in {cuts}");
            // Sent to another machine and back.
            assert_eq!(Vec::from(spool), wanted);
        }
    }
}

#[test]
fn a_full_one_goes_to_a_file() {
    let mut spool = Spool::default();
    (0..MOST as i64 + 5).for_each(|i| spool.push([-i, 0, 0, 0]));
    assert_eq!((spool.runs.len(), spool.tail.len()), (1, 5));
    assert!(spool.sorted().map(|r| r[0]).eq(-(MOST as i64 + 4)..=0));
}
