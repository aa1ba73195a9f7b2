use super::*;

#[test]
fn quantiles_are_order_statistics_of_the_batches() {
    // 200 batches of 1..=200 us in ticks of 1 ns, 100 reads each: 10 ns per us.
    let batches = (1..=200).rev().map(|us| us * 1_000).collect();
    let cost = summarise(batches, 100, TickRate::NANOSECONDS).unwrap();
    assert!((cost.cost_ns_min - 10.0).abs() < 1e-9);
    assert!((cost.cost_ns_median - 1_000.0).abs() < 1e-9);
    assert!((cost.cost_ns_p99 - 1_980.0).abs() < 1e-9);
    assert_eq!((cost.batches, cost.reads_per_batch), (200, 100));
}

#[test]
fn ticks_are_converted_with_the_timers_rate() {
    let rate = TickRate::new(2_600_000_000, 1).unwrap();
    let cost = summarise(vec![1_664], 64, rate).unwrap();
    // 26 ticks of 5/13 ns.
    assert!((cost.cost_ns_median - 10.0).abs() < 1e-9);
}

#[test]
fn nothing_measured_is_no_cost() {
    assert_eq!(summarise(vec![], 64, TickRate::NANOSECONDS), None);
    assert_eq!(summarise(vec![1], 0, TickRate::NANOSECONDS), None);
}

#[test]
fn every_clock_here_has_a_cost() {
    for clock in ClockId::ALL {
        let Ok(source) = Source::open(clock) else {
            continue;
        };
        let cost = measure(source, ReadKind::Plain, TickRate::NANOSECONDS).unwrap();
        assert!(cost.cost_ns_min <= cost.cost_ns_median);
        assert!(cost.cost_ns_median <= cost.cost_ns_p99);
        assert_eq!(cost.batches, BATCHES);
        if clock != ClockId::Tsc {
            assert_eq!(
                measure(source, ReadKind::Rdtscp, TickRate::NANOSECONDS),
                None
            );
        }
    }
}
