use super::*;

/// Three CPUs, two visits. By hand: means 2.0, 3.1, 2.5; the median is 2.5 at both visits, with
/// a half-spread of 0.1.
#[test]
fn three_cpus_by_hand() {
    let found = metrics(
        &[
            (0, vec![1.9, 2.1]),
            (4, vec![3.0, 3.2]),
            (5, vec![2.4, 2.6]),
        ],
        0.95,
    );
    let value = |id: &str| found.iter().find(|m| m.id == id).unwrap().estimate.value;
    for (id, wanted) in [
        ("speed.typical", 2.5),
        ("speed.slowest", 2.0),
        ("speed.cpu.4", 3.1),
        ("speed.spread", 0.55),
    ] {
        assert!((value(id) - wanted).abs() < 1e-12, "{id}: {}", value(id));
    }
    assert_eq!(found.len(), 6);
    let typical = &found[0].estimate;
    // Two numbers 0.2 apart: standard error 0.1, t(0.975; 1) = 12.706.
    assert!(
        (typical.interval.half_width().unwrap() - 1.2706).abs() < 1e-3,
        "{typical:?}"
    );
    assert_eq!((typical.n, typical.n_effective), (32, 2.0));
}

#[test]
fn one_cpu_has_no_spread() {
    let found = metrics(&[(7, vec![2.0, 2.0, 2.1])], 0.95);
    let ids: Vec<&str> = found.iter().map(|m| m.id.as_str()).collect();
    assert_eq!(ids, ["speed.typical", "speed.cpu.7"]);
    assert!(metrics(&[(0, vec![])], 0.95).is_empty());
}
