use super::*;

fn ns(value: f64, lo: impl Into<Option<f64>>, hi: impl Into<Option<f64>>) -> String {
    let interval = Interval {
        lo: lo.into(),
        hi: hi.into(),
    };
    let figure = on_scale(value, interval, DURATIONS);
    format!("{} {}", figure.value_and_unit(), figure.interval()).replace('\u{a0}', " ")
}

#[test]
fn only_digits_that_the_interval_supports() {
    assert_eq!(ns(849.31, 846.12, 851.47), "849 ns [846, 852]");
    assert_eq!(ns(849.31, 847.82, 850.74), "849.3 ns [847.8, 850.8]");
    assert_eq!(ns(849.31, 700.0, 999.0), "850 ns [700, 1000]");
    assert_eq!(
        ns(1_234_567.0, 1_234_000.0, 1_235_000.0),
        "1.2346 ms [1.2340, 1.2350]"
    );
    assert_eq!(ns(5.2, 4.9, 5.5), "5.2 ns [4.9, 5.5]");
    assert_eq!(ns(2.5e9, 2.0e9, 3.0e9), "2.5 s [2.0, 3.0]");
}

#[test]
fn bounds_are_rounded_outwards() {
    // Rounded to nearest, [846, 851] would leave 851.47 out.
    assert_eq!(ns(849.31, 846.92, 852.47), "849 ns [846, 853]");
    assert_eq!(ns(-849.31, -852.47, -846.92), "-849 ns [-853, -846]");
    // The same where only two digits are left: 9.04e6 us is above 9.0e6.
    assert_eq!(ns(5e3, -9.04e9, 9.04e9), "5 us [-9.1e6, 9.1e6]");
    // A bound on the last digit stays where it is.
    assert_eq!(ns(0.3, 0.1, 0.5), "0.3 ns [0.1, 0.5]");
}

#[test]
fn the_printed_interval_covers_the_computed_one() {
    let mut x = 0.000_137_f64;
    while x < 1e13 {
        for width in [1e-6, 0.013, 0.4, 3.0] {
            let (lo, hi) = (x * (1.0 - width), x * (1.0 + width));
            let figure = on_scale(x, Interval::new(lo, hi), DURATIONS);
            let size = DURATIONS.iter().find(|s| s.0 == figure.unit).unwrap().1;
            let number = |text: &str| text.parse::<f64>().unwrap() * size;
            assert!(
                number(&figure.lo) <= lo * (1.0 + 1e-9 * lo.signum()),
                "{figure:?} {lo}"
            );
            assert!(number(&figure.hi) >= hi * (1.0 - 1e-9), "{figure:?} {hi}");
        }
        x *= 1.37;
    }
}

#[test]
fn a_missing_bound_is_a_question_mark() {
    assert_eq!(ns(849.31, None, 851.47), "849 ns [?, 852]");
    assert_eq!(ns(849.31, 846.2, None), "849 ns [846, ?]");
    assert_eq!(ns(849.31, None, None), "849 ns [?, ?]");
    assert_eq!(ns(f64::NAN, 1.0, 2.0), "? [?, ?]");
    assert_eq!(ns(7.0, f64::NEG_INFINITY, f64::INFINITY), "7.00 ns [?, ?]");
}

#[test]
fn an_interval_wider_than_the_value_leaves_one_digit() {
    assert_eq!(ns(5.3, -20.0, 30.6), "5 ns [-20, 31]");
    assert_eq!(ns(0.0, -20.0, 30.0), "0 ns [-20, 30]");
    assert_eq!(ns(0.0, 0.0, 0.0), "0 ns [0, 0]");
}

#[test]
fn rounding_up_to_a_thousand_takes_the_next_unit() {
    assert_eq!(ns(999.97, 999.0, 1_000.9), "1.0000 us [0.9990, 1.0009]");
    assert_eq!(duration(999.6), "1.00\u{a0}us");
    assert_eq!(duration(999.4), "999\u{a0}ns");
}

#[test]
fn durations_without_an_interval_have_three_digits() {
    let shown = [0.0, 0.05, 12.345, 4_096.0, 86_400e9, -31.0].map(duration);
    assert_eq!(
        shown.map(|s| s.replace('\u{a0}', " ")),
        [
            "0 ns",
            "0.0500 ns",
            "12.3 ns",
            "4.10 us",
            "86400 s",
            "-31.0 ns"
        ]
    );
}

#[test]
fn rates_and_shares_have_their_units() {
    let estimate = |value: f64, half: f64, unit: &str| Estimate {
        value,
        interval: Interval::new(value - half, value + half),
        level: 0.95,
        unit: unit.to_owned(),
        method: String::new(),
        n: 1,
        n_effective: 1.0,
        notes: vec![],
    };
    let shown = |e: &Estimate| figure(e).value_and_unit().replace('\u{a0}', " ");
    assert_eq!(shown(&estimate(12_345.0, 30.0, "1/s")), "12.35 k/s");
    assert_eq!(shown(&estimate(12.0, 3.0, "1/s")), "12/s");
    assert_eq!(shown(&estimate(0.034, 0.002, "1")), "3.4 %");
    assert_eq!(shown(&estimate(3.4, 0.2, "furlong")), "3.4");
}

#[test]
fn counts_are_grouped_and_short_where_asked() {
    assert_eq!(count(1_234_567).replace('\u{a0}', " "), "1 234 567");
    assert_eq!((count(0), count(999)), ("0".into(), "999".into()));
    let short = [9_999_999, 12_345_678, 999_600_000, u64::MAX].map(short_count);
    assert_eq!(
        short.map(|s| s.replace('\u{a0}', " ")),
        ["9 999 999", "12.3 M", "1.00 G", "1.84e19"]
    );
}

#[test]
fn something_is_never_shown_as_nothing() {
    let shown = [
        0.0, 1e-9, 0.000_123, 0.000_996, 0.0042, 0.5, 0.123_4, 0.999_99, 0.994, 1.0,
    ]
    .map(per_cent);
    assert_eq!(
        shown.map(|s| s.replace('\u{a0}', " ")),
        [
            "0 %", "<0.01 %", "0.012 %", "0.10 %", "0.42 %", "50 %", "12 %", ">99.99 %", "99.40 %",
            "100 %"
        ]
    );
}
