//! The machine: processors, Kmaps, buses, clocks, and the processes on them.

mod address;
mod clock;
mod cm;
mod continuations;
mod costs;
mod counts;
mod messages;
mod perform;
mod process;
mod scheduling;
mod trip;

pub use address::{ChannelId, ClockId, CmAddress, FlagId, LockId, ProcessId, TooFewCms, spread};
pub use counts::{Counts, Window};

use std::collections::{BTreeMap, VecDeque};

use self::clock::SystemClock;
use self::cm::Cm;
use self::costs::Costs;
use self::messages::Channel;
use self::process::{Process, State};
use self::trip::Trip;
use crate::engine::{Agenda, Digest, Entity, Moment, Station, Stream};
use crate::parameters::{Os, Parameters, Topology};
use crate::program::{Outcome, Program};
use crate::reading::Reader;

/// An event; the number is the process's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// A process begins.
    Begin(u32),
    /// Local work of a process is over.
    Step(u32),
    /// A packet of a process reaches a station.
    Hop(u32),
    /// A reference of a process changes the word that it reached.
    Touch(u32),
    /// The sleep of a process is over.
    Timer(u32),
}

/// A lock's word: test-and-set.
#[derive(Clone, Copy, Debug)]
struct Lock {
    cluster: usize,
    holder: Option<u32>,
}

/// A word that one process raises and another one polls.
#[derive(Clone, Copy, Debug)]
struct Flag {
    cluster: usize,
    cm: usize,
    raised: u32,
}

/// Why a run stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The moment was reached.
    Limit,
    /// All processes that do not run in the background have ended.
    AllEnded,
    /// No process can continue: all that remain wait for each other.
    Stuck,
}

/// A simulated Cm*, and the programs of type `P` on it.
///
/// The same parameters, seed and programs give the same run, bit for bit, on any machine and beside
/// any number of other runs: it uses no thread, no address and no time of the real machine.
pub struct Machine<P> {
    topology: Topology,
    costs: Costs,
    seed: u64,
    agenda: Agenda<Event>,
    digest: Digest,
    clocks: Vec<SystemClock>,
    cms: Vec<Cm>,
    kmaps: Vec<Station>,
    map_buses: Vec<Station>,
    buses: Vec<Station>,
    processes: Vec<Process<P>>,
    locks: Vec<Lock>,
    flags: Vec<Flag>,
    channels: Vec<Channel>,
    /// Processes that have added an event, by event.
    listeners: BTreeMap<u32, Vec<u32>>,
    /// Number of processes that the run waits for.
    awaited: usize,
    counts: Counts,
}

impl<P: Program> Machine<P> {
    /// Creates a machine at its start.
    ///
    /// # Panics
    /// If the parameters do not describe a machine: changed parameters need [`Parameters::check`]
    /// first.
    #[must_use]
    pub fn new(parameters: &Parameters, os: Os, seed: u64) -> Self {
        if let Err(bad) = parameters.check() {
            panic!("{bad}");
        }
        let (topology, system) = (parameters.topology.clone(), parameters.system(os));
        let costs = Costs::new(parameters, system);
        // One line clock for the whole machine: it ticks on all Cms at once.
        let first_tick = Stream::new(seed, Entity::Load, 0).uniform();
        let cms: Vec<Cm> = (0..topology.clusters * topology.cms_per_cluster)
            .map(|index| {
                let cluster = index / topology.cms_per_cluster;
                let interrupts = system.interrupts.as_ref();
                Cm::new(cluster, index, &parameters.cm, interrupts, first_tick, seed)
            })
            .collect();
        let clocks = (topology.clocks.iter())
            .map(|c| {
                let cm = (c.cluster - 1) * topology.cms_per_cluster + c.cm - 1;
                SystemClock::new(c.cluster - 1, cm, &parameters.clock)
            })
            .collect();
        let kmap = costs.room.map_or_else(Station::queue, Station::with_room);
        Self {
            kmaps: vec![kmap; topology.clusters],
            map_buses: vec![Station::queue(); topology.clusters],
            buses: vec![Station::queue(); topology.intercluster_buses],
            topology,
            costs,
            seed,
            agenda: Agenda::new(),
            digest: Digest::default(),
            clocks,
            cms,
            processes: Vec::new(),
            locks: Vec::new(),
            flags: Vec::new(),
            channels: Vec::new(),
            listeners: BTreeMap::new(),
            awaited: 0,
            counts: Counts::default(),
        }
    }

    /// Returns whether there is such a Cm.
    #[must_use]
    pub fn has(&self, address: CmAddress) -> bool {
        (1..=self.topology.clusters).contains(&address.cluster)
            && (1..=self.topology.cms_per_cluster).contains(&address.cm)
    }

    /// Returns its topology.
    #[must_use]
    pub const fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Starts a program on a Cm at a moment. Several on one Cm take turns.
    ///
    /// # Panics
    /// If there is no such Cm, or the moment is past.
    pub fn start(&mut self, address: CmAddress, at: Moment, program: P) -> ProcessId {
        self.add(address, at, program, true)
    }

    /// As [`Machine::start`], for a process that the run does not wait for.
    ///
    /// # Panics
    /// As [`Machine::start`].
    pub fn start_background(&mut self, address: CmAddress, at: Moment, program: P) -> ProcessId {
        self.add(address, at, program, false)
    }

    fn add(&mut self, address: CmAddress, at: Moment, program: P, foreground: bool) -> ProcessId {
        assert!(self.has(address), "there is no {address}");
        let id = u32::try_from(self.processes.len()).expect("fewer than 2^32 processes");
        let cm = self.index_of(address);
        // The memory of 1-Read is right when its process begins; all clocks have one shape.
        let (shape, start_ticks) = (self.clocks[0].shape, self.clocks[0].ticks(at));
        self.processes.push(Process {
            program,
            cm,
            state: State::Coming,
            foreground,
            parts: VecDeque::with_capacity(8),
            left_ns: 0,
            slice_ns: 0,
            runs_out: false,
            trip: Trip::default(),
            reader: Reader::new(shape, start_ticks),
            called: at,
            outcome: Outcome::Started,
            wakeup_saved: false,
            events: Vec::new(),
            stream: Stream::new(self.seed, Entity::Process, u64::from(id)),
        });
        self.awaited += usize::from(foreground);
        self.agenda.enter(at, Event::Begin(id));
        ProcessId(id)
    }

    /// Creates a lock whose word lies in a cluster (from 1).
    ///
    /// # Panics
    /// If there is no such cluster.
    pub fn lock(&mut self, cluster: usize) -> LockId {
        assert!(self.has(CmAddress::new(cluster, 1)), "no cluster {cluster}");
        self.locks.push(Lock {
            cluster: cluster - 1,
            holder: None,
        });
        LockId(self.locks.len() as u32 - 1)
    }

    /// Creates a flag in the memory of a Cm, whose processes may await it.
    ///
    /// # Panics
    /// If there is no such Cm.
    pub fn flag(&mut self, address: CmAddress) -> FlagId {
        assert!(self.has(address), "there is no {address}");
        let cm = self.index_of(address);
        self.flags.push(Flag {
            cluster: address.cluster - 1,
            cm,
            raised: 0,
        });
        FlagId(self.flags.len() as u32 - 1)
    }

    /// Creates a channel for messages that the Kmap of a cluster (from 1) manages.
    ///
    /// # Panics
    /// If there is no such cluster.
    pub fn channel(&mut self, cluster: usize) -> ChannelId {
        assert!(self.has(CmAddress::new(cluster, 1)), "no cluster {cluster}");
        self.channels.push(Channel::new(cluster - 1));
        ChannelId(self.channels.len() as u32 - 1)
    }

    /// Runs until all processes that are not in the background have ended, but not beyond a moment.
    pub fn run(&mut self, limit: Moment) -> Stopped {
        while self.awaited > 0 {
            match self.agenda.next_at() {
                None => return Stopped::Stuck,
                Some(at) if at > limit => {
                    self.agenda.advance(limit.max(self.agenda.now()));
                    return Stopped::Limit;
                }
                Some(_) => self.happen(),
            }
        }
        Stopped::AllEnded
    }

    /// Processes the next event.
    fn happen(&mut self) {
        let Some((at, event)) = self.agenda.next() else {
            return;
        };
        let (kind, p) = match event {
            Event::Begin(p) => (0, p),
            Event::Step(p) => (1, p),
            Event::Hop(p) => (2, p),
            Event::Touch(p) => (3, p),
            Event::Timer(p) => (4, p),
        };
        self.digest.add(at.ns());
        self.digest.add(u64::from(p) << 8 | kind);
        match event {
            Event::Begin(p) | Event::Timer(p) => self.make_ready(p),
            Event::Step(p) => self.worked(p),
            Event::Hop(p) => self.hop(p),
            Event::Touch(p) => self.touch(p),
        }
    }

    /// Returns the current moment.
    #[must_use]
    pub const fn now(&self) -> Moment {
        self.agenda.now()
    }

    /// Returns a program, with its results.
    ///
    /// # Panics
    /// If there is no such process.
    #[must_use]
    pub fn program(&self, process: ProcessId) -> &P {
        &self.processes[process.0 as usize].program
    }

    /// Returns all programs, in the order in which they were started.
    #[must_use]
    pub fn into_programs(self) -> Vec<P> {
        (self.processes.into_iter()).map(|p| p.program).collect()
    }

    /// Returns whether a process has ended.
    ///
    /// # Panics
    /// If there is no such process.
    #[must_use]
    pub fn has_ended(&self, process: ProcessId) -> bool {
        self.processes[process.0 as usize].state == State::Ended
    }

    /// Returns what a process is doing, in words.
    ///
    /// # Panics
    /// If there is no such process.
    #[must_use]
    pub fn doing(&self, process: ProcessId) -> &'static str {
        match self.processes[process.0 as usize].state {
            State::Coming => "not started yet",
            State::Ready => "waits for its Cm",
            State::Running => "runs",
            State::Blocked => "blocked",
            State::Waiting => "waits for an event",
            State::AtChannel => "waits at a channel",
            State::Asleep => "sleeps",
            State::Ended => "at its end",
        }
    }

    /// Returns the counts of the machine so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut counts = self.counts.clone();
        counts.at = self.agenda.now();
        counts.events = self.agenda.entered();
        counts.interrupts = self.cms.iter().map(|cm| cm.interrupts).sum();
        counts.kmaps = self.kmaps.iter().map(Station::counts).collect();
        counts.map_buses = self.map_buses.iter().map(Station::counts).collect();
        counts.buses = self.buses.iter().map(Station::counts).collect();
        counts
    }

    /// Returns a number that differs if anything happened otherwise or at another time.
    #[must_use]
    pub const fn digest(&self) -> u64 {
        self.digest.value()
    }

    /// Returns the index of an existing Cm.
    const fn index_of(&self, address: CmAddress) -> usize {
        (address.cluster - 1) * self.topology.cms_per_cluster + address.cm - 1
    }

    fn process(&mut self, p: u32) -> &mut Process<P> {
        &mut self.processes[p as usize]
    }

    fn cm_of(&mut self, p: u32) -> &mut Cm {
        &mut self.cms[self.processes[p as usize].cm]
    }
}
