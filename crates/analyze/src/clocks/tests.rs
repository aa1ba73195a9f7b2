use super::*;

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
