use super::Joint;

/// Parts 1 and 2 with variances 1 and 3, whole 7 exactly: the missing 4 is shared 1:3, and the
/// variances fall to 1 - 1/4 and 3 - 9/4.
#[test]
fn two_parts_by_hand() {
    let mut joint = Joint::independent(&[1.0, 2.0], &[1.0, 3f64.sqrt()]).unwrap();
    let off = joint.constrain(&[1.0, 1.0], 7.0, 0.0).unwrap();
    assert!((off - 2.0).abs() < 1e-12);
    assert!((joint.values()[0] - 2.0).abs() < 1e-12);
    assert!((joint.values()[1] - 5.0).abs() < 1e-12);
    let sds = joint.sds();
    assert!((sds[0].powi(2) - 0.75).abs() < 1e-12 && (sds[1].powi(2) - 0.75).abs() < 1e-12);
    // Once the sum holds, the same condition adds nothing.
    assert_eq!(joint.constrain(&[1.0, 1.0], 7.0, 0.0), Some(0.0));
}

/// The same where the whole has a variance of 9: a missing 4 with variance 1 + 3 + 9, of which
/// each part takes its share.
#[test]
fn an_uncertain_whole_by_hand() {
    let mut joint = Joint::independent(&[1.0, 2.0], &[1.0, 3f64.sqrt()]).unwrap();
    let off = joint.constrain(&[1.0, 1.0], 7.0, 3.0).unwrap();
    assert!((off - 4.0 / 13f64.sqrt()).abs() < 1e-12);
    assert!((joint.values()[0] - (1.0 + 4.0 / 13.0)).abs() < 1e-12);
    assert!((joint.values()[1] - (2.0 + 12.0 / 13.0)).abs() < 1e-12);
    let sds = joint.sds();
    assert!((sds[0].powi(2) - (1.0 - 1.0 / 13.0)).abs() < 1e-12);
    assert!((sds[1].powi(2) - (3.0 - 9.0 / 13.0)).abs() < 1e-12);
}

/// Regression on a known mean: correlation 0.8 leaves 1 - 0.64.
#[test]
fn a_correlated_figure_of_known_mean() {
    let covariance = vec![vec![1.0, 0.8], vec![0.8, 1.0]];
    let mut joint = Joint::with_covariance(&[10.0, 5.0], &covariance).unwrap();
    joint.constrain(&[0.0, 1.0], 4.0, 0.0);
    assert!((joint.values()[0] - 9.2).abs() < 1e-12);
    assert!((joint.sds()[0].powi(2) - 0.36).abs() < 1e-12);
}

#[test]
fn wrong_shapes_are_none() {
    assert_eq!(Joint::independent(&[1.0], &[]), None);
    assert_eq!(Joint::with_covariance(&[1.0], &[vec![1.0, 2.0]]), None);
    let lopsided = vec![vec![1.0, 0.5], vec![0.0, 1.0]];
    assert_eq!(Joint::with_covariance(&[1.0, 2.0], &lopsided), None);
}
