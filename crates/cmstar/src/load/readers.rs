//! Cms that read the clock repeatedly: the load of Figures 1 to 7.

use super::{Player, system_clock};
use crate::engine::Moment;
use crate::machine::{ClockId, Machine, TooFewCms, Window, spread};
use crate::parameters::{Os, Parameters};
use crate::program::{Act, Outcome, Program, StepInput};
use crate::reading::{Reading, Routine};

/// Cms that read the clock in a loop: each takes two successive readings, then stores the
/// difference. One of them keeps its readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadingLoops {
    /// The operating system.
    pub os: Os,
    /// How they read.
    pub routine: Routine,
    /// Number of Cms, spread evenly over the workload's clusters.
    pub readers: usize,
    /// Length of the run, ns.
    pub length_ns: u64,
    /// Length of each ramp, ns: the Cms start one by one in the first, and end one by one in the
    /// last.
    pub ramp_ns: u64,
    /// The seed.
    pub seed: u64,
}

impl ReadingLoops {
    /// Returns the default: two seconds with ramps of a fifth of a second, seed 1.
    #[must_use]
    pub const fn new(os: Os, routine: Routine, readers: usize) -> Self {
        Self {
            os,
            routine,
            readers,
            length_ns: 2_000_000_000,
            ramp_ns: 200_000_000,
            seed: 1,
        }
    }
}

/// Result of [`reading_loops`].
#[derive(Clone, Debug)]
pub struct ReadingRun {
    /// The passes of the Cm that keeps them: the first to start and the last to end.
    pub passes: Vec<[Reading; 2]>,
    /// The machine's counts between the ramps.
    pub plateau: Window,
    /// Digest of everything that happened.
    pub digest: u64,
}

/// Runs the reading loops.
///
/// # Errors
/// The workload's clusters have too few Cms without a clock.
///
/// # Panics
/// If the parameters do not describe a machine, or the ramps are longer than the run.
pub fn reading_loops(
    parameters: &Parameters,
    loops: &ReadingLoops,
) -> Result<ReadingRun, TooFewCms> {
    let (length, ramp) = (loops.length_ns, loops.ramp_ns);
    assert!(2 * ramp <= length, "two ramps in {length} ns");
    let clusters = &parameters.workload.reader_clusters;
    let addresses = spread(&parameters.topology, clusters, loops.readers)?;
    let mut machine = Machine::new(parameters, loops.os, loops.seed);
    for (index, &address) in addresses.iter().enumerate() {
        let late = ramp * index as u64 / loops.readers as u64;
        let mut reader = Reader::new(parameters, loops.os, loops.routine, 2);
        reader.until = Moment::from_ns(length - late);
        reader.keeps = index == 0;
        machine.start(address, Moment::from_ns(late), Player::Reader(reader));
    }
    machine.run(Moment::from_ns(ramp));
    let before = machine.counts();
    machine.run(Moment::from_ns(length - ramp));
    let plateau = machine.counts().since(&before);
    // The last passes end a little later; nothing else bounds them.
    machine.run(Moment::from_ns(2 * length));
    let digest = machine.digest();
    let passes = machine.into_programs().into_iter().next();
    let passes = match passes {
        Some(Player::Reader(reader)) => reader.passes::<2>(),
        _ => Vec::new(),
    };
    Ok(ReadingRun {
        passes,
        plateau,
        digest,
    })
}

/// A reader: reads the clock several times in succession, stores, and begins again.
pub(super) struct Reader {
    clock: ClockId,
    routine: Routine,
    per_pass: usize,
    done: usize,
    store_ns: u64,
    pub until: Moment,
    pub keeps: bool,
    readings: Vec<Reading>,
}

impl Reader {
    pub fn new(parameters: &Parameters, os: Os, routine: Routine, per_pass: usize) -> Self {
        Self {
            clock: system_clock(parameters),
            routine,
            per_pass,
            done: 0,
            store_ns: (1e3 * parameters.system(os).store).round() as u64 * per_pass as u64,
            until: Moment::from_ns(u64::MAX),
            keeps: false,
            readings: Vec::new(),
        }
    }

    /// Returns the kept readings, pass by pass; the last pass is dropped if it is not whole.
    pub fn passes<const N: usize>(&self) -> Vec<[Reading; N]> {
        let (passes, _) = self.readings.as_chunks();
        passes.to_vec()
    }
}

impl Program for Reader {
    fn next(&mut self, input: StepInput) -> Act {
        if let Outcome::Read(reading) = input.outcome {
            self.done += 1;
            if self.keeps {
                self.readings.push(reading);
            }
        }
        if self.done == self.per_pass {
            self.done = 0;
            return Act::Work { ns: self.store_ns };
        }
        if self.done == 0 && input.now >= self.until {
            return Act::End;
        }
        Act::Read {
            clock: self.clock,
            routine: self.routine,
        }
    }
}
