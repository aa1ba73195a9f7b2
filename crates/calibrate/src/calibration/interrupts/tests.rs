use super::*;

/// Readings every 10 ticks of 2 ns, and 20 interrupts of 30 ticks. There are no readings from
/// 25 ticks (for interrupt i: i more) before the begin to 5 after the end.
fn rows() -> Rows {
    let mut rows = Rows::default();
    for i in 0..20 {
        let from = 10_000 * (i + 1);
        let begin = from + 25 + i;
        rows.readings.extend((-20..=0).map(|k| from + 10 * k));
        rows.kernel.push((begin, begin + 30, 7));
        rows.readings.extend((0..20).map(|k| begin + 35 + 10 * k));
    }
    rows
}

/// The times before are 25 to 44 ticks, the sixth of them 30, and those after are 5; their sums
/// from the sixth to the fifteenth are 9 apart.
#[test]
fn what_lies_between_the_readings_and_the_kernels_times() {
    let found = rows().cost(2.0).unwrap();
    assert_eq!((found.event, found.before_ns.n), (7, 20));
    assert_eq!(found.before_ns.value, 60.0);
    assert_eq!(found.after_ns.value, 10.0);
    assert_eq!(found.spread_ns, 18.0);
    let interval = &found.before_ns.interval;
    // Ranks 2 and 10 of 20: 2.4 % lie below 2, and 1.4 % from 10 on.
    assert_eq!((interval.lo, interval.hi), (Some(52.0), Some(68.0)));
}

/// Nine of 20 interrupts have another kernel row beside them, so eleven are left; of another
/// kind of interrupt there are few.
#[test]
fn too_few_alone_say_nothing() {
    let mut all = rows();
    all.kernel.push((900_000, 900_030, 8));
    assert_eq!(all.cost(2.0).unwrap().event, 7);
    for i in 0..9 {
        let begin = 10_000 * (i + 1) + 25 + i;
        all.kernel.push((begin + 32, begin + 32, OTHER));
    }
    all.kernel.sort_unstable();
    assert_eq!(all.cost(2.0), None);
    assert_eq!(Rows::default().cost(2.0), None);
}
