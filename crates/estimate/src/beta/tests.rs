use super::*;

fn near(found: f64, truth: f64, relative: f64) -> bool {
    (found - truth).abs() <= relative * truth.abs()
}

/// Values of the incomplete beta integral with 40 digits (mpmath 1.3), and one by hand:
/// 1 - 0.7^4 - 4 0.3 0.7^3.
#[test]
fn cdf_matches_mpmath() {
    for (a, b, x, truth) in [
        (2.0, 3.0, 0.3, 0.3483),
        (0.5, 0.5, 0.2, 0.295_167_235_300_866_5),
        (310.0, 4_005_180.0, 8.6e-5, 0.971_838_327_375_892_4),
        (310.0, 4_005_180.0, 6e-5, 9.323_985_086_531_668e-6),
        (500.0, 500.0, 0.52, 0.897_082_472_693_003),
    ] {
        let found = cdf(a, b, x);
        assert!(near(found, truth, 1e-10), "{a} {b} {x}: {found}");
        let other = cdf(b, a, 1.0 - x);
        assert!(
            near(1.0 - other, truth, 1e-10),
            "the other end of {a} {b} {x}: {other}"
        );
    }
}

/// Values of another implementation (SciPy 1.17, Boost's).
#[test]
fn quantiles_match_scipy() {
    for (a, b, p, truth) in [
        (1.0, 4e6, 0.975, 9.222_194_382_838_762e-7),
        (310.0, 4_005_180.0, 0.975, 8.624_273_536_992_159e-5),
        (309.0, 4_005_181.0, 0.025, 6.878_181_499_919_384e-5),
        (500_001.0, 500_000.0, 0.975, 0.500_980_480_804_688_2),
        (5e5, 500_001.0, 0.025, 0.499_019_519_195_311_84),
        (5e8, 500_000_001.0, 0.025, 0.499_969_009_748_422_3),
        (100_000_001.0, 9e8, 0.975, 0.100_018_595_508_731_77),
        (12.0, 989.0, 0.025, 0.006_215_525_559_595_245),
        (3.0, 1.0, 0.2, 0.584_803_547_642_573_3),
        (1.0, 1.0, 0.37, 0.37),
    ] {
        let found = quantile(a, b, p);
        assert!(near(found, truth, 1e-9), "{a} {b} {p}: {found}");
    }
}

/// Each pair of shapes has a quantile, and the probability below it is the wanted one.
#[test]
fn every_quantile_terminates() {
    let sizes = || (0..=30).map(|i| 10f64.powf(f64::from(i) / 4.0 - 1.0).ceil());
    for (a, b) in sizes().flat_map(|a| sizes().map(move |b| (a, b))) {
        for p in [1e-6, 0.025, 0.5, 0.975] {
            let x = quantile(a, b, p);
            // A value one unit in the last place apart has another share.
            let apart = 4.0 * f64::EPSILON * density_times(a, b, x) / (x * (1.0 - x));
            assert!(
                (cdf(a, b, x) - p).abs() <= 1e-10 + apart,
                "{a} {b} {p}: {x}"
            );
        }
    }
}

/// Sums of probabilities that are computed one from another, with no gamma function.
#[test]
fn binomial_tails_are_sums() {
    for (n, p) in [(1, 0.5), (20, 0.3), (300, 0.02), (500, 0.7)] {
        let mut probability = (1.0f64 - p).powi(n as i32);
        let mut sum = 0.0;
        for k in 0..=n {
            sum += probability;
            let found = binomial_cdf(k, n, p);
            assert!((found - sum).abs() < 1e-12, "{k} of {n}: {found} for {sum}");
            probability *= (n - k) as f64 / (k + 1) as f64 * p / (1.0 - p);
        }
    }
    // SciPy 1.17.
    for (k, n, p, truth) in [
        (49_627_456, 99_255_012, 0.5, 0.496_035_742_198_397_9),
        (15, 100_000, 0.0001, 0.951_268_276_401_470_6),
        (500_100, 1_000_000, 0.5, 0.579_650_706_682_162_7),
    ] {
        let found = binomial_cdf(k, n, p);
        assert!(near(found, truth, 1e-9), "{k} of {n}: {found}");
    }
}

/// SciPy 1.17; Cauchy's distribution by hand: tan(pi (p - 1/2)).
#[test]
fn students_quantiles() {
    for (degrees, p, truth) in [
        (1.0, 0.975, 12.706_204_736_174_694),
        (1.0, 0.25, -1.0),
        (4.0, 0.975, 2.776_445_105_197_793_4),
        (23.5, 0.995, 2.802_018_366_362_082),
        (825_434.0, 0.95, 1.644_855_472_975_343_5),
        (1e9, 0.975, 1.959_963_986_912_325),
        (7.0, 0.99999, 10.102_684_252_974_544),
        (1e5, 0.999_999_9, 5.199_701_988_462_917),
        // 1 / tan(pi 1e-9)
        (
            1.0,
            1.0 - 1e-9,
            318_309_886.18 * (1e-9 / (1.0 - (1.0 - 1e-9f64))),
        ),
    ] {
        let found = student_quantile(degrees, p);
        assert!(near(found, truth, 1e-8), "{degrees} {p}: {found}");
    }
    assert_eq!(student_quantile(7.0, 0.5), 0.0);
}

#[test]
fn what_is_no_number_stays_none() {
    for (a, b, x) in [
        (f64::NAN, 1.0, 0.5),
        (1.0, f64::NAN, 0.5),
        (2.0, 2.0, f64::NAN),
    ] {
        assert!(cdf(a, b, x).is_nan() && quantile(a, b, x).is_nan());
    }
}

/// Printed values (Pearson and Hartley, table 18): 5 % of F exceed these.
#[test]
fn fisher_as_printed() {
    for (upper, lower, f) in [(1.0, 10.0, 4.96), (5.0, 20.0, 2.71), (10.0, 120.0, 1.91)] {
        let p = fisher_sf(f, upper, lower);
        assert!((p - 0.05).abs() < 2e-4, "{upper} {lower}: {p}");
    }
    assert_eq!(fisher_sf(f64::MAX, 3.0, 8.0), 0.0);
    assert_eq!(fisher_sf(-1.0, 3.0, 8.0), 1.0);
}
