use undertick_clock::across::Offset;

use super::*;

#[test]
fn the_widest_bounds_and_the_cpus_apart_are_kept() {
    let offset = |cpu, lo_ticks, hi_ticks| Offset {
        cpu,
        reference_cpu: 0,
        lo_ticks,
        hi_ticks,
        exchanges: 9,
    };
    let across = Across {
        cpus_allowed: 64,
        cpus: vec![0, 1, 2, 3],
        // One CPU in agreement, one apart by 40 or more, one moving.
        offsets: vec![offset(1, -100, 90), offset(2, 40, 250), offset(3, 20, -20)],
        readings: 10,
        backward: 2,
        worst_backward_ticks: 7,
    };
    let kept = summary(&across, 5);
    assert_eq!(
        (kept.offset_lo_ticks, kept.offset_hi_ticks),
        (Some(-100), Some(250))
    );
    assert_eq!(kept.offsets, 3);
    assert_eq!((kept.cpus, kept.cpus_allowed, kept.cpus_apart), (4, 64, 2));
    assert_eq!(
        (kept.backward, kept.worst_backward_ticks, kept.took_ns),
        (2, 7, 5)
    );
}
