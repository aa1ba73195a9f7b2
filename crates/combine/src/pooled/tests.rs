use super::*;

fn histogram_of(edges: &[f64], counts: &[u64]) -> Histogram {
    Histogram {
        unit: "ns".to_owned(),
        edges: edges.to_vec(),
        counts: counts.to_vec(),
    }
}

#[test]
fn cells_of_all_repetitions_add_up() {
    let a = histogram_of(&[5.0, 15.0, 25.0], &[1, 2]);
    let b = histogram_of(&[15.0, 25.0, 35.0], &[3, 4]);
    // Far away: with an empty cell between.
    let c = histogram_of(&[95.0, 105.0], &[5]);
    assert_eq!(
        histogram(&[&a, &b, &c], 10.0, 2.0),
        histogram_of(&[3.0, 13.0, 23.0, 33.0, 93.0, 103.0], &[1, 5, 4, 0, 5])
    );
}

/// Steps that begin elsewhere: nothing is lost, and edges ascend.
#[test]
fn another_lattice_is_taken_in() {
    let a = histogram_of(&[0.0, 10.0, 20.0], &[1, 1]);
    let b = histogram_of(&[7.0, 17.0], &[1]);
    let both = histogram(&[&a, &b], 10.0, 0.0);
    assert_eq!(both.counts.iter().sum::<u64>(), 3);
    assert!(both.edges.windows(2).all(|e| e[0] < e[1]), "{both:?}");
    assert_eq!(both.edges.len(), both.counts.len() + 1);
}

/// Six repetitions of 7 us, two of 32 us: two modes, whose shares are known no better than
/// from eight repetitions.
#[test]
fn modes_of_repetitions() {
    let edges = |at: f64| [at - 500.0, at - 100.0, at + 100.0, at + 500.0];
    let of_one = |at: f64| histogram_of(&edges(at), &[100, 800, 100]);
    let all: Vec<Histogram> = (0..8)
        .map(|i| of_one(if i < 6 { 7000.0 } else { 32_000.0 }))
        .collect();
    let pooled = histogram(&all.iter().collect::<Vec<_>>(), 10.0, 0.0);
    let each: Vec<&Histogram> = all.iter().collect();
    let found = modes(&pooled, &each, 0.0, 8000.0, 10.0, 0.95);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!((found[0].at - 7000.0).abs() < 500.0 && (found[1].at - 32_000.0).abs() < 500.0);
    assert!((found[0].share - 0.75).abs() < 1e-9, "{found:?}");
    let interval = found[0].share_interval.as_ref().unwrap();
    assert!((interval.value - 0.75).abs() < 1e-9);
    // Student's t with 7 degrees: 2.365 * 0.463 / sqrt(8) = 0.387; skewness is corrected.
    let half = interval.interval.half_width().unwrap();
    assert!((0.25..=0.6).contains(&half), "{half}");
    assert!(found[0].valley.is_some() && found[1].valley.is_none());
}

/// Eight repetitions at eight places: no modes.
#[test]
fn what_scatters_has_one_mode() {
    let at = [
        5000.0, 9000.0, 15_000.0, 25_000.0, 40_000.0, 70_000.0, 120_000.0, 200_000.0,
    ];
    let one = |at: f64| histogram_of(&[at * 0.99, at, at * 1.01], &[500, 500]);
    let all: Vec<Histogram> = at.map(one).to_vec();
    let each: Vec<&Histogram> = all.iter().collect();
    let pooled = histogram(&each, 10.0, 0.0);
    let found = modes(&pooled, &each, 0.0, 8000.0, 10.0, 0.95);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!((found[0].share - 1.0).abs() < 1e-9);
}
