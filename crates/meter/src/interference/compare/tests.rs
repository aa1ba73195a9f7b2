use super::*;

fn estimate(value: f64, half: f64) -> Estimate {
    made(value, Some(half), [&blank(), &blank()], "given")
}

fn blank() -> Estimate {
    Estimate {
        value: 0.0,
        interval: Interval { lo: None, hi: None },
        level: 0.95,
        unit: "1".into(),
        method: String::new(),
        n: 10,
        n_effective: 10.0,
        notes: Vec::new(),
    }
}

/// Rates 100 +- 3 and 80 +- 4, losses 0.1 +- 0.02 and 0.3 +- 0.01, by hand:
/// speeds 90 (2.7, 2) = +- 3.36 and 56 (2.8, 0.8) = +- 2.91; ratio 1.607 with
/// 0.0373 and 0.0520: +- 0.103.
#[test]
fn the_value_of_a_change_by_hand() {
    let (now, then) = (estimate(100.0, 3.0), estimate(80.0, 4.0));
    let (a, b) = (
        speed(&now, &estimate(0.1, 0.02)),
        speed(&then, &estimate(0.3, 0.01)),
    );
    assert!((a.value - 90.0).abs() < 1e-9 && (half(&a).unwrap() - 3.36).abs() < 0.005);
    assert!((b.value - 56.0).abs() < 1e-9 && (half(&b).unwrap() - 2.912).abs() < 0.005);
    let r = ratio(&a, &b);
    assert!((r.value - 1.6071).abs() < 1e-4 && (half(&r).unwrap() - 0.103).abs() < 0.001);
    let d = difference(&estimate(0.1, 0.03), &estimate(0.3, 0.04));
    assert!((d.value + 0.2).abs() < 1e-12 && (half(&d).unwrap() - 0.05).abs() < 1e-12);
}

#[test]
fn verdicts() {
    assert!(
        in_words(&estimate(1.05, 0.02))
            .contains("5.0 % faster now, losses included (3.0 to 7.0 %)")
    );
    assert!(
        in_words(&estimate(0.90, 0.02))
            .contains("10.0 % slower now, losses included (8.0 to 12.0 %)")
    );
    assert!(in_words(&estimate(1.01, 0.03)).contains("larger than 4.0 %"));
    assert!(in_words(&blank()).contains("too few"));
}
