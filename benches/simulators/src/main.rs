//! The same queues on several simulators, one after the other, round by round.
//!
//!     simulators race ROUNDS EVENTS    lines: round scenario simulator events seconds result
//!     simulators scale CMS SECONDS     one line: events, seconds, peak memory
//!
//! All draw from the same generator by the same law. Each scenario counts the events that its
//! simulator delivered, and its result must be the same for all.

mod desque_side;
mod nexosim_side;
mod our_side;

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand_distr::{Distribution, Exp1};
use std::time::Instant;

/// The result of a simulator.
struct Ran {
    events: u64,
    /// Mean number that an arrival found (M/M/1), or the last moment (timers), ns.
    result: f64,
}

/// Exponential times, whole ns, at least 1.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Times(Xoshiro256PlusPlus);

impl Times {
    fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    #[inline]
    fn draw_ns(&mut self, mean_ns: f64) -> u64 {
        let x: f64 = Exp1.sample(&mut self.0);
        ((x * mean_ns) as u64).max(1)
    }
}

const SERVICE_NS: f64 = 0.8e9;
/// Mean interval, so long that two events in one nanosecond are nearly impossible: simulators order
/// them differently.
const GAP_NS: f64 = 1e9;
const TIMERS: u64 = 1_000;

/// An M/M/1 queue of load 0.8; every simulator calls these two.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Queue {
    times: Times,
    present: u64,
    arrivals: u64,
    found: u64,
    left: u64,
    events: u64,
}

impl Queue {
    fn new(events: u64) -> Self {
        Self {
            times: Times::new(1),
            present: 0,
            arrivals: 0,
            found: 0,
            // Each arrival has a departure.
            left: events / 2,
            events: 0,
        }
    }

    /// Returns the time to the next arrival, and the time to this one's departure if it is served
    /// now.
    #[inline]
    fn arrive(&mut self) -> (Option<u64>, Option<u64>) {
        self.events += 1;
        self.arrivals += 1;
        self.found += self.present;
        self.present += 1;
        self.left -= 1;
        let next = (self.left > 0).then(|| self.times.draw_ns(GAP_NS));
        let departs = (self.present == 1).then(|| self.times.draw_ns(SERVICE_NS));
        (next, departs)
    }

    /// Returns the time to the next departure.
    #[inline]
    fn depart(&mut self) -> Option<u64> {
        self.events += 1;
        self.present -= 1;
        (self.present > 0).then(|| self.times.draw_ns(SERVICE_NS))
    }

    fn ran(&self) -> Ran {
        Ran {
            events: self.events,
            result: self.found as f64 / self.arrivals as f64,
        }
    }
}

fn race(rounds: u64, events: u64) {
    type Runner = fn(u64) -> Ran;
    let runners: [(&str, &str, Runner); 6] = [
        ("mm1", "undertick", our_side::queue),
        ("mm1", "nexosim", nexosim_side::queue),
        ("mm1", "desque", desque_side::queue),
        ("timers", "undertick", our_side::timers),
        ("timers", "nexosim", nexosim_side::timers),
        ("timers", "desque", desque_side::timers),
    ];
    for round in 0..rounds {
        for (scenario, name, run) in runners {
            let start = Instant::now();
            let Ran { events, result } = run(events);
            let seconds = start.elapsed().as_secs_f64();
            println!("{round} {scenario} {name} {events} {seconds} {result}");
        }
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |n: usize| words.get(n).and_then(|w| w.parse().ok());
    match (words.first().map(String::as_str), number(1), number(2)) {
        (Some("race"), Some(rounds), Some(events)) => race(rounds, events),
        (Some("scale"), Some(cms), Some(seconds)) => our_side::scale(cms, seconds),
        _ => {
            eprintln!("usage: simulators race ROUNDS EVENTS | scale CMS SECONDS");
            std::process::exit(2);
        }
    }
}
