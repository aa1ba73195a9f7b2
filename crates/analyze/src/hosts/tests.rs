use super::*;

#[test]
fn only_keys_that_come_once_count() {
    let mut keys = Keys::default();
    keys.note(1, false, 0, 10);
    keys.note(1, true, 1, 20);
    keys.note(2, false, 0, 11);
    keys.note(2, false, 1, 12);
    keys.note(2, true, 1, 21);
    assert_eq!(keys.ends[&1], [End::One(0, 10), End::One(1, 20)]);
    assert_eq!(keys.ends[&2], [End::More, End::One(1, 21)]);
}

#[test]
fn too_many_keys_are_thinned_alike() {
    let mut keys = Keys::default();
    for key in 0..3 * MOST_KEYS as i64 {
        keys.note(key, false, 0, key);
    }
    for key in 0..3 * MOST_KEYS as i64 {
        keys.note(key, true, 1, key);
    }
    assert!(keys.ends.len() <= MOST_KEYS && keys.ends.len() > MOST_KEYS / 4);
    assert_eq!(keys.thinned, 2);
    let whole = |ends: &[End; 2]| !ends.contains(&End::None);
    assert!(keys.ends.values().all(whole));
}

#[test]
fn doubts_add_up_by_hand() {
    let map = HostMap {
        is_same_clock: false,
        compared_with: 0,
        messages: [1; 2],
        sources: Vec::new(),
        wander_ppm: 2.0,
        is_wander_raised: false,
        half_width_ns_median: 0.0,
        half_width_ns_max: 0.0,
        knots: vec![[0, 1000, 10], [100, 1100, 20]],
    };
    let clocks = Clocks(vec![None, Some(map.clone()), Some(map)]);
    assert_eq!(clocks.doubt((1, 1000), (1, 1100)), None);
    assert_eq!(clocks.doubt((0, 5), (1, 1050)), Some(15));
    assert_eq!(clocks.doubt((2, 1000), (1, 1100)), Some(30));
    // Outside of the map the largest half-width holds.
    assert_eq!(clocks.doubt((0, 5), (1, 5000)), Some(20));
    let mut doubt = Doubt::default();
    for (ticks, half_width) in [(100, 15), (-15, 15), (15, 15), (0, 15), (16, 15), (-16, 15)] {
        doubt.add(ticks, half_width);
    }
    assert_eq!(
        (doubt.samples, doubt.sum, doubt.max, doubt.concurrent),
        (6, 90, 15, 3)
    );
}
