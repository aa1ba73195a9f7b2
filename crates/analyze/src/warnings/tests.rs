use super::*;

fn told(across: AcrossCpus) -> Vec<(String, String)> {
    let mut list = List(Vec::new());
    // A tick of half a nanosecond.
    clock_across_cpus(&mut list, &across, 0.5);
    list.0.into_iter().map(|w| (w.code, w.text)).collect()
}

const GOOD: AcrossCpus = AcrossCpus {
    cpus: 4,
    cpus_allowed: 4,
    offset_lo_ticks: Some(-120),
    offset_hi_ticks: Some(90),
    offsets: 3,
    cpus_apart: 0,
    readings: 1_000,
    backward: 0,
    worst_backward_ticks: 0,
    took_ns: 20_000_000,
};

#[test]
fn cpus_that_agree_are_no_warning() {
    assert_eq!(told(GOOD), []);
}

#[test]
fn a_clock_that_differs_by_cpu_is_one_with_its_size() {
    let back = told(AcrossCpus {
        backward: 3,
        worst_backward_ticks: 400,
        ..GOOD
    });
    assert_eq!(back[0].0, "clock_goes_back");
    assert!(back[0].1.contains("3 of 1000") && back[0].1.contains("200 ns"));
    let apart = told(AcrossCpus {
        cpus_apart: 2,
        offset_hi_ticks: Some(5_000),
        ..GOOD
    });
    assert_eq!(apart[0].0, "clock_differs_by_cpu");
    assert!(apart[0].1.contains("2 of 4") && apart[0].1.contains("-60 .. 2500 ns"));
}
