//! Acts, divided into parts.

use super::Machine;
use super::address::ClockId;
use super::process::{Continuation, Part, Target, WordOperation};
use crate::program::{Act, Program};

impl<P: Program> Machine<P> {
    /// Queues the parts of an act.
    pub(super) fn perform(&mut self, p: u32, act: Act) {
        let costs = self.costs;
        match act {
            Act::Null => self.put(p, &[Part::Local(costs.null)]),
            Act::Work { ns } => self.put(p, &[Part::Local(ns.max(1) as f64)]),
            Act::Turns { turns } => {
                self.put(p, &[Part::Local(costs.turn * turns.max(1) as f64)]);
            }
            Act::Read { clock, routine } => {
                self.process(p).called = self.agenda.now();
                let begin = Continuation::BeginReading(clock, routine);
                self.put(
                    p,
                    &[Part::Local(costs.before_reading), Part::Continue(begin)],
                );
            }
            Act::Fetch { clock, word } => {
                let refer =
                    Part::Refer(self.way_to(p, clock), WordOperation::ClockWord(clock, word));
                self.put(p, &[refer, Part::Continue(Continuation::TellWord)]);
            }
            Act::Access { cluster, words } => {
                let next = Continuation::AccessNext(cluster - 1, words);
                self.put(p, &[Part::Local(1.0), Part::Continue(next)]);
            }
            Act::Prepare { words } => {
                self.put(p, &[Part::Local(costs.prepared_word * f64::from(words))]);
            }
            Act::Sleep { ns } => self.call(p, costs.sleep, Continuation::SleepFor(ns)),
            Act::SleepUntil { until } => self.call(p, costs.sleep, Continuation::SleepUntil(until)),
            Act::Yield => self.call(p, costs.give_way, Continuation::GiveWay),
            Act::RunOut => self.call(p, 1.0, Continuation::RunOut),
            Act::Lock(lock) => {
                let word = Target::Cluster(self.locks[lock.0 as usize].cluster);
                let see = Part::Continue(Continuation::SeeLock(lock, 0));
                self.put(p, &[Part::Refer(word, WordOperation::TakeLock(lock)), see]);
            }
            Act::Unlock(lock) => {
                let word = Target::Cluster(self.locks[lock.0 as usize].cluster);
                self.put(p, &[Part::Refer(word, WordOperation::GiveLock(lock))]);
            }
            Act::Wakeup(who) => self.call(p, costs.wakeup, Continuation::Wake(who)),
            Act::Block => self.call(p, costs.block, Continuation::Block),
            Act::AddEvent(event) => self.call(p, costs.event, Continuation::AddEvent(event)),
            Act::DelEvent(event) => self.call(p, costs.event, Continuation::DelEvent(event)),
            Act::Notify(event) => self.call(p, costs.event, Continuation::Notify(event)),
            Act::Wait => self.call(p, costs.event, Continuation::Wait),
            Act::UntilBlocked(who) => self.call(p, costs.poll, Continuation::SeeBlocked(who)),
            Act::Raise(flag) => {
                let Flagged { same_cm, cluster } = self.flagged(p, flag);
                let word = if same_cm {
                    Target::Own
                } else {
                    Target::Cluster(cluster)
                };
                self.put(p, &[Part::Refer(word, WordOperation::RaiseFlag(flag))]);
            }
            Act::Await(flag) => self.call(p, costs.poll, Continuation::SeeFlag(flag)),
            Act::Send {
                channel,
                words,
                tag,
            } => self.send(p, channel, words, tag),
            Act::Receive { channel } => self.call(p, costs.block, Continuation::Take(channel)),
            Act::End => self.put(p, &[Part::Continue(Continuation::End)]),
        }
    }

    pub(super) fn put(&mut self, p: u32, parts: &[Part]) {
        self.process(p).parts.extend(parts);
    }

    /// Queues local work, and what follows it.
    fn call(&mut self, p: u32, ns: f64, continuation: Continuation) {
        self.put(p, &[Part::Local(ns), Part::Continue(continuation)]);
    }

    /// Returns how a clock's words are reached from a process's Cm.
    pub(super) fn way_to(&self, p: u32, clock: ClockId) -> Target {
        let clock = &self.clocks[clock.0];
        if clock.cm == self.processes[p as usize].cm {
            Target::Own
        } else {
            Target::Cluster(clock.cluster)
        }
    }

    fn flagged(&self, p: u32, flag: super::FlagId) -> Flagged {
        let flag = &self.flags[flag.0 as usize];
        Flagged {
            same_cm: flag.cm == self.processes[p as usize].cm,
            cluster: flag.cluster,
        }
    }
}

/// The location of a flag, seen from a process.
struct Flagged {
    same_cm: bool,
    cluster: usize,
}
