use super::*;

#[test]
fn hulls_by_hand() {
    let points = [
        (0.0, 0.0),
        (1.0, 5.0),
        (2.0, 1.0),
        (3.0, 3.0),
        (3.0, 2.0),
        (4.0, 4.0),
    ];
    let hull = lower_hull(points.into_iter());
    assert_eq!(hull, [(0.0, 0.0), (2.0, 1.0), (3.0, 2.0), (4.0, 4.0)]);
    for slope in [-3.0, -0.1, 0.4, 0.7, 1.5, 9.0] {
        let all = points.iter().map(|(x, y)| y - slope * x);
        assert_eq!(least_over(&hull, slope), all.fold(f64::MAX, f64::min));
    }
}

/// Upper bounds 10 at -10 and at 10, lower bounds 0 there: lines through (-10, 0) and
/// (10, 10) or the other way round, so any value of 0..10 at 0 and, at 20, of -5..15.
#[test]
fn a_polygon_by_hand() {
    let constraints = |ahead: f64| [-10, 10].map(|at| Constraint { at, ahead });
    let bounds = |at: i64, wander: f64, rate: f64| {
        let moment = Moment {
            at,
            wander,
            rate,
            reach: f64::INFINITY,
        };
        let upper = moment.hull(&constraints(10.0), Side::Upper);
        let lower = moment.hull(&constraints(0.0), Side::Lower);
        moment.bounds(&upper, &lower).unwrap()
    };
    let is = |found: (f64, f64), lo: f64, hi: f64| {
        assert!(
            (found.0 - lo).abs() < 1e-9 && (found.1 - hi).abs() < 1e-9,
            "{found:?}"
        );
    };
    is(bounds(0, 0.0, 0.4), 0.0, 10.0);
    // The steepest line, slope 1/2, is 5 higher at 20 than at 10.
    is(bounds(20, 0.0, 1.0), -5.0, 15.0);
    // The rate is limited to 1/10.
    is(bounds(20, 0.0, 0.1), -1.0, 11.0);
    // At 0 the wander gives a tenth of the distance, 1, on both sides.
    is(bounds(0, 0.1, 0.4), -1.0, 11.0);
}

#[test]
fn no_tangent_is_no_answer() {
    let moment = Moment {
        at: 0,
        wander: 0.0,
        rate: 1e-3,
        reach: f64::INFINITY,
    };
    let upper = moment.hull(&[Constraint { at: 0, ahead: 1.0 }], Side::Upper);
    let lower = moment.hull(&[Constraint { at: 0, ahead: 2.0 }], Side::Lower);
    assert_eq!(moment.bounds(&upper, &lower), None);
}

/// All lines through two corners, or through one at a limit of the rate: the optimum of a
/// linear programme is at one of them. It is slow and simple, and uses no hull.
fn by_trying_all(upper: &[(f64, f64)], lower: &[(f64, f64)], rate: f64) -> Option<(f64, f64)> {
    let points: Vec<(f64, f64)> = upper.iter().chain(lower).copied().collect();
    let through = |(x, y): (f64, f64), slope: f64| (y - slope * x, slope);
    let mut lines: Vec<(f64, f64)> = Vec::new();
    for (i, &a) in points.iter().enumerate() {
        lines.extend([through(a, rate), through(a, -rate)]);
        for &b in points[..i].iter().filter(|b| b.0 != a.0) {
            lines.push(through(a, (b.1 - a.1) / (b.0 - a.0)));
        }
    }
    const NEAR: f64 = 1e-7;
    let is_allowed = |&(value, slope): &(f64, f64)| {
        slope.abs() <= rate * (1.0 + 1e-12)
            && upper.iter().all(|(x, y)| value + slope * x <= y + NEAR)
            && lower.iter().all(|(x, y)| value + slope * x >= y - NEAR)
    };
    lines.retain(is_allowed);
    let values = || lines.iter().map(|line| line.0);
    values().next().map(|_| {
        (
            values().fold(f64::MAX, f64::min),
            values().fold(f64::MIN, f64::max),
        )
    })
}

#[test]
fn the_programme_finds_what_trying_all_lines_finds() {
    use rand::{RngExt as _, SeedableRng as _};
    let (mut solved, mut empty) = (0, 0);
    for seed in 0..3000 {
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let moment = Moment {
            at: random.random_range(-50..150),
            wander: [0.0, 0.01, 0.3][random.random_range(0..3)],
            rate: [0.0, 0.05, 0.4][random.random_range(0..3)],
            reach: f64::INFINITY,
        };
        let slope = random.random_range(-0.3..0.3);
        let mut constraints = |side: f64| -> Vec<Constraint> {
            let many = random.random_range(1..8);
            let mut all: Vec<Constraint> = (0..many)
                .map(|_| {
                    let at = random.random_range(0..100);
                    let away = random.random_range(-2.0..20.0);
                    Constraint {
                        at,
                        ahead: slope * at as f64 + side * away,
                    }
                })
                .collect();
            all.sort_unstable_by_key(|c| c.at);
            all
        };
        let (upper, lower) = (constraints(1.0), constraints(-1.0));
        let slack = |all: &[Constraint], side: f64| -> Vec<(f64, f64)> {
            let away = |c: &Constraint| (c.at - moment.at) as f64;
            let relaxed = |c: &Constraint| c.ahead + side * moment.wander * away(c).abs();
            all.iter().map(|c| (away(c), relaxed(c))).collect()
        };
        let truth = by_trying_all(&slack(&upper, 1.0), &slack(&lower, -1.0), moment.rate);
        let hulls = (
            moment.hull(&upper, Side::Upper),
            moment.hull(&lower, Side::Lower),
        );
        match (moment.bounds(&hulls.0, &hulls.1), truth) {
            (Some((lo, hi)), Some((least, most))) => {
                let near = |a: f64, b: f64| (a - b).abs() < 1e-4;
                assert!(
                    near(lo, least) && near(hi, most),
                    "seed {seed}: {lo} {hi} {truth:?}"
                );
                solved += 1;
            }
            (None, None) => empty += 1,
            (found, truth) => panic!("seed {seed}: {found:?} {truth:?}"),
        }
    }
    assert!(solved > 500 && empty > 100, "{solved} {empty}");
}
