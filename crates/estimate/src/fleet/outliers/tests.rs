use super::*;

#[test]
fn weighted_medians_by_hand() {
    let of = |values: &[(f64, f64)]| weighted_median(values.to_vec());
    assert_eq!(
        of(&[(3.0, 1.0), (1.0, 1.0), (2.0, 1.0), (9.0, 1.0), (8.0, 1.0)]),
        Some(3.0)
    );
    // Half of 14 is reached at the 7 that weighs 10.
    assert_eq!(
        of(&[(1.0, 1.0), (2.0, 1.0), (3.0, 1.0), (7.0, 10.0), (9.0, 1.0)]),
        Some(7.0)
    );
    assert_eq!(of(&[(1.0, 1.0); 4]), None);
}

/// Two machines of a hundred have p 1e-5 in one of two quantities each: Simes 2e-5, adjusted
/// 2e-5 * 100 / 2 = 1e-3, five times that with the margin. Within a machine the level is 0.01 *
/// 2 / 100 = 2e-4: the second finding of machine 3, p 1e-4, is in; 3e-4 is not.
#[test]
fn machines_first_then_what_it_is() {
    let finding = |p| Finding {
        quantity: Quantity::Column(0),
        apart: 1.0,
        deviation: 1.0,
        p,
    };
    let mut findings = vec![vec![finding(0.4), finding(0.9)]; 100];
    findings[3] = vec![finding(1e-4), finding(1e-5)];
    findings[50] = vec![finding(1e-5), finding(3e-4)];
    let found = discovered(&findings, 0.05);
    assert_eq!(found.iter().map(|o| o.machine).collect::<Vec<_>>(), [3, 50]);
    assert!((found[0].p - 2e-5).abs() < 1e-12 && (found[0].adjusted - 5e-3).abs() < 1e-12);
    assert_eq!(
        found[0].findings.iter().map(|f| f.p).collect::<Vec<_>>(),
        [1e-5, 1e-4]
    );
    assert_eq!(found[1].findings.len(), 1);
}

#[test]
fn of_nothing() {
    let wanted = Wanted {
        false_share: 0.05,
        slowness_floor: 0.01,
        noise_floor: Some(0.1),
    };
    assert!(outliers(&[], wanted).machines.is_empty());
    let column = Column {
        figures: vec![None; 20],
        floor: 0.01,
        slower: 1.0,
        is_noise: true,
    };
    let found = outliers(&[column], wanted);
    assert!(found.machines.is_empty() && found.peers == [None]);
}
