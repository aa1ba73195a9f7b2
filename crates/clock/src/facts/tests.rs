use super::*;

#[test]
fn the_facts_of_every_clock_here() {
    for clock in ClockId::ALL {
        let Ok(source) = Source::open(clock) else {
            continue;
        };
        let facts = gather(source, rate::SHORTEST_SPAN).unwrap();
        println!("{facts:#?}");
        assert_eq!(facts.clock, clock);
        assert!(facts.read_cost.is_some() && facts.read_cost_ordered.is_some());
    }
}
