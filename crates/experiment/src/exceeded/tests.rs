use super::*;

fn histogram(edges: &[f64], counts: &[u64]) -> Histogram {
    Histogram {
        unit: "ns".to_owned(),
        edges: edges.to_vec(),
        counts: counts.to_vec(),
    }
}

/// 10 s with 90 samples of 100 ns, 9 of 1000 and 1 of 10 000 (middles of the bins).
#[test]
fn once_in_by_hand() {
    let found = histogram(
        &[95.0, 105.0, 995.0, 1005.0, 9995.0, 10_005.0],
        &[90, 0, 9, 0, 1],
    );
    let level = |seconds| exceeded_once_in(seconds, 10.0, &found, 0.95).map(|e| e.value);
    // Ten in ten seconds: the tenth sample from above.
    assert_eq!(level(1.0), Some(1000.0));
    assert_eq!(level(10.0), Some(10_000.0));
    assert_eq!(level(0.5), Some(100.0));
    assert_eq!(level(10.1), None);
    let once_a_second = exceeded_once_in(1.0, 10.0, &found, 0.95).unwrap();
    // 10 +- 1.96 times the square root of 10, and one more: ranks 17.2 and 3.8.
    assert_eq!(once_a_second.interval, Interval::new(100.0, 1000.0));
    assert_eq!(once_a_second.n, 100);
}
