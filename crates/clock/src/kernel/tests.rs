use super::*;

#[test]
fn parts_become_one_count() {
    assert_eq!(ns_from_parts(0, 0), Some(0));
    assert_eq!(ns_from_parts(1, 999_999_999), Some(1_999_999_999));
    assert_eq!(ns_from_parts(-1, 0), None);
    // 2^64 ns is 18 446 744 073.709551616 s.
    assert_eq!(ns_from_parts(18_446_744_073, 709_551_615), Some(u64::MAX));
    assert_eq!(ns_from_parts(18_446_744_073, 709_551_616), None);
    assert_eq!(ns_from_parts(18_446_744_074, 0), None);
}

#[test]
fn a_clock_that_does_not_exist_has_no_reading() {
    assert_eq!(read_ns(9_999), None);
}

#[test]
fn the_counters_have_no_kernel_resolution() {
    assert_eq!(resolution_ns(ClockId::Tsc), None);
    assert!(resolution_ns(ClockId::MonotonicCoarse) >= resolution_ns(ClockId::Monotonic));
}
