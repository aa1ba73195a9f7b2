//! Turns on a Cm, interrupts, and runs in parts.

#[path = "support/list.rs"]
mod list;

use list::{BESIDE, FAR_NS, HERE, LIMIT, List, exact, machine, times, when};
use undertick_cmstar::{Act, ClockId, CmAddress, Interrupts, Moment, ProcessId, Routine, Stopped};

#[test]
fn processes_of_one_cm_take_turns() {
    let mut parameters = exact();
    parameters.medusa.scheduling.dispatch = 100.0;
    parameters.medusa.scheduling.quantum = 10_000.0;
    let mut machine = machine(&parameters);
    let work = Act::Work { ns: 25_000_000 };
    let a = machine.start(HERE, Moment::START, List::new([work]));
    let b = machine.start(HERE, Moment::START, List::new([work]));
    machine.run(LIMIT);
    // a 10, b 10, a 10, b 10, a 5, b 5, each after 100 us of dispatch.
    assert_eq!(when(&machine, a, 1), 45_000.0 + 5.0 * 100.0);
    assert_eq!(when(&machine, b, 1), 50_000.0 + 6.0 * 100.0);
    assert_eq!(machine.counts().dispatches, 6);
}

#[test]
fn running_out_and_yielding_give_the_cm_away() {
    let mut parameters = exact();
    parameters.medusa.scheduling.dispatch = 100.0;
    parameters.medusa.scheduling.quantum = 10_000.0;
    let mut machine = machine(&parameters);
    let acts = [Act::RunOut, Act::RunOut];
    let alone = machine.start(HERE, Moment::START, List::new(acts));
    let a = machine.start(BESIDE, Moment::START, List::new([Act::RunOut, Act::Yield]));
    let b = machine.start(BESIDE, Moment::START, List::new([Act::RunOut, Act::Yield]));
    machine.run(LIMIT);
    // The quantum, and then the process itself as the successor.
    assert_eq!(
        times(&machine, alone),
        [10_000_000 + 100_000, 10_000_000 + 100_000]
    );
    // a's quantum, b's, then a again; each with its dispatch.
    assert_eq!(when(&machine, a, 1), 20_300.0);
    // a yields after 200: b's turn, which yields too.
    assert_eq!(when(&machine, b, 1), 20_300.0 + 200.0 + 100.0);
    assert_eq!(when(&machine, a, 2), 20_600.0 + 200.0 + 100.0);
}

#[test]
fn interrupts_come_on_all_cms_at_one_instant_and_wait_for_references() {
    let mut parameters = exact();
    parameters.medusa.interrupts = Some(Interrupts {
        period_us: 10_000.0,
        handler: 300.0,
        handler_scatter: 0.0,
        skew: 0.0,
    });
    let mut machine = machine(&parameters);
    let ms = Act::Work { ns: 1_000_000 };
    let all: Vec<ProcessId> = [HERE, BESIDE, CmAddress::new(4, 7)]
        .map(|address| machine.start(address, Moment::START, List::new([ms; 29])))
        .to_vec();
    // The process only makes references, back to back: the interrupt comes at the end of one.
    let fetch = Act::Fetch {
        clock: ClockId(0),
        word: 0,
    };
    let refers = machine.start(CmAddress::new(5, 1), Moment::START, List::new([fetch; 600]));
    machine.run(LIMIT);
    let first = times(&machine, all[0]);
    let hit: Vec<usize> = (0..29).filter(|&n| first[n] != 1_000_000).collect();
    assert!(
        first.iter().all(|&ns| ns == 1_000_000 || ns == 1_300_000),
        "{first:?}"
    );
    // Every tenth ms, partly taken by the handlers.
    assert_eq!(hit.len(), 3);
    for other in &all[1..] {
        assert_eq!(times(&machine, *other), first);
    }
    let refers = times(&machine, refers);
    let late = refers
        .iter()
        .filter(|&&ns| ns != FAR_NS)
        .collect::<Vec<_>>();
    assert!(
        late.len() >= 2 && late.iter().all(|&&ns| ns == FAR_NS + 300_000),
        "{late:?}"
    );
}

#[test]
fn an_idle_cm_handles_its_interrupts_before_it_begins() {
    let mut parameters = exact();
    parameters.medusa.interrupts = Some(Interrupts {
        period_us: 10_000.0,
        handler: 3_000.0,
        handler_scatter: 0.0,
        skew: 0.0,
    });
    // The seed determines when the line ticks, which a process that works all the time shows.
    let mut probe = machine(&parameters);
    let us = List::new(vec![Act::Work { ns: 1_000 }; 9_000]);
    let process = probe.start(HERE, Moment::START, us);
    probe.run(LIMIT);
    let input = &probe.program(process).input;
    let hit = input
        .windows(2)
        .find(|w| w[1].now.ns_since(w[0].now) > 1_000)
        .unwrap();
    let tick = hit[0].now;
    for (after_ns, waits_ns) in [(1_500_000, 1_500_000), (2_900_000, 100_000), (3_200_000, 0)] {
        let mut machine = machine(&parameters);
        let at = tick.plus_ns(10_000_000 + after_ns);
        let late = machine.start(BESIDE, at, List::new([Act::Null]));
        machine.run(LIMIT);
        let began = machine.program(late).input[0].now.ns_since(at);
        // The probe knows the tick to a microsecond.
        assert!((began - waits_ns).abs() <= 1_000, "{after_ns}: {began}");
    }
}

#[test]
fn a_run_stops_at_its_limit_and_goes_on_from_there() {
    let parameters = exact();
    let mut whole = machine(&parameters);
    let mut parts = machine(&parameters);
    let acts = [Act::Read {
        clock: ClockId(0),
        routine: Routine::Four,
    }; 50];
    for machine in [&mut whole, &mut parts] {
        machine.start(HERE, Moment::START, List::new(acts));
        machine.start_background(BESIDE, Moment::START, List::new(acts));
    }
    whole.run(LIMIT);
    for us in (0..30_000).step_by(13) {
        let stopped = parts.run(Moment::from_us(us));
        assert!(stopped == Stopped::AllEnded || parts.now() == Moment::from_us(us));
    }
    assert_eq!((whole.digest(), whole.now()), (parts.digest(), parts.now()));
}
