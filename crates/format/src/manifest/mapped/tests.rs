use super::*;

#[test]
fn lines_by_hand() {
    let knots = [[0, 1000, 10], [10, 1011, 13], [20, 1011, 10]];
    let found: Vec<_> = (0..=20).map(|t| at(&knots, t).unwrap()).collect();
    assert_eq!(found[..4], [(1000, 10), (1001, 11), (1002, 11), (1003, 11)]);
    assert_eq!(found[10..12], [(1011, 13), (1011, 13)]);
    assert_eq!(found[20], (1011, 10));
    assert!(found.is_sorted_by_key(|(ts, _)| *ts));
    assert_eq!((at(&knots, -1), at(&knots, 21)), (None, None));
    let mut cursor = Cursor::new(&knots);
    for (t, (ts, _)) in (0..).zip(&found).chain((0..).zip(&found)) {
        assert_eq!(cursor.ts_at(t), Some(*ts), "{t}");
    }
    assert_eq!((cursor.ts_at(-1), cursor.ts_at(21)), (None, None));
}

#[test]
fn far_readings_lose_no_bit() {
    // 30 days at 3 GHz, 100 ppm fast.
    let days = 30 * 86_400 * 3_000_000_000_i64;
    let knots = [[0, 7, 1], [days, 7 + days + days / 10_000, 1]];
    for local in [1, 9_999, 10_000, days / 2, days - 1] {
        let (ts, _) = at(&knots, local).unwrap();
        assert_eq!(ts, 7 + local + local / 10_000, "{local}");
    }
    let far = [[i64::MIN, i64::MIN, 0], [i64::MAX, i64::MAX, 0]];
    assert_eq!(at(&far, 12_345), Some((12_345, 0)));
}
