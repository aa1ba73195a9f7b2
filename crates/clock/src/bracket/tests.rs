use super::*;

const fn try_of(before_ns: u64, ticks: u64, after_ns: u64) -> Try {
    Try {
        before_ns,
        ticks,
        after_ns,
    }
}

#[test]
fn the_tightest_try_is_kept() {
    let tries = [
        try_of(1_000, 1, 1_050),
        try_of(2_000, 2, 2_030),
        try_of(3_000, 3, 3_900),
    ];
    // [2000, 2030 + 10): middle 2020, within 20.
    assert_eq!(
        tightest(&tries, 10),
        Some(Pair {
            ticks: 2,
            reference_ns: 2_020,
            error_ns: 20
        })
    );
}

#[test]
fn a_bracket_whose_reference_was_set_back_is_not_the_tightest() {
    let tries = [try_of(2_000, 1, 1_000), try_of(3_000, 2, 3_041)];
    let pair = tightest(&tries, 0).unwrap();
    assert_eq!(
        (pair.ticks, pair.reference_ns, pair.error_ns),
        (2, 3_020, 21)
    );
    assert_eq!(tightest(&tries[..1], 0), None);
    assert_eq!(tightest(&[], 0), None);
}

#[test]
fn the_truth_lies_within_the_bound() {
    // A reference that shows every tenth nanosecond, a clock of 3 ticks/ns,
    // and reads that happen at any true time.
    let shown = |true_ns: u64| true_ns / 10 * 10;
    for start in 0..200_u64 {
        for gap in 0..60_u64 {
            let at_clock_ns = 1_000_000 + start + gap;
            let tries = [try_of(
                shown(1_000_000 + start),
                at_clock_ns * 3,
                shown(at_clock_ns + gap / 2),
            )];
            let pair = tightest(&tries, 10).unwrap();
            let miss = pair.reference_ns.abs_diff(at_clock_ns);
            assert!(miss <= pair.error_ns, "{miss} > {}", pair.error_ns);
        }
    }
}

#[test]
fn an_anchor_lies_between_two_readings_of_unix_time() {
    let Ok(clock) = Source::open(crate::best().clock) else {
        unreachable!("the best clock can be opened")
    };
    let unix_ns = || {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        i64::try_from(now.unwrap().as_nanos()).unwrap()
    };
    let before = unix_ns();
    let Some(anchor) = anchor(clock, 0) else {
        println!("skipped: Unix time was set back during the test");
        return;
    };
    let after = unix_ns();
    assert!(anchor.error_ns >= 0);
    assert!(
        before <= anchor.unix_ns && anchor.unix_ns <= after,
        "{before} {anchor:?} {after}"
    );
}
