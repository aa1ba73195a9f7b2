//! Queueing theory: closed forms, as special cases of the engine and of the machine. Each has ten
//! seeds; the band comes from the scatter of the seeds at 1 - 1e-6.

mod support;

use support::assert_agrees;
use undertick_cmstar::engine::{Agenda, Delay, Entity, Law, Station, Stream};
use undertick_cmstar::{
    Act, ClockId, CmAddress, Contention, Machine, Moment, Os, Parameters, Program, StepInput,
};

const SEEDS: std::ops::Range<u64> = 0..10;
/// Mean service time of a station, ns.
const SERVICE_NS: f64 = 10_400.0;

/// Returns the mean wait at an open station in units of the mean service; Poisson arrivals.
fn mean_wait(load: f64, law: Law, seed: u64) -> f64 {
    let mut agenda = Agenda::new();
    let mut station = Station::queue();
    let arrivals = Delay {
        mean_ns: SERVICE_NS / load,
        law: Law::Exponential,
    };
    let service = Delay {
        mean_ns: SERVICE_NS,
        law,
    };
    let mut gaps = Stream::new(seed, Entity::Test, 0);
    let mut services = Stream::new(seed, Entity::Test, 1);
    agenda.enter(Moment::START, ());
    for _ in 0..1_000_000 {
        let (now, ()) = agenda.next().unwrap();
        station.serve(now, service.draw_ns(&mut services));
        agenda.enter(now.plus_ns(arrivals.draw_ns(&mut gaps)), ());
    }
    station.counts().mean_wait_ns() / SERVICE_NS
}

#[test]
fn one_server_waits_as_pollaczek_and_khinchin_say() {
    // Wq / S = rho (1 + c^2) / (2 (1 - rho)), c^2 = 1 for exponential service, 0 for fixed, 1/3 for
    // uniform from 0 on.
    for load in [0.3, 0.7] {
        for (law, c2) in [
            (Law::Exponential, 1.0),
            (Law::Fixed, 0.0),
            (Law::Uniform, 1.0 / 3.0),
        ] {
            let waits: Vec<f64> = SEEDS.map(|seed| mean_wait(load, law, seed)).collect();
            let truth = load * (1.0 + c2) / (2.0 * (1.0 - load));
            assert_agrees(&format!("M/G/1, {load}, {law:?}"), &waits, truth);
        }
    }
}

/// Poisson arrivals at a station with room for one; a rejected arrival returns after an exponential
/// time. Returns the mean time from arrival to service, in mean services.
fn mean_time_in_orbit(load: f64, again: f64, seed: u64) -> f64 {
    #[derive(Clone, Copy)]
    enum Event {
        Arrival,
        Again(u64),
    }
    let exponential = |mean_ns: f64| Delay {
        mean_ns,
        law: Law::Exponential,
    };
    let (gap, service) = (exponential(SERVICE_NS / load), exponential(SERVICE_NS));
    let again = exponential(again * SERVICE_NS);
    let mut streams: [Stream; 3] = [0, 1, 2].map(|n| Stream::new(seed, Entity::Test, n));
    let (mut agenda, mut station) = (Agenda::new(), Station::with_room(1));
    let (mut waited_ns, mut served) = (0, 0);
    agenda.enter(Moment::START, Event::Arrival);
    while served < 400_000 {
        let (now, event) = agenda.next().unwrap();
        let arrived = match event {
            Event::Arrival => {
                agenda.enter(now.plus_ns(gap.draw_ns(&mut streams[0])), Event::Arrival);
                now.ns()
            }
            Event::Again(arrived) => arrived,
        };
        if station.offer(now, service.draw_ns(&mut streams[1])).is_ok() {
            waited_ns += now.ns() - arrived;
            served += 1;
        } else {
            let at = now.plus_ns(again.draw_ns(&mut streams[2]));
            agenda.enter(at, Event::Again(arrived));
        }
    }
    waited_ns as f64 / served as f64 / SERVICE_NS
}

#[test]
fn who_is_turned_away_and_comes_again_waits_as_retrial_queues_do() {
    // Falin and Templeton, Retrial Queues, 1997: M/M/1 with classical retrials has
    // N_orbit = rho^2 / (1 - rho) + rho lambda / ((1 - rho) theta); by Little divided
    // by lambda. In mean services: (rho + again) rho / ((1 - rho) rho).
    for (load, again) in [(0.4, 0.5), (0.6, 3.0)] {
        let times: Vec<f64> = SEEDS.map(|s| mean_time_in_orbit(load, again, s)).collect();
        let truth = load * (1.0 + again) / (1.0 - load);
        assert_agrees(&format!("retrials, {load}, {again}"), &times, truth);
    }
}

/// Works for a while, refers to the clock, and repeats.
struct Repaired {
    think_ns: u64,
    thinks: bool,
    references: u64,
}

impl Program for Repaired {
    fn next(&mut self, _: StepInput) -> Act {
        self.thinks = !self.thinks;
        if self.thinks {
            return Act::Work { ns: self.think_ns };
        }
        self.references += 1;
        Act::Fetch {
            clock: ClockId(0),
            word: 0,
        }
    }
}

/// Returns a machine on which only work and the services of Kmaps take time, us.
fn bare(own_us: f64, far_us: f64) -> Parameters {
    let mut parameters = Parameters::published();
    let reference = &mut parameters.reference;
    for part in [
        &mut reference.issue,
        &mut reference.slocal,
        &mut reference.map_bus,
        &mut reference.intercluster_bus,
        &mut reference.memory,
    ] {
        *part = 0.0;
    }
    (reference.own_kmap_out, reference.own_kmap_back) = (own_us, own_us);
    (reference.far_kmap, reference.kmap_law) = (far_us, Law::Exponential);
    parameters.cm.speed_range = 0.0;
    parameters.cm.work_scatter = 0.0;
    parameters.cm.work_law = Law::Exponential;
    parameters.medusa.leg_scatter = 0.0;
    parameters.medusa.contention = Contention::Queue;
    parameters.medusa.scheduling.dispatch = 0.0;
    parameters
}

/// Returns references a second, and the mean number of requests at the clock's Kmap and at that of
/// cluster 2.
fn repaired(parameters: &Parameters, cms: usize, think_ns: u64, seed: u64) -> [f64; 3] {
    let mut machine = Machine::new(parameters, Os::Medusa, seed);
    for cm in 1..=cms {
        let program = Repaired {
            think_ns,
            thinks: false,
            references: 0,
        };
        machine.start(CmAddress::new(2, cm), Moment::START, program);
    }
    machine.run(Moment::from_ms(100));
    let before = machine.counts();
    machine.run(Moment::from_ms(10_100));
    let window = machine.counts().since(&before);
    [
        window.far_per_s(),
        window.kmap_present(1),
        window.kmap_present(2),
    ]
}

#[test]
#[ignore = "long: cargo xtask test --all"]
fn readers_of_one_clock_are_the_machine_repairman() {
    // M/M/1//N: p_n proportional to N! / (N - n)! (S / Z)^n.
    let parameters = bare(0.0, SERVICE_NS / 1e3);
    for (cms, think_ns) in [(4, 40_000), (9, 50_000), (9, 150_000)] {
        let ratio = SERVICE_NS / think_ns as f64;
        let mut weights = vec![1.0];
        for n in 1..=cms {
            weights.push(weights[n - 1] * (cms + 1 - n) as f64 * ratio);
        }
        let sum: f64 = weights.iter().sum();
        let busy = 1.0 - weights[0] / sum;
        let present: f64 = (weights.iter().enumerate())
            .map(|(n, w)| n as f64 * w / sum)
            .sum();
        let runs: Vec<_> = SEEDS
            .map(|s| repaired(&parameters, cms, think_ns, s))
            .collect();
        let rates: Vec<f64> = runs.iter().map(|run| run[0]).collect();
        let numbers: Vec<f64> = runs.iter().map(|run| run[1]).collect();
        let name = format!("repairman, {cms} Cms, {think_ns} ns");
        assert_agrees(&format!("{name}: rate"), &rates, busy * 1e9 / SERVICE_NS);
        assert_agrees(&format!("{name}: present"), &numbers, present);
    }
}

#[test]
fn two_kmaps_in_a_row_agree_with_mean_value_analysis() {
    // Closed, exponential, first come first served, with two visits of each reference to the own
    // Kmap: product form, solved exactly (Reiser and Lavenberg 1980).
    let (own_us, far_us, think_ns, cms) = (6.0, 10.4, 30_000, 8);
    let (mut at_own, mut at_far, mut rate) = (0.0, 0.0, 0.0);
    for n in 1..=cms {
        let own = 2.0 * own_us * (1.0 + at_own);
        let far = far_us * (1.0 + at_far);
        rate = n as f64 / (think_ns as f64 / 1e3 + own + far);
        (at_own, at_far) = (rate * own, rate * far);
    }
    let parameters = bare(own_us, far_us);
    let runs: Vec<_> = SEEDS
        .map(|s| repaired(&parameters, cms, think_ns, s))
        .collect();
    for (which, name, truth) in [
        (0, "rate", rate * 1e6),
        (1, "at the far Kmap", at_far),
        (2, "at the own Kmap", at_own),
    ] {
        let values: Vec<f64> = runs.iter().map(|run| run[which]).collect();
        assert_agrees(&format!("two Kmaps: {name}"), &values, truth);
    }
}
