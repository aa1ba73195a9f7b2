use statrs::distribution::{ContinuousCDF as _, StudentsT};

use super::*;

/// Quantiles of a t distribution at the middles of n equal shares: the sample that is most like
/// it.
fn like_t(degrees: f64, n: usize, error: f64) -> Vec<Option<Figure>> {
    let t = StudentsT::new(5.0, 0.1, degrees).unwrap();
    let at = |i: usize| t.inverse_cdf((i as f64 + 0.5) / n as f64);
    (0..n)
        .map(|i| {
            Some(Figure {
                value: at(i),
                error,
            })
        })
        .collect()
}

/// Printed tables: 1.960 / 0.6745, 2.776 / 0.7407, 3.182 / 0.7649 (two-sided 0.05
/// and 0.5).
#[test]
fn tails_match_the_printed_tables() {
    for (degrees, ratio) in [
        (1e9, 1.960 / 0.6745),
        (4.0, 2.776 / 0.7407),
        (3.0, 3.182 / 0.7649),
    ] {
        assert!(
            (tail_of(degrees, 0.95).exp() - ratio).abs() < 0.01,
            "{degrees}"
        );
        let found = degrees_of(ratio.ln(), 0.95);
        let wanted = f64::min(degrees, MOST_DEGREES);
        assert!(
            (1.0 / found - 1.0 / wanted).abs() < 0.01,
            "{found} {degrees}"
        );
    }
    assert_eq!(degrees_of(9.0, 0.95), 1.0);
}

#[test]
fn a_fleet_is_found_as_it_is() {
    for degrees in [3.0, 6.0, 1e6] {
        let columns: Vec<_> = (0..20).map(|_| (like_t(degrees, 1000, 0.0), 0.0)).collect();
        for found in peers(&columns).into_iter().flatten() {
            // The sample's middle deviation is that of t, not of a normal one.
            let middle = upper(degrees, 0.5) / MIDDLE;
            assert!((found.centre - 5.0).abs() < 1e-9, "{found:?}");
            assert!(
                (found.scatter / (0.1 * middle) - 1.0).abs() < 0.02,
                "{found:?}"
            );
            // Heavier than the truth by the uncertainty of the tails, never lighter.
            assert!(
                1.0 / found.degrees > 1.0 / degrees - 0.005,
                "{degrees} {found:?}"
            );
            let least = 1.0 / f64::min(degrees, MOST_DEGREES);
            assert!(1.0 / found.degrees < least + 0.06, "{degrees} {found:?}");
        }
    }
}

/// Errors of the machines as large as the scatter between them are subtracted from it. A
/// machine with a wide interval is not an outlier, where one with a narrow interval is.
#[test]
fn own_errors_are_known() {
    let found = peers(&[(like_t(1e6, 1000, 0.06), 0.0)])[0].unwrap();
    // The root of 0.1^2 - 0.06^2.
    assert!((found.scatter - 0.08).abs() < 0.001, "{found:?}");
    let at = |error| Figure { value: 6.0, error };
    assert!(found.p(at(0.06)) < 1e-6, "{}", found.p(at(0.06)));
    assert!(found.p(at(0.6)) > 0.05);
}

/// All machines but three are equal: a difference below the floor counts as none.
#[test]
fn machines_that_agree() {
    let mut figures = vec![
        Some(Figure {
            value: 2.3,
            error: 0.0
        });
        200
    ];
    figures[7] = Some(Figure {
        value: 2.305,
        error: 0.0,
    });
    figures[9] = Some(Figure {
        value: 5.3,
        error: 0.0,
    });
    let found = peers(&[(figures.clone(), 0.01)])[0].unwrap();
    assert!(found.p(figures[7].unwrap()) > 0.5);
    assert!(found.p(figures[9].unwrap()) < 1e-6, "{found:?}");
    assert_eq!(found.p(figures[0].unwrap()), 1.0);
}

/// One in ten lies far out: that is normal for this fleet.
#[test]
fn what_many_do_is_no_outlier() {
    let figures: Vec<_> = (0..500)
        .map(|i| {
            let value = if i % 10 == 0 {
                3.0
            } else {
                0.001 * (i % 7) as f64
            };
            Some(Figure { value, error: 0.0 })
        })
        .collect();
    let found = peers(&[(figures.clone(), 0.01)])[0].unwrap();
    assert!(found.p(figures[0].unwrap()) > 0.01, "{found:?}");
}

#[test]
fn nine_are_too_few() {
    assert_eq!(peers(&[(like_t(1e6, 9, 0.0), 0.0)]), [None]);
    assert!(peers(&[(like_t(1e6, 10, 0.0), 0.0)])[0].is_some());
}
