use super::*;

#[test]
fn the_chain_is_whole_turns() {
    assert_eq!(CHAIN % LINKS, 0);
}

#[test]
fn the_interval_is_of_the_blocks() {
    let blocks = |cycles_per_tick: Vec<f64>| CoreSpeedBlocks {
        counter: Source::open(best().clock).ok(),
        multiply_cycles: vec![3.0; cycles_per_tick.len()],
        cycles_per_tick,
    };
    // By hand: mean 1.5; sd 0.0513 (n - 1 = 19), by sqrt 20, by t(19) = 2.093: 0.0240.
    let speed = blocks([1.45, 1.55].repeat(10)).finish(0.95).unwrap();
    let estimate = &speed.cycles_per_tick;
    assert!((estimate.value - 1.5).abs() < 1e-12);
    assert!(
        (estimate.interval.half_width().unwrap() - 0.0240).abs() < 1e-4,
        "{estimate:?}"
    );
    assert!(blocks(vec![1.0; 7]).finish(0.95).is_none());
}
