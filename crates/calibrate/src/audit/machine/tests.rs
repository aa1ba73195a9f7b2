use super::*;

#[test]
fn steal_is_the_eighth_time() {
    let times = CpuTimes::parse("cpu  10 1 5 80 2 0 1 7 3 3\ncpu0 1 1 1 1 1 1 1 1 1 1\n").unwrap();
    assert_eq!((times.all, times.steal), (106, 7));
    assert!(CpuTimes::parse("intr 1 2\n").is_none());
    assert!(CpuTimes::parse("cpu 1 2 3\n").is_none());
}

#[test]
fn shifts_of_a_namespace_are_read() {
    let shifts =
        Shifts::parse("monotonic       1000         500000000\nboottime        -20         0\n");
    assert_eq!(
        shifts,
        Shifts {
            monotonic_s: 1000.5,
            boottime_s: -20.0
        }
    );
    assert_eq!(Shifts::parse("rubbish"), Shifts::default());
}
