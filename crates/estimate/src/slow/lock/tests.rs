use super::*;

fn found(period: f64, jitter: f64, n: u64) -> Option<Lock> {
    let facts = WalkFacts::known(n, period, jitter);
    Lock::find(&facts, &Spectrum::of_walk(n, &facts, jitter))
}

/// 2.5 ticks: after two cycles loop and tick meet again, and no sooner. At 2.5001 the phase
/// moves 0.0001 of a tick a cycle; a jitter of 0.002 adds 0.02 in 100 cycles.
#[test]
fn locks_by_hand() {
    let lock = found(2.5, 0.0, 100).unwrap();
    assert_eq!((lock.ticks, lock.cycles, lock.error_ticks), (5, 2, 0.5));
    assert!(
        lock.moved_ticks == 0.0 && lock.coherence > 0.999,
        "{lock:?}"
    );
    let lock = found(2.5001, 0.0, 100).unwrap();
    assert_eq!((lock.ticks, lock.cycles), (5, 2));
    assert!((lock.moved_ticks - 0.01).abs() < 1e-9, "{lock:?}");
    let lock = found(2.5001, 0.002, 100).unwrap();
    assert!(
        (lock.moved_ticks - 0.01_f64.hypot(0.02)).abs() < 1e-9,
        "{lock:?}"
    );
    let lock = found(7.0 / 3.0, 0.0, 100).unwrap();
    assert_eq!((lock.ticks, lock.cycles), (7, 3));
    assert!((lock.error_ticks - 1.0 / 3.0).abs() < 1e-12);
    let lock = found(3.0, 0.0, 100).unwrap();
    assert_eq!((lock.ticks, lock.cycles, lock.error_ticks), (3, 1, 1.0));
    // The golden section is near no small fraction; jitter undoes any lock.
    assert_eq!(found(2.618_034, 0.0, 10_000), None);
    assert_eq!(found(2.5, 0.3, 10_000), None);
}

/// Half a tick: 1/16 against three times p (1 - p)/n. At p = 0.3 that is 0.63/n:
/// from 11 cycles on; shorter and longer counts as 0.25 and 0.75, 0.5625/n: from
/// 10 on.
#[test]
fn what_a_lock_spoils_by_hand() {
    let lock = |coherence| Lock {
        ticks: 5,
        cycles: 2,
        moved_ticks: 0.0,
        error_ticks: 0.5,
        coherence,
    };
    let whole = lock(1.0);
    assert!(!whole.spoils(0.3, 10) && whole.spoils(0.3, 11));
    for ticks in [0.01, 0.1, 2.9, 7.99] {
        assert!(
            !whole.spoils(ticks, 9) && whole.spoils(ticks, 10),
            "{ticks}"
        );
    }
    // Half as coherent: 1/32 against 0.63/n.
    assert!(!lock(0.5).spoils(1.3, 20) && lock(0.5).spoils(1.3, 21));
    let text = whole.to_string();
    assert!(text.starts_with("5:2 locked") && text.contains("5 ticks pass in 2 cycles"));
    assert!(text.contains("up to 0.500 of a tick"), "{text}");
}
