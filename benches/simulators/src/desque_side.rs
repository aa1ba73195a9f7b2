//! desque: events as boxed traits in a binary heap.

use desque::serial::{Event, Simulation};
use desque::{Result, SimState, SimTime};

use crate::{GAP_NS, Queue, Ran, TIMERS, Times};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct At(u64);

impl SimTime for At {}

impl SimState<At> for Queue {
    fn is_complete(&self, _: &At) -> bool {
        false
    }
}

#[derive(Debug)]
struct Arrival;

impl Event<Queue, At> for Arrival {
    fn execute(&mut self, sim: &mut Simulation<Queue, At>) -> Result {
        let now = sim.current_time().0;
        let (next, departs) = sim.state_mut().arrive();
        if let Some(ns) = next {
            sim.schedule(Arrival, At(now + ns))?;
        }
        if let Some(ns) = departs {
            sim.schedule(Departure, At(now + ns))?;
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Departure;

impl Event<Queue, At> for Departure {
    fn execute(&mut self, sim: &mut Simulation<Queue, At>) -> Result {
        let now = sim.current_time().0;
        match sim.state_mut().depart() {
            Some(ns) => sim.schedule(Departure, At(now + ns)),
            None => Ok(()),
        }
    }
}

struct Timers {
    times: Times,
    done: u64,
    events: u64,
}

impl SimState<At> for Timers {
    fn is_complete(&self, _: &At) -> bool {
        false
    }
}

#[derive(Debug)]
struct Timer(u32);

impl Event<Timers, At> for Timer {
    fn execute(&mut self, sim: &mut Simulation<Timers, At>) -> Result {
        let now = sim.current_time().0;
        let timers = sim.state_mut();
        timers.done += 1;
        if timers.done + TIMERS <= timers.events {
            let ns = timers.times.draw_ns(GAP_NS);
            return sim.schedule(Timer(self.0), At(now + ns));
        }
        Ok(())
    }
}

pub fn queue(events: u64) -> Ran {
    let mut simulation = Simulation::new(Queue::new(events), At(0));
    simulation.schedule(Arrival, At(1)).unwrap();
    simulation.run().unwrap();
    simulation.state().ran()
}

pub fn timers(events: u64) -> Ran {
    let state = Timers {
        times: Times::new(2),
        done: 0,
        events,
    };
    let mut simulation = Simulation::new(state, At(0));
    for timer in 0..TIMERS {
        let ns = simulation.state_mut().times.draw_ns(GAP_NS);
        simulation.schedule(Timer(timer as u32), At(ns)).unwrap();
    }
    simulation.run().unwrap();
    Ran {
        events: simulation.state().done,
        result: simulation.current_time().0 as f64,
    }
}
