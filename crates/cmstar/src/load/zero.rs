//! The zero test: measures nothing, by both of the paper's methods.

use super::pairs::{Sizes, start_pairs};
use super::readers::Reader;
use super::{Player, system_clock};
use crate::engine::{Entity, Moment, Stream};
use crate::machine::{ChannelId, ClockId, FlagId, Machine, TooFewCms, Window, spread};
use crate::parameters::{Os, Parameters};
use crate::program::{Act, Outcome, Program, StepInput};
use crate::reading::{Reading, Routine};

/// A repetition of the zero test. Method I: r0 r1 | nothing | r2 r3, so `before` is
/// r0 r1, `measured` r1 r2, `after` r2 r3. Method II: `measured` are the experiment's
/// two readings, `before` and `after` the first and the second pair of the clock process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repetition {
    /// The pair that is nearest to the start.
    pub before: [Reading; 2],
    /// The readings between which there is nothing.
    pub measured: [Reading; 2],
    /// The pair that is nearest to the end.
    pub after: [Reading; 2],
}

/// Result of a zero test.
#[derive(Clone, Debug)]
pub struct ZeroRun {
    /// The repetitions, in their order.
    pub repetitions: Vec<Repetition>,
    /// The machine's counts during the repetitions.
    pub window: Window,
    /// Digest of everything that happened.
    pub digest: u64,
}

/// The zero test of Method I. The load consists of processes that do the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MethodOne {
    /// The operating system.
    pub os: Os,
    /// How they read.
    pub routine: Routine,
    /// Number of Cms that read, including the measured one.
    pub readers: usize,
    /// Length of each ramp, ns: the Cms start one by one in the first, and end one by one in the
    /// last. The measured one works from the first to the last.
    pub ramp_ns: u64,
    /// Length of the run, ns.
    pub length_ns: u64,
    /// The seed.
    pub seed: u64,
}

impl MethodOne {
    /// Returns the test as the workload of these parameters defines it, seed 1.
    #[must_use]
    pub fn new(parameters: &Parameters, os: Os, routine: Routine) -> Self {
        let work = &parameters.workload;
        Self {
            os,
            routine,
            readers: work.method_one_readers,
            ramp_ns: (1e6 * work.method_one_ramp_ms).round() as u64,
            length_ns: (1e6 * work.method_one_ms).round() as u64,
            seed: 1,
        }
    }
}

/// Runs the zero test of Method I.
///
/// # Errors
/// The workload's clusters have too few Cms without a clock.
///
/// # Panics
/// If the parameters do not describe a machine, or the ramps are longer than the run.
pub fn method_one(parameters: &Parameters, test: &MethodOne) -> Result<ZeroRun, TooFewCms> {
    let (length, ramp) = (test.length_ns, test.ramp_ns);
    assert!(2 * ramp <= length, "two ramps in {length} ns");
    let clusters = &parameters.workload.reader_clusters;
    let addresses = spread(&parameters.topology, clusters, test.readers)?;
    let mut machine = Machine::new(parameters, test.os, test.seed);
    let mut load = Stream::new(test.seed, Entity::Load, 1);
    for (index, &address) in addresses.iter().enumerate() {
        let late = ramp * index as u64 / test.readers as u64;
        let mut reader = Reader::new(parameters, test.os, test.routine, 4);
        reader.until = Moment::from_ns(length - late);
        reader.keeps = index == 0;
        // The starts are spread, with or without a ramp.
        let jitter = (1e6 * load.uniform()) as u64;
        machine.start(
            address,
            Moment::from_ns(late + jitter),
            Player::Reader(reader),
        );
    }
    let before = machine.counts();
    machine.run(Moment::from_ns(2 * length));
    let window = machine.counts().since(&before);
    let digest = machine.digest();
    let repetitions = match machine.into_programs().into_iter().next() {
        Some(Player::Reader(reader)) => (reader.passes::<4>().iter())
            .map(|&[r0, r1, r2, r3]| Repetition {
                before: [r0, r1],
                measured: [r1, r2],
                after: [r2, r3],
            })
            .collect(),
        _ => Vec::new(),
    };
    Ok(ZeroRun {
        repetitions,
        window,
        digest,
    })
}

/// The zero test of Method II: a clock process on another Cm of the cluster reads pairs when it is
/// signalled. The load consists of pairs of processes that send each other messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MethodTwo {
    /// The operating system.
    pub os: Os,
    /// How both read.
    pub routine: Routine,
    /// Number of pairs that exchange messages, in each cluster.
    pub pairs_per_cluster: usize,
    /// Number of words of each message, accessed by the receiver.
    pub words: u32,
    /// Number of repetitions.
    pub repetitions: usize,
    /// Mean time between repetitions, ns; uniform between half of it and one and a half times it.
    pub every_ns: u64,
    /// The seed.
    pub seed: u64,
}

impl MethodTwo {
    /// Returns the test as the workload of these parameters defines it, seed 1; 1000 repetitions,
    /// as published.
    #[must_use]
    pub fn new(parameters: &Parameters, os: Os, routine: Routine) -> Self {
        let work = &parameters.workload;
        Self {
            os,
            routine,
            pairs_per_cluster: work.method_two_pairs,
            words: work.method_two_words,
            repetitions: 1_000,
            every_ns: (1e6 * work.method_two_every_ms).round() as u64,
            seed: 1,
        }
    }
}

/// Runs the zero test of Method II.
///
/// # Errors
/// A cluster has too few Cms without a clock.
///
/// # Panics
/// If the parameters do not describe a machine.
pub fn method_two(parameters: &Parameters, test: &MethodTwo) -> Result<ZeroRun, TooFewCms> {
    let home = parameters.workload.reader_clusters[0];
    let mut machine = Machine::new(parameters, test.os, test.seed);
    // The load comes first: the experiment comes last in its cluster.
    let sizes = Sizes {
        pairs_per_cluster: test.pairs_per_cluster,
        words: test.words,
    };
    start_pairs(&mut machine, parameters, sizes, test.seed)?;
    let needed = 2 * test.pairs_per_cluster + 2;
    let addresses = spread(&parameters.topology, &[home], needed)?;
    let (at, beside) = (addresses[needed - 2], addresses[needed - 1]);
    let (go, results) = (machine.flag(beside), machine.channel(home));
    let clock = system_clock(parameters);
    let after_start = Moment::from_ms(50);
    let experiment = Experiment {
        clock,
        routine: test.routine,
        go,
        results,
        left: test.repetitions,
        every_ns: test.every_ns,
        stage: 0,
        pause: Stream::new(test.seed, Entity::Load, 2),
        readings: Vec::with_capacity(2 * test.repetitions),
    };
    let experiment = machine.start(at, after_start, Player::Experiment(experiment));
    let clock_process = ClockProcess {
        clock,
        routine: test.routine,
        go,
        results,
        signal_ns: (1e3 * parameters.system(test.os).signal).round() as u64,
        stage: 0,
        readings: Vec::with_capacity(4 * test.repetitions),
    };
    let beside =
        machine.start_background(beside, Moment::START, Player::ClockProcess(clock_process));
    machine.run(after_start);
    let before = machine.counts();
    let limit = 4 * test.every_ns * (test.repetitions as u64 + 10);
    machine.run(after_start.plus_ns(limit));
    let window = machine.counts().since(&before);
    let repetitions = match (machine.program(experiment), machine.program(beside)) {
        (Player::Experiment(experiment), Player::ClockProcess(clock_process)) => {
            let measured = experiment.readings.as_chunks::<2>().0;
            let pairs = clock_process.readings.as_chunks::<4>().0;
            (measured.iter().zip(pairs))
                .map(|(&measured, &[c0, c1, c2, c3])| Repetition {
                    before: [c0, c1],
                    measured,
                    after: [c2, c3],
                })
                .collect()
        }
        _ => Vec::new(),
    };
    Ok(ZeroRun {
        repetitions,
        window,
        digest: machine.digest(),
    })
}

/// The experiment: signals the clock process, reads the clock twice, and sends it the readings.
pub(super) struct Experiment {
    clock: ClockId,
    routine: Routine,
    go: FlagId,
    results: ChannelId,
    left: usize,
    every_ns: u64,
    stage: usize,
    pause: Stream,
    readings: Vec<Reading>,
}

impl Program for Experiment {
    fn next(&mut self, input: StepInput) -> Act {
        if let Outcome::Read(reading) = input.outcome {
            self.readings.push(reading);
        }
        self.stage = (self.stage + 1) % 5;
        match self.stage {
            1 if self.left == 0 => Act::End,
            1 => {
                self.left -= 1;
                let share = 0.5 + self.pause.uniform();
                Act::Sleep {
                    ns: (self.every_ns as f64 * share) as u64,
                }
            }
            2 => Act::Raise(self.go),
            3 | 4 => Act::Read {
                clock: self.clock,
                routine: self.routine,
            },
            // Its two readings go to the clock process.
            _ => Act::Send {
                channel: self.results,
                words: 4,
                tag: 0,
            },
        }
    }
}

/// The clock process: reads the clock in two pairs whenever it is signalled, and receives the
/// experiment's readings.
pub(super) struct ClockProcess {
    clock: ClockId,
    routine: Routine,
    go: FlagId,
    results: ChannelId,
    /// Time from the flag to its first reading.
    signal_ns: u64,
    stage: usize,
    readings: Vec<Reading>,
}

impl Program for ClockProcess {
    fn next(&mut self, input: StepInput) -> Act {
        if let Outcome::Read(reading) = input.outcome {
            self.readings.push(reading);
        }
        self.stage = (self.stage + 1) % 7;
        match self.stage {
            1 => Act::Await(self.go),
            2 => Act::Work { ns: self.signal_ns },
            3..=6 => Act::Read {
                clock: self.clock,
                routine: self.routine,
            },
            _ => Act::Receive {
                channel: self.results,
            },
        }
    }
}
