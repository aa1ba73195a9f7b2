//! Clients and servers that exchange messages: Figures 16 and 17, and a load.

use super::{Player, system_clock};
use crate::engine::{Entity, Moment, Stream};
use crate::machine::{ChannelId, ClockId, Machine, TooFewCms, Window, spread};
use crate::parameters::{Os, Parameters};
use crate::program::{Act, Outcome, Program, StepInput};
use crate::reading::{Reading, Routine};

/// Remote procedure calls by messages. Each cluster has the same number of pairs; one pair, of the
/// workload's first cluster, is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessagePairs {
    /// The operating system.
    pub os: Os,
    /// Number of pairs in each cluster.
    pub pairs_per_cluster: usize,
    /// Number of words accessed in a call, client and server together.
    pub words: u32,
    /// Number of calls of the measured pair.
    pub repetitions: usize,
    /// Number of its calls before those.
    pub warm_up: usize,
    /// How the measured pair reads the clock; `None` if it does not.
    pub routine: Option<Routine>,
    /// Time between the pairs of readings of a clock process in its cluster, ns; `None` without
    /// such a process.
    pub sample_every_ns: Option<u64>,
    /// Whether the client measures nothing after each call: the check of Section 5.2.
    pub checks: bool,
    /// The seed.
    pub seed: u64,
}

impl MessagePairs {
    /// Returns the default: StarOS, 512 calls as published, the clock read by 4-Read, no clock
    /// process, no checks, seed 1.
    #[must_use]
    pub const fn new(pairs_per_cluster: usize, words: u32) -> Self {
        Self {
            os: Os::StarOs,
            pairs_per_cluster,
            words,
            repetitions: 512,
            warm_up: 16,
            routine: Some(Routine::Four),
            sample_every_ns: None,
            checks: false,
            seed: 1,
        }
    }
}

/// A remote procedure call, in truth and as the processes saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// When the client began to send.
    pub sent: Moment,
    /// When the server had the message.
    pub received: Moment,
    /// When the client had accessed the result.
    pub done: Moment,
    /// The server was blocked when the message came: only then is the latency meaningful.
    pub server_was_blocked: bool,
    /// The client's reading before it sent, the server's when it had the message, and the client's
    /// when it had accessed the result; `None` if they do not read.
    pub readings: Option<[Reading; 3]>,
    /// The client's four readings in a row after the call, of which the middle two measure nothing;
    /// `None` without checks.
    pub check: Option<[Reading; 4]>,
}

impl Call {
    /// Returns the time from the begin of the send until the server had the message, ns.
    #[must_use]
    pub const fn latency_ns(&self) -> i64 {
        self.received.ns_since(self.sent)
    }

    /// Returns the time from the begin of the send until the client had accessed the result, ns.
    #[must_use]
    pub const fn call_ns(&self) -> i64 {
        self.done.ns_since(self.sent)
    }
}

/// Result of [`message_pairs`].
#[derive(Clone, Debug)]
pub struct PairsRun {
    /// The calls of the measured pair.
    pub calls: Vec<Call>,
    /// The pairs of readings of the clock process.
    pub samples: Vec<[Reading; 2]>,
    /// The machine's counts from the start on.
    pub window: Window,
    /// Digest of everything that happened.
    pub digest: u64,
}

/// Number of pairs, and of words accessed in a call.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub pairs_per_cluster: usize,
    pub words: u32,
}

/// Runs the message pairs.
///
/// # Errors
/// A cluster has too few Cms without a clock.
///
/// # Panics
/// If the parameters do not describe a machine.
pub fn message_pairs(parameters: &Parameters, pairs: &MessagePairs) -> Result<PairsRun, TooFewCms> {
    let home = parameters.workload.reader_clusters[0];
    let mut machine = Machine::new(parameters, pairs.os, pairs.seed);
    let sizes = Sizes {
        pairs_per_cluster: pairs.pairs_per_cluster,
        words: pairs.words,
    };
    // The measured pair comes first: its cluster has one fewer of the others.
    let needed = 2 * pairs.pairs_per_cluster + 1;
    let addresses = spread(&parameters.topology, &[home], needed)?;
    let channels = (machine.channel(home), machine.channel(home));
    let reads = pairs.routine.map(|r| (system_clock(parameters), r));
    let mut client = Client::new(home, channels, pairs.words);
    client.reads = reads;
    client.checks = pairs.checks && reads.is_some();
    client.left = Some(pairs.warm_up + pairs.repetitions);
    let mut server = Server::new(home, channels, pairs.words);
    server.reads = reads;
    server.keeps = true;
    let client = machine.start(addresses[0], Moment::START, Player::Client(client));
    let server = machine.start_background(addresses[1], Moment::START, Player::Server(server));
    start_others(&mut machine, parameters, sizes, pairs.seed, Some(home))?;
    let sampler = pairs.sample_every_ns.map(|every_ns| {
        let sampler = Sampler {
            clock: system_clock(parameters),
            routine: pairs.routine.unwrap_or(Routine::Four),
            every_ns,
            stage: 0,
            readings: Vec::new(),
        };
        let address = addresses[needed - 1];
        machine.start_background(address, Moment::START, Player::Sampler(sampler))
    });
    let before = machine.counts();
    // A call takes some 20 ms; at a hundred times that it counts as stuck.
    let limit = (pairs.warm_up + pairs.repetitions) as u64 * 2_000_000_000;
    machine.run(Moment::from_ns(limit));
    let window = machine.counts().since(&before);
    let samples = match sampler.map(|s| machine.program(s)) {
        Some(Player::Sampler(sampler)) => sampler.readings.as_chunks().0.to_vec(),
        _ => Vec::new(),
    };
    let calls = match (machine.program(client), machine.program(server)) {
        (Player::Client(client), Player::Server(server)) => joined(client, server),
        _ => Vec::new(),
    };
    Ok(PairsRun {
        calls: calls.into_iter().skip(pairs.warm_up).collect(),
        samples,
        window,
        digest: machine.digest(),
    })
}

/// Joins both sides of each call.
fn joined(client: &Client, server: &Server) -> Vec<Call> {
    let of_call = if client.checks { 2 + CHECKS } else { 2 };
    let mut readings = client.readings.chunks(of_call);
    let both = client.calls.iter().zip(&server.received).enumerate();
    both.map(|(n, (&(sent, done), &(received, server_was_blocked)))| {
        // Of a client that does not read there is none.
        let own = readings.next();
        Call {
            sent,
            received,
            done,
            server_was_blocked,
            readings: match (own, server.readings.get(n)) {
                (Some(&[sent, done, ..]), Some(&received)) => Some([sent, received, done]),
                _ => None,
            },
            check: match own {
                Some(&[_, r0, r1, r2, r3]) => Some([r0, r1, r2, r3]),
                _ => None,
            },
        }
    })
    .collect()
}

/// Starts pairs in all clusters, in the background, on the first Cms of each.
pub(super) fn start_pairs(
    machine: &mut Machine<Player>,
    parameters: &Parameters,
    sizes: Sizes,
    seed: u64,
) -> Result<(), TooFewCms> {
    start_others(machine, parameters, sizes, seed, None)
}

/// As [`start_pairs`], but with one pair fewer in the cluster where one is measured.
fn start_others(
    machine: &mut Machine<Player>,
    parameters: &Parameters,
    sizes: Sizes,
    seed: u64,
    measured: Option<usize>,
) -> Result<(), TooFewCms> {
    for cluster in 1..=parameters.topology.clusters {
        let mut stream = Stream::new(seed, Entity::Load, 100 + cluster as u64);
        let addresses = spread(
            &parameters.topology,
            &[cluster],
            2 * sizes.pairs_per_cluster,
        )?;
        let skip = usize::from(measured == Some(cluster));
        for pair in addresses.as_chunks::<2>().0.iter().skip(skip) {
            let channels = (machine.channel(cluster), machine.channel(cluster));
            // Not all in step.
            let at = Moment::from_ns((20e6 * stream.uniform()) as u64);
            let client = Client::new(cluster, channels, sizes.words);
            let server = Server::new(cluster, channels, sizes.words);
            machine.start_background(pair[0], at, Player::Client(client));
            machine.start_background(pair[1], at, Player::Server(server));
        }
    }
    Ok(())
}

/// Readings of a check, after the one that ends the call.
const CHECKS: usize = 3;

/// A client: sends arguments, waits for the result, accesses it.
pub(super) struct Client {
    cluster: usize,
    channels: (ChannelId, ChannelId),
    words: u32,
    reads: Option<(ClockId, Routine)>,
    checks: bool,
    /// Number of calls still to make; `None`: unlimited, and nothing is kept.
    left: Option<usize>,
    stage: usize,
    sent: Moment,
    calls: Vec<(Moment, Moment)>,
    readings: Vec<Reading>,
}

impl Client {
    fn new(cluster: usize, channels: (ChannelId, ChannelId), words: u32) -> Self {
        Self {
            cluster,
            channels,
            // The client and the server access half of the words each.
            words: words / 2,
            reads: None,
            checks: false,
            left: None,
            stage: 0,
            sent: Moment::START,
            calls: Vec::new(),
            readings: Vec::new(),
        }
    }
}

impl Program for Client {
    fn next(&mut self, input: StepInput) -> Act {
        if let Outcome::Read(reading) = input.outcome {
            self.readings.push(reading);
        }
        loop {
            let stages = if self.checks { 6 + CHECKS } else { 6 };
            self.stage = self.stage % stages + 1;
            match (self.stage, self.reads) {
                (1, _) if self.left == Some(0) => return Act::End,
                (1, _) => return Act::Prepare { words: 4 },
                (2 | 6.., Some((clock, routine))) => {
                    if self.stage == 6 {
                        self.kept(input.now);
                    }
                    return Act::Read { clock, routine };
                }
                (3, _) => {
                    self.sent = input.now;
                    return Act::Send {
                        channel: self.channels.0,
                        words: self.words,
                        tag: 0,
                    };
                }
                (4, _) => {
                    return Act::Receive {
                        channel: self.channels.1,
                    };
                }
                (5, _) => {
                    return Act::Access {
                        cluster: self.cluster,
                        words: self.words,
                    };
                }
                (6, None) => self.kept(input.now),
                _ => {}
            }
        }
    }
}

impl Client {
    fn kept(&mut self, now: Moment) {
        if let Some(left) = &mut self.left {
            *left -= 1;
            self.calls.push((self.sent, now));
        }
    }
}

/// A server: waits for arguments, accesses them, sends the result.
pub(super) struct Server {
    cluster: usize,
    channels: (ChannelId, ChannelId),
    words: u32,
    reads: Option<(ClockId, Routine)>,
    keeps: bool,
    stage: usize,
    received: Vec<(Moment, bool)>,
    readings: Vec<Reading>,
}

impl Server {
    fn new(cluster: usize, channels: (ChannelId, ChannelId), words: u32) -> Self {
        Self {
            cluster,
            channels,
            words: words - words / 2,
            reads: None,
            keeps: false,
            stage: 0,
            received: Vec::new(),
            readings: Vec::new(),
        }
    }
}

impl Program for Server {
    fn next(&mut self, input: StepInput) -> Act {
        match input.outcome {
            Outcome::Read(reading) => self.readings.push(reading),
            Outcome::Received { was_blocked, .. } if self.keeps => {
                self.received.push((input.now, was_blocked));
            }
            _ => {}
        }
        self.stage = self.stage % 4 + 1;
        match (self.stage, self.reads) {
            (1, _) => Act::Receive {
                channel: self.channels.0,
            },
            (2, Some((clock, routine))) => Act::Read { clock, routine },
            (2, None) => Act::Null,
            (3, _) => Act::Access {
                cluster: self.cluster,
                words: self.words,
            },
            _ => Act::Send {
                channel: self.channels.1,
                words: self.words,
                tag: 0,
            },
        }
    }
}

/// The clock process: takes pairs of readings repeatedly.
pub(super) struct Sampler {
    clock: ClockId,
    routine: Routine,
    every_ns: u64,
    stage: usize,
    readings: Vec<Reading>,
}

impl Program for Sampler {
    fn next(&mut self, input: StepInput) -> Act {
        if let Outcome::Read(reading) = input.outcome {
            self.readings.push(reading);
        }
        self.stage = self.stage % 3 + 1;
        match self.stage {
            1 => Act::Sleep { ns: self.every_ns },
            _ => Act::Read {
                clock: self.clock,
                routine: self.routine,
            },
        }
    }
}
