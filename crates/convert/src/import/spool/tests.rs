use super::*;

#[test]
fn what_comes_in_any_order_leaves_in_order() {
    let dir = tempfile::tempdir().unwrap();
    for n in [0, 1, 99, 100, 101, 1000] {
        let mut spool = Spool::new(dir.path());
        spool.most = 100;
        // 7919 is prime: every value occurs once, in irregular order.
        for i in 0..n {
            spool.push([i * 7919 % n, i, 0, 0, 0, 0, -i]).unwrap();
        }
        assert_eq!(spool.len(), n as u64);
        let mut sorted = spool.sorted().unwrap();
        let mut found = Vec::new();
        while let Some(record) = sorted.next().unwrap() {
            assert_eq!(record[6], -record[1]);
            found.push(record[0]);
        }
        assert!(found.iter().copied().eq(0..n), "{n}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
