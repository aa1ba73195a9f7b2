//! The way of a reference through Map Buses, Kmaps and intercluster buses.
//!
//! Each place where a packet may have to wait is a separate event, so packets reach every station
//! in order of time. While a reference is on its way to another cluster, its own Kmap serves
//! others: packet switching.

use super::process::{State, Target, WordOperation};
use super::{Event, Machine};
use crate::engine::Moment;
use crate::program::Program;

/// The next stage on a packet's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    MapBusOut,
    OwnKmap,
    NearKmap,
    BusOut,
    FarKmap,
    BusBack,
    KmapBack,
    Operation,
    MapBusBack,
    Done,
}

/// A reference or an operation that a process waits for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trip {
    stage: Stage,
    /// Cluster of the process, and of the word; from 0.
    from: usize,
    to: usize,
    operation: WordOperation,
    issued: Moment,
    /// When the word was reached, and the value found.
    pub sampled: Moment,
    pub value: u64,
    /// Remaining pieces of an operation.
    pieces: u32,
    /// Whether the operation has a context of the Kmap.
    accepted: bool,
}

impl Default for Trip {
    fn default() -> Self {
        Self {
            stage: Stage::Done,
            from: 0,
            to: 0,
            operation: WordOperation::Nothing,
            issued: Moment::START,
            sampled: Moment::START,
            value: 0,
            pieces: 0,
            accepted: false,
        }
    }
}

impl<P: Program> Machine<P> {
    /// Issues a reference of a process; its processor stalls until the reference is back.
    pub(super) fn issue(&mut self, p: u32, target: Target, operation: WordOperation) {
        let now = self.agenda.now();
        let issue_ns = self.work_ns(p, self.costs.issue);
        let from = self.cm_of(p).cluster;
        let mut trip = Trip {
            from,
            operation,
            issued: now,
            ..Trip::default()
        };
        let Target::Cluster(to) = target else {
            let local_ns = self.work_ns(p, self.costs.local);
            self.counts.own += 1;
            self.process(p).trip = trip;
            self.reach(p, now.plus_ns(issue_ns + local_ns));
            let sampled = self.process(p).trip.sampled;
            self.agenda.enter(sampled, Event::Hop(p));
            return;
        };
        (trip.to, trip.stage) = (to, Stage::MapBusOut);
        if from == to {
            self.counts.near += 1;
        } else {
            self.counts.far += 1;
        }
        self.process(p).trip = trip;
        self.set_out(p, issue_ns);
    }

    /// Has a Kmap perform an operation for a process; its processor stalls until it is done.
    pub(super) fn operate(&mut self, p: u32, kmap: usize, pieces: u32) {
        let issue_ns = self.work_ns(p, self.costs.issue);
        self.counts.operations += 1;
        self.process(p).trip = Trip {
            stage: Stage::MapBusOut,
            // The way to another cluster's Kmap is a separate reference.
            from: kmap,
            to: kmap,
            issued: self.agenda.now(),
            pieces: pieces.max(1),
            ..Trip::default()
        };
        self.set_out(p, issue_ns);
    }

    fn set_out(&mut self, p: u32, issue_ns: u64) {
        let leg_ns = self.leg_ns(p);
        let at = (self.agenda.now()).plus_ns(issue_ns + self.costs.slocal + leg_ns);
        self.agenda.enter(at, Event::Hop(p));
    }

    /// Returns how long work takes on a process's Cm, ns.
    fn work_ns(&mut self, p: u32, nominal_ns: f64) -> u64 {
        self.cm_of(p).work_ns(nominal_ns)
    }

    fn leg_ns(&mut self, p: u32) -> u64 {
        let leg = self.costs.leg;
        match leg.mean_ns {
            0.0 => 0,
            _ => leg.draw_ns(&mut self.process(p).stream),
        }
    }

    /// Handles a packet that reaches its next station.
    pub(super) fn hop(&mut self, p: u32) {
        let now = self.agenda.now();
        let Trip {
            stage, from, to, ..
        } = self.process(p).trip;
        let costs = self.costs;
        let (next, at) = match stage {
            Stage::MapBusOut => {
                let end = self.map_buses[from].serve(now, costs.map_bus);
                let next = match (from == to, self.process(p).trip.pieces) {
                    (_, 1..) => Stage::Operation,
                    (true, _) => Stage::NearKmap,
                    (false, _) => Stage::OwnKmap,
                };
                (next, end)
            }
            Stage::OwnKmap => {
                let service_ns = costs.own_kmap_out.draw_ns(&mut self.process(p).stream);
                let Some(end) = self.offer(p, from, service_ns) else {
                    return;
                };
                (Stage::BusOut, end)
            }
            Stage::NearKmap => {
                let service_ns = costs.near_kmap.draw_ns(&mut self.process(p).stream);
                let Some(at) = self.fetch(p, from, service_ns) else {
                    return;
                };
                (Stage::MapBusBack, at)
            }
            Stage::BusOut => (Stage::FarKmap, self.cross(1)),
            Stage::FarKmap => {
                let service_ns = costs.far_kmap.draw_ns(&mut self.process(p).stream);
                let Some(at) = self.fetch(p, to, service_ns) else {
                    return;
                };
                (Stage::BusBack, at)
            }
            Stage::BusBack => {
                let words = self.words(p);
                (Stage::KmapBack, self.cross(words))
            }
            Stage::KmapBack => {
                let service_ns = costs.own_kmap_back.draw_ns(&mut self.process(p).stream);
                (Stage::MapBusBack, self.kmaps[from].serve(now, service_ns))
            }
            Stage::Operation => {
                let Some(next) = self.piece(p) else { return };
                next
            }
            Stage::MapBusBack => {
                let words = self.words(p);
                let end = self.map_buses[from].serve(now, words * costs.map_bus);
                (Stage::Done, end.plus_ns(costs.slocal + self.leg_ns(p)))
            }
            Stage::Done => return self.back(p),
        };
        self.process(p).trip.stage = next;
        self.agenda.enter(at, Event::Hop(p));
    }

    /// Offers a request to a Kmap; one that is turned away returns later.
    fn offer(&mut self, p: u32, kmap: usize, service_ns: u64) -> Option<Moment> {
        let now = self.agenda.now();
        match self.kmaps[kmap].offer(now, service_ns) {
            Ok(end) => Some(end),
            Err(_) => {
                self.kmaps[kmap].lose(now, self.costs.refused);
                let again = self.costs.again;
                let wait_ns = again.draw_ns(&mut self.process(p).stream).max(1);
                self.agenda.enter(now.plus_ns(wait_ns), Event::Hop(p));
                None
            }
        }
    }

    /// Performs the next piece of an operation. Only the first may be turned away.
    fn piece(&mut self, p: u32) -> Option<(Stage, Moment)> {
        let (now, piece_ns) = (self.agenda.now(), self.costs.piece);
        let Trip { to, accepted, .. } = self.process(p).trip;
        let end = if accepted {
            self.kmaps[to].serve(now, piece_ns)
        } else {
            self.offer(p, to, piece_ns)?
        };
        let gap = self.costs.gap;
        let process = self.process(p);
        process.trip.accepted = true;
        process.trip.pieces -= 1;
        if process.trip.pieces == 0 {
            return Some((Stage::MapBusBack, end));
        }
        let gap_ns = gap.draw_ns(&mut process.stream);
        Some((Stage::Operation, end.plus_ns(gap_ns)))
    }

    /// Number of words that come back to a process.
    fn words(&mut self, p: u32) -> u64 {
        match self.process(p).trip.operation {
            WordOperation::WholeClock(clock) => self.clocks[clock.0].words(),
            _ => 1,
        }
    }

    /// Has a Kmap fetch what a reference is for; returns when it is there. A latched clock shows all
    /// its words as they were when the first was read, and its Kmap reads one after the other.
    fn fetch(&mut self, p: u32, kmap: usize, service_ns: u64) -> Option<Moment> {
        let memory = self.costs.memory;
        let further_ns = (self.words(p) - 1) * memory;
        let end = self.offer(p, kmap, service_ns + further_ns)?;
        self.reach(p, Moment::from_ns(end.ns() - further_ns + memory));
        Some(end.plus_ns(memory))
    }

    /// Crosses the intercluster bus that is free first.
    fn cross(&mut self, words: u64) -> Moment {
        let now = self.agenda.now();
        let first = (self.buses.iter_mut())
            .min_by_key(|bus| bus.free_at())
            .expect("there is one");
        first.serve(now, words * self.costs.bus)
    }

    /// Handles a reference that reaches its word at `at`.
    fn reach(&mut self, p: u32, at: Moment) -> Moment {
        let operation = self.process(p).trip.operation;
        let value = match operation {
            WordOperation::ClockWord(clock, word) => self.clocks[clock.0].word(word, at),
            WordOperation::WholeClock(clock) => self.clocks[clock.0].ticks(at),
            WordOperation::Nothing => 0,
            // Effects that others see happen at their own time.
            WordOperation::TakeLock(_)
            | WordOperation::GiveLock(_)
            | WordOperation::RaiseFlag(_) => {
                self.agenda.enter(at, Event::Touch(p));
                0
            }
        };
        let trip = &mut self.process(p).trip;
        (trip.sampled, trip.value) = (at, value);
        at
    }

    /// Performs the operation of a reference on the word it has reached.
    pub(super) fn touch(&mut self, p: u32) {
        match self.process(p).trip.operation {
            WordOperation::TakeLock(lock) => {
                let holder = &mut self.locks[lock.0 as usize].holder;
                let taken = holder.is_none();
                if taken {
                    *holder = Some(p);
                }
                self.process(p).trip.value = u64::from(taken);
            }
            WordOperation::GiveLock(lock) => self.locks[lock.0 as usize].holder = None,
            WordOperation::RaiseFlag(flag) => self.flags[flag.0 as usize].raised += 1,
            WordOperation::Nothing
            | WordOperation::ClockWord(..)
            | WordOperation::WholeClock(_) => {}
        }
    }

    /// Handles a packet that is back at its processor.
    fn back(&mut self, p: u32) {
        debug_assert_eq!(self.process(p).state, State::Running);
        let now = self.agenda.now();
        let stalled_ns = now.ns() - self.process(p).trip.issued.ns();
        let cm = self.cm_of(p);
        cm.quantum_left_ns = cm.quantum_left_ns.saturating_sub(stalled_ns);
        let at = cm.after_stall(now);
        if at > now {
            self.agenda.enter(at, Event::Step(p));
        } else {
            self.go_on(p);
        }
    }
}
