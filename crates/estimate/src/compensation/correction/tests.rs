use super::*;

fn paired(t1: f64, tm: f64, t4: f64) -> Paired {
    Paired { t1, tm, t4 }
}

/// eq. 1: 100 - (20 + 30) / 2 = 75.
#[test]
fn the_published_correction_by_hand() {
    assert_eq!(Correction::pairs().apply(&paired(20.0, 100.0, 30.0)), 75.0);
    assert_eq!(
        Correction::constant(22.0).apply(&paired(20.0, 100.0, 30.0)),
        78.0
    );
}

/// tm = 3 + 0.25 t1 + 0.75 t4 exactly, on a grid of pairs.
#[test]
fn exact_slopes_are_found() {
    let samples: Vec<_> = (0..400)
        .map(|i| {
            let (t1, t4) = (20.0 + f64::from(i % 20), 20.0 + f64::from(i / 20));
            paired(t1, 3.0 + 0.25 * t1 + 0.75 * t4, t4)
        })
        .collect();
    let c = control_variate(&samples);
    assert!((c.b1 - 0.25).abs() < 1e-6, "{c:?}");
    assert!((c.b4 - 0.75).abs() < 1e-6, "{c:?}");
    assert!((c.constant - 3.0).abs() < 1e-4, "{c:?}");
}

/// 2 % of the intervals are disturbed by 1000 ticks, and so are another 2 % of the pairs. Least
/// squares would move the slopes; the constant follows the mean.
#[test]
fn what_was_hit_does_not_move_the_slopes() {
    let samples: Vec<_> = (0..2000)
        .map(|i| {
            let (t1, t4) = (20.0 + f64::from(i % 20), 20.0 + f64::from(i / 20 % 20));
            let tm = 0.5 * t1 + 0.5 * t4 + f64::from(i32::from(i % 50 == 7)) * 1000.0;
            let t1 = t1 + f64::from(i32::from(i % 50 == 13)) * 1000.0;
            paired(t1, tm, t4)
        })
        .collect();
    let c = control_variate(&samples);
    assert!((c.b1 - 0.5).abs() < 0.05, "{c:?}");
    assert!((c.b4 - 0.5).abs() < 0.05, "{c:?}");
    let mean = samples.iter().map(|s| c.apply(s)).sum::<f64>() / 2000.0;
    assert!(mean.abs() < 1e-9, "{mean}");
}

/// A load that is on for a tenth of the samples makes everything 670 ticks longer; all else is
/// +-5 ticks of noise. If its pairs were cut at some 40 ticks over the others, slopes of about
/// 8 each would amplify the noise.
#[test]
fn a_load_that_is_seldom_on_is_believed() {
    let mut x = 1_u64;
    let mut noise = || {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        10.0 * ((x >> 40) as f64 / (1_u64 << 24) as f64 - 0.5)
    };
    let mut run = || -> Vec<Paired> {
        (0..3000)
            .map(|i| {
                let level = if i % 1000 < 100 { 1000.0 } else { 330.0 };
                paired(level + noise(), level + noise(), level + noise())
            })
            .collect()
    };
    let c = control_variate(&run());
    assert!((c.b1 + c.b4 - 1.0).abs() < 0.02, "{c:?}");
    // The noise has 10^2 / 12 = 8.3 ticks^2; half of two pairs adds half as much again.
    let left: Vec<f64> = run().iter().map(|s| c.apply(s)).collect();
    let variance = left.iter().map(|r| r * r).sum::<f64>() / left.len() as f64;
    assert!((10.0..16.0).contains(&variance), "{variance}");
}

#[test]
fn pairs_that_never_differ_get_no_slope() {
    let constant: Vec<_> = (0..200)
        .map(|i| paired(26.0, f64::from(i % 3), 26.0))
        .collect();
    let c = control_variate(&constant);
    assert_eq!((c.b1, c.b4), (0.0, 0.0));
    let equal: Vec<_> = (0..200)
        .map(|i| {
            let t = f64::from(i % 7);
            paired(t, 2.0 * t, t)
        })
        .collect();
    let c = control_variate(&equal);
    assert!((c.b1 - 1.0).abs() < 1e-9 && (c.b4 - 1.0).abs() < 1e-9);
    let few = control_variate(&equal[..99]);
    assert_eq!(few.b1, 0.0);
}

/// 1.4826 median deviations; where more than half are 0, the mean.
#[test]
fn scale_by_hand() {
    assert!((scale(&[1.0, -2.0, 9.0]) - 2.0 * 1.482_602_2).abs() < 1e-12);
    assert_eq!(scale(&[0.0, 0.0, 0.0, -8.0]), 2.0);
}

/// Nearly all pairs cost 10: the middle half has no width, the middle
/// nine tenths are 10 wide.
#[test]
fn a_fence_around_equal_pairs() {
    let mut samples = vec![paired(10.0, 0.0, 10.0); 80];
    samples.extend(vec![paired(20.0, 0.0, 10.0); 10]);
    samples.extend(vec![paired(10.0, 0.0, 20.0); 10]);
    assert_eq!(fence(&samples), (10.0 - FENCE * 10.0, 10.0 + FENCE * 10.0));
}
