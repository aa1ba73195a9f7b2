//! Undertick's engine, and its simulated machine.

use std::time::Instant;

use undertick_cmstar::engine::Agenda;
use undertick_cmstar::load::{ReadingLoops, reading_loops};
use undertick_cmstar::{Moment, Os, Parameters, Routine};

use crate::{GAP_NS, Queue, Ran, TIMERS, Times};

#[derive(Clone, Copy)]
enum Event {
    Arrival,
    Departure,
}

pub fn queue(events: u64) -> Ran {
    let mut queue = Queue::new(events);
    let mut agenda = Agenda::new();
    agenda.enter(Moment::from_ns(1), Event::Arrival);
    while let Some((now, event)) = agenda.next() {
        match event {
            Event::Arrival => {
                let (next, departs) = queue.arrive();
                if let Some(ns) = next {
                    agenda.enter(now.plus_ns(ns), Event::Arrival);
                }
                if let Some(ns) = departs {
                    agenda.enter(now.plus_ns(ns), Event::Departure);
                }
            }
            Event::Departure => {
                if let Some(ns) = queue.depart() {
                    agenda.enter(now.plus_ns(ns), Event::Departure);
                }
            }
        }
    }
    queue.ran()
}

pub fn timers(events: u64) -> Ran {
    let (mut times, mut agenda) = (Times::new(2), Agenda::new());
    for timer in 0..TIMERS {
        agenda.enter(Moment::from_ns(times.draw_ns(GAP_NS)), timer as u32);
    }
    let mut done = 0;
    while let Some((now, timer)) = agenda.next() {
        done += 1;
        if done + TIMERS <= events {
            agenda.enter(now.plus_ns(times.draw_ns(GAP_NS)), timer);
        }
    }
    Ran {
        events: done,
        result: agenda.now().ns() as f64,
    }
}

/// Simulates `cms` Cms in clusters of ten, all of which read one clock.
pub fn scale(cms: u64, seconds: u64) {
    let mut parameters = Parameters::published();
    let clusters = cms as usize / 10;
    parameters.topology.clusters = clusters;
    // Those with a clock are left out, so there is one cluster more.
    parameters.topology.clusters += 1;
    parameters.workload.reader_clusters = (1..=parameters.topology.clusters).collect();
    let loops = ReadingLoops {
        length_ns: seconds * 1_000_000_000,
        ..ReadingLoops::new(Os::Medusa, Routine::Four, cms as usize)
    };
    let start = Instant::now();
    let run = reading_loops(&parameters, &loops).expect("a cluster more than needed");
    let took = start.elapsed().as_secs_f64();
    let share = run.plateau.seconds() / seconds as f64;
    let events = run.plateau.events as f64 / share;
    println!("scale undertick {events:.0} {took} {}", peak_kib());
}

/// Returns the most memory that this process has had, KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}
