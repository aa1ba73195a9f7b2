use super::*;

fn estimate(value: f64, lo: Option<f64>, hi: Option<f64>) -> Estimate {
    Estimate {
        value,
        interval: Interval { lo, hi },
        level: 0.95,
        unit: "1".into(),
        method: "test".into(),
        n: 100,
        n_effective: 100.0,
        notes: vec![],
    }
}

/// A factor without an end, one below 0 and one outside its interval are removed. What the
/// sampler adds may be below 0, because it is a difference.
#[test]
fn impossible_factors_are_not_given() {
    let method = |k: Estimate| Method {
        method: "pairs".into(),
        bias: estimate(-1.0, Some(-2.0), Some(0.5)),
        k: Some(k),
        k_uncut: Some(estimate(1.2, Some(1.0), Some(1.5))),
        correlations: Correlations::default(),
        doses: vec![],
        corrected: Histogram::default(),
    };
    let found = Calibrate {
        schema_version: 1,
        clock: "tsc".into(),
        load: "none".into(),
        methods: vec![
            method(estimate(2.0, Some(1.5), Some(3.0))),
            method(estimate(2.0, Some(1.5), None)),
            method(estimate(-2.0, Some(-3.0), Some(1.0))),
        ],
        chosen: "pairs".into(),
        why: String::new(),
        granularity_ns: 10.0,
        n: 100,
        culled: Culled::default(),
        cost_empty: estimate(20.0, Some(19.0), Some(21.0)),
        cost_dosed: estimate(20.0, Some(19.0), Some(21.0)),
        sampler_perturbation: Some(estimate(-1.0, Some(-2.0), Some(0.5))),
        sampler_slowdown: Some(estimate(5.0, Some(1.0), Some(2.0))),
        sampler_distance_ns: None,
        uncorrected: Histogram::default(),
        notes: vec!["first".into()],
    }
    .without_impossible();
    let ks: Vec<Option<f64>> = found
        .methods
        .iter()
        .map(|m| Some(m.k.as_ref()?.value))
        .collect();
    assert_eq!(ks, [Some(2.0), None, None]);
    assert!(found.methods.iter().all(|m| m.k_uncut.is_some()));
    assert!(found.sampler_perturbation.is_some() && found.sampler_slowdown.is_none());
    assert_eq!(found.notes.len(), 4, "{:?}", found.notes);
    assert!(found.notes[1].contains("k of pairs (a ratio to what may be 0)"));
    assert!(found.notes[2].contains("(below 0)"), "{:?}", found.notes);
    assert!(found.notes[3].contains("by the sampler (outside its own interval)"));
}

/// Values on a grid of 10 get one bin each, and every value is counted.
#[test]
fn a_grid_gets_a_bin_a_step() {
    let values: Vec<f64> = (0..300).map(|i| 20.0 + 10.0 * f64::from(i % 3)).collect();
    let h = density_of(&values, 10.0);
    assert_eq!(h.edges, [15.0, 25.0, 35.0, 45.0]);
    assert_eq!(h.counts, [100, 100, 100]);
}

/// A thousand values over 100 ns and one far away take at most 24 bins, with the far one in the
/// last.
#[test]
fn far_values_are_gathered() {
    let mut values: Vec<f64> = (0..1000).map(|i| f64::from(i) / 10.0).collect();
    values.push(1e6);
    let h = density_of(&values, 0.0);
    assert!(h.counts.len() <= 24, "{}", h.counts.len());
    assert_eq!(h.counts.iter().sum::<u64>(), 1001);
    assert!(*h.edges.last().unwrap() < 120.0);
    assert_eq!(density_of(&[], 1.0).counts, [0]);
}
