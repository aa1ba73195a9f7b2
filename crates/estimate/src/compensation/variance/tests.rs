use super::*;

const HALVES: Spread = Spread {
    s1: 1.0,
    s2: 0.5,
    s3: 0.5,
    s4: 1.0,
};

/// Published limits of eq. 4: 0 with all correlations 1; at worst 2 s^2, with the pairs
/// agreeing and the others opposed; 1 without correlation.
#[test]
fn limits_of_equation_4() {
    assert_eq!(variance_of_pairs(&HALVES, [1.0; 6]), 0.0);
    assert_eq!(variance_of_pairs(&HALVES, [0.0; 6]), 1.0);
    assert_eq!(
        variance_of_pairs(&HALVES, [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]),
        2.0
    );
}

/// By hand: s = 2, 3, 5, 7, one correlation at a time.
#[test]
fn every_term_of_equation_2() {
    let s = Spread {
        s1: 2.0,
        s2: 3.0,
        s3: 5.0,
        s4: 7.0,
    };
    let plain = 9.0 + 25.0 + 1.0 + 12.25;
    assert_eq!(variance_of_pairs(&s, [0.0; 6]), plain);
    for (i, term) in [-6.0, -10.0, 7.0, 30.0, -21.0, -35.0]
        .into_iter()
        .enumerate()
    {
        let mut r = [0.0; 6];
        r[i] = 1.0;
        assert_eq!(variance_of_pairs(&s, r), plain + term, "term {i}");
    }
}

/// Published limits of eq. 5: k 0.67 without correlation, variance 0 with full correlation.
#[test]
fn limits_of_equation_5() {
    let equal = |r13, r34, r14| Correlations {
        s1: 1.0,
        s3: 1.0,
        s4: 1.0,
        r13,
        r34,
        r14,
        ..Correlations::default()
    };
    assert_eq!(variance_of_pairs_short(&equal(0.0, 0.0, 0.0)), 1.5);
    assert_eq!(equal(0.0, 0.0, 0.0).k_of_pairs(), Some(1.0 / 1.5));
    assert_eq!(variance_of_pairs_short(&equal(1.0, 1.0, 1.0)), 0.0);
    assert_eq!(equal(1.0, 1.0, 1.0).k_of_pairs(), None);
    assert_eq!(variance_of_pairs_short(&equal(0.0, 0.0, 1.0)), 2.0);
    let uneven = Correlations {
        s1: 2.0,
        s3: 5.0,
        s4: 7.0,
        r13: 1.0,
        r34: 0.5,
        r14: 0.25,
        ..Correlations::default()
    };
    // 25 + 4/4 + 49/4 - 10 - 17.5 + 14 * 0.25 / 2.
    assert_eq!(variance_of_pairs_short(&uneven), 12.5);
}

/// Pairs 1, 2, 3 with intervals 2, 4, 9 and pairs 3, 1, 2, by hand:
/// variances 1, 13, 1; covariances 3.5, -1, -0.5.
#[test]
fn correlations_by_hand() {
    let samples = [(1.0, 2.0, 3.0), (2.0, 4.0, 1.0), (3.0, 9.0, 2.0)].map(|(t1, tm, t4)| Paired {
        t1,
        tm,
        t4,
    });
    let c = Correlations::from_samples(&samples, 6.0, true);
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
    near(c.s1, 1.0);
    near(c.s3, 13.0_f64.sqrt());
    near(c.s4, 1.0);
    near(c.r13, 3.5 / 13.0_f64.sqrt());
    near(c.r34, -1.0 / 13.0_f64.sqrt());
    near(c.r14, -0.5);
    near(c.r13_by_step, -0.5);
    let fine = Correlations::from_samples(&samples, 2.0, true);
    near(fine.r13_by_step, -1.0 / 3.0 / 13.0_f64.sqrt());
    assert_eq!(
        Correlations::from_samples(&samples, 6.0, false).r34_by_step,
        0.0
    );
    assert_eq!(Correlations::from_samples(&samples[..1], 6.0, true).s1, 0.0);
}
