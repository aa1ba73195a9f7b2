use super::*;

/// 1, 10, 100, 1000 in 24 bins over three decades lie in the first, the ninth, the seventeenth
/// and the last bin.
#[test]
fn a_histogram_by_hand() {
    let (edges, counts) = histogram(&[1.0, 10.1, 100.1, 1000.0], Scale::Ratio);
    assert_eq!((edges.len(), counts.len()), (25, 24));
    assert_eq!((counts[0], counts[8], counts[16], counts[23]), (1, 1, 1, 1));
    assert!((edges[8] - 10.0).abs() < 1e-9, "{edges:?}");
    assert_eq!(
        histogram(&[5.0, 5.0], Scale::Ratio),
        (vec![5.0, 5.0], vec![2])
    );
    let (edges, counts) = histogram(&[-1.0, 0.0, 1.0], Scale::Difference);
    assert_eq!(
        (edges[0], counts[0], counts[12], counts[23]),
        (-1.0, 1, 1, 1)
    );
}

#[test]
fn quantiles_by_hand() {
    let values: Vec<f64> = (0..=100).map(f64::from).collect();
    let found = distribution(0, values, Scale::Difference).unwrap();
    assert_eq!(found.quantiles, [0.0, 5.0, 25.0, 50.0, 75.0, 95.0, 100.0]);
    assert!(distribution(0, vec![], Scale::Ratio).is_none());
}
