//! The speeds of the Cms: Figure 11.

use super::system_clock;
use crate::engine::Moment;
use crate::machine::{ClockId, CmAddress, Machine, TooFewCms, spread};
use crate::parameters::{Os, Parameters};
use crate::program::{Act, Outcome, Program, StepInput};
use crate::reading::{Reading, Routine};

/// Timing of the same local code on one Cm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timed {
    /// The Cm.
    pub address: CmAddress,
    /// The readings before it and after it.
    pub readings: [Reading; 2],
    /// The true duration, ns.
    pub truth_ns: u64,
}

/// Times local code that takes `work_ns` on a Cm of medium speed, on each of several Cms, one after
/// the other, so that clock reads do not interfere.
///
/// # Errors
/// There are too few Cms without a clock.
///
/// # Panics
/// If the parameters do not describe a machine.
pub fn speeds(
    parameters: &Parameters,
    os: Os,
    cms: usize,
    work_ns: u64,
    seed: u64,
) -> Result<Vec<Timed>, TooFewCms> {
    let clusters: Vec<usize> = (1..=parameters.topology.clusters).collect();
    let addresses = spread(&parameters.topology, &clusters, cms)?;
    let mut machine = Machine::new(parameters, os, seed);
    // Half as long again, plus the readings.
    let slot_ns = work_ns + work_ns / 2 + 10_000_000;
    for (index, &address) in addresses.iter().enumerate() {
        let at = Moment::from_ns(index as u64 * slot_ns);
        let clock = system_clock(parameters);
        machine.start(address, at, Code::new(clock, work_ns));
    }
    machine.run(Moment::from_ns((addresses.len() as u64 + 1) * slot_ns));
    let timed = addresses.iter().zip(machine.into_programs());
    Ok(timed
        .filter_map(|(&address, code)| {
            let [first, second] = code.readings[..] else {
                return None;
            };
            Some(Timed {
                address,
                readings: [first, second],
                truth_ns: code.ended.ns_since(code.began) as u64,
            })
        })
        .collect())
}

struct Code {
    clock: ClockId,
    work_ns: u64,
    stage: usize,
    began: Moment,
    ended: Moment,
    readings: Vec<Reading>,
}

impl Code {
    const fn new(clock: ClockId, work_ns: u64) -> Self {
        Self {
            clock,
            work_ns,
            stage: 0,
            began: Moment::START,
            ended: Moment::START,
            readings: Vec::new(),
        }
    }
}

impl Program for Code {
    fn next(&mut self, input: StepInput) -> Act {
        if let Outcome::Read(reading) = input.outcome {
            self.readings.push(reading);
        }
        self.stage += 1;
        match self.stage {
            2 => {
                self.began = input.now;
                Act::Work { ns: self.work_ns }
            }
            1 | 3 => {
                self.ended = input.now;
                Act::Read {
                    clock: self.clock,
                    routine: Routine::Four,
                }
            }
            _ => Act::End,
        }
    }
}
