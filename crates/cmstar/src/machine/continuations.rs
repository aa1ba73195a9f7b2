//! Continuations of acts: effects at an instant, on a processor.

use super::process::{Continuation, Part, Process, State, Target, WordOperation};
use super::{Event, Machine};
use crate::program::{Outcome, Program};
use crate::reading::{Reading, Routine, Step};
use crate::{ClockId, ProcessId};

impl<P: Program> Machine<P> {
    /// Performs it; returns whether the process continues at once.
    pub(super) fn continue_with(&mut self, p: u32, continuation: Continuation) -> bool {
        let costs = self.costs;
        match continuation {
            Continuation::BeginReading(clock, routine) => {
                let step = self.process(p).reader.begin(routine);
                self.read_on(p, clock, step, routine == Routine::Broadcast);
            }
            Continuation::GoOnReading(clock) => {
                let process = self.process(p);
                let (value, sampled) = (process.trip.value, process.trip.sampled);
                let step = process.reader.give(value, sampled);
                self.read_on(p, clock, step, false);
            }
            Continuation::EndReading(ticks, sampled) => {
                let returned = self.agenda.now();
                let process = self.process(p);
                process.outcome = Outcome::Read(Reading {
                    ticks,
                    called: process.called,
                    sampled,
                    returned,
                });
            }
            Continuation::TellWord => {
                let process = self.process(p);
                process.outcome = Outcome::Word {
                    value: process.trip.value,
                    sampled: process.trip.sampled,
                };
            }
            Continuation::AccessNext(_, 0) => {}
            Continuation::AccessNext(cluster, left) => {
                self.process(p).first(&[
                    Part::Local(costs.accessed_word),
                    Part::Refer(Target::Cluster(cluster), WordOperation::Nothing),
                    Part::Continue(Continuation::AccessNext(cluster, left - 1)),
                ]);
            }
            Continuation::SeeLock(lock, in_vain) => {
                if self.process(p).trip.value == 1 {
                    self.process(p).outcome = Outcome::Locked { in_vain };
                } else {
                    let word = Target::Cluster(self.locks[lock.0 as usize].cluster);
                    self.process(p).first(&[
                        Part::Local(costs.poll),
                        Part::Refer(word, WordOperation::TakeLock(lock)),
                        Part::Continue(Continuation::SeeLock(lock, in_vain + 1)),
                    ]);
                }
            }
            Continuation::SeeBlocked(who) => {
                if !self.process(who.0).is_blocked() {
                    self.look_again(p, continuation);
                }
            }
            Continuation::SeeFlag(flag) => {
                let raised = &mut self.flags[flag.0 as usize].raised;
                match raised.checked_sub(1) {
                    Some(left) => *raised = left,
                    None => self.look_again(p, continuation),
                }
            }
            Continuation::AddEvent(event) => self.add_event(p, event),
            Continuation::DelEvent(event) => self.delete_event(p, event),
            Continuation::Notify(event) => self.notify(p, event),
            Continuation::Wake(who) => self.wake(who),
            Continuation::Deliver(channel, words, tag) => {
                return self.deliver(p, channel, words, tag);
            }
            Continuation::Take(channel) => return self.take(p, channel),
            Continuation::SleepFor(_)
            | Continuation::SleepUntil(_)
            | Continuation::GiveWay
            | Continuation::RunOut
            | Continuation::Block
            | Continuation::Wait
            | Continuation::End => return self.pause(p, continuation),
        }
        true
    }

    /// Performs what ends a process's turn, or may end it; returns whether it continues at once.
    fn pause(&mut self, p: u32, continuation: Continuation) -> bool {
        let now = self.agenda.now();
        match continuation {
            Continuation::SleepFor(ns) => self.sleep_until(p, now.plus_ns(ns)),
            Continuation::SleepUntil(until) if until > now => self.sleep_until(p, until),
            Continuation::GiveWay => self.queue_up(p),
            Continuation::RunOut => {
                let quantum_ns = self.costs.quantum as u64;
                let left_ns = match self.cm_of(p).quantum_left_ns {
                    0 => quantum_ns,
                    left => left,
                };
                self.cm_of(p).quantum_left_ns = left_ns;
                let process = self.process(p);
                (process.left_ns, process.runs_out) = (left_ns, true);
                return true;
            }
            Continuation::Block => {
                if std::mem::take(&mut self.process(p).wakeup_saved) {
                    return true;
                }
                self.leave(p, State::Blocked);
            }
            Continuation::Wait => {
                let events = &self.process(p).events;
                if events.is_empty() || events.iter().any(|(_, notified)| *notified) {
                    self.forget_events(p);
                    return true;
                }
                self.leave(p, State::Waiting);
            }
            Continuation::End => {
                self.forget_events(p);
                self.awaited -= usize::from(self.process(p).foreground);
                self.leave(p, State::Ended);
            }
            _ => return true,
        }
        false
    }

    fn sleep_until(&mut self, p: u32, until: crate::Moment) {
        self.agenda.enter(until, Event::Timer(p));
        self.leave(p, State::Asleep);
    }

    fn look_again(&mut self, p: u32, continuation: Continuation) {
        let poll = self.costs.poll;
        (self.process(p)).first(&[Part::Local(poll), Part::Continue(continuation)]);
    }

    /// Fetches what the reader requests, or ends the reading.
    fn read_on(&mut self, p: u32, clock: ClockId, step: Step, is_broadcast: bool) {
        let after_reading = self.costs.after_reading;
        let (operation, target) = match step {
            Step::Fetch(word) => (WordOperation::ClockWord(clock, word), self.way_to(p, clock)),
            Step::FetchAll if is_broadcast => (WordOperation::WholeClock(clock), Target::Own),
            Step::FetchAll => (WordOperation::WholeClock(clock), self.way_to(p, clock)),
            Step::Done(ticks, sampled) => {
                let end = Part::Continue(Continuation::EndReading(ticks, sampled));
                return self.process(p).first(&[Part::Local(after_reading), end]);
            }
        };
        let go_on = Part::Continue(Continuation::GoOnReading(clock));
        self.process(p)
            .first(&[Part::Refer(target, operation), go_on]);
    }

    fn wake(&mut self, who: ProcessId) {
        match self.process(who.0).state {
            State::Blocked => self.make_ready(who.0),
            State::Ended => {}
            _ => self.process(who.0).wakeup_saved = true,
        }
    }

    fn add_event(&mut self, p: u32, event: u32) {
        let events = &mut self.process(p).events;
        if !events.iter().any(|(added, _)| *added == event) {
            events.push((event, false));
            self.listeners.entry(event).or_default().push(p);
        }
    }

    fn delete_event(&mut self, p: u32, event: u32) {
        self.process(p).events.retain(|(added, _)| *added != event);
        self.unlisten(p, event);
    }

    fn unlisten(&mut self, p: u32, event: u32) {
        if let Some(listeners) = self.listeners.get_mut(&event) {
            listeners.retain(|&listener| listener != p);
        }
    }

    /// Removes all events of a process.
    fn forget_events(&mut self, p: u32) {
        for (event, _) in std::mem::take(&mut self.process(p).events) {
            self.unlisten(p, event);
        }
    }

    /// Notifies all processes that have added an event, and wakes those that wait.
    fn notify(&mut self, p: u32, event: u32) {
        let listeners = self.listeners.get(&event).cloned().unwrap_or_default();
        let count = listeners.len() as u32;
        for listener in listeners {
            let process = self.process(listener);
            for (added, notified) in &mut process.events {
                *notified |= *added == event;
            }
            if process.state == State::Waiting {
                self.forget_events(listener);
                self.make_ready(listener);
            }
        }
        let each = self.costs.notify_each;
        let process = self.process(p);
        process.outcome = Outcome::Notified { count };
        if count > 0 {
            process.first(&[Part::Local(each * f64::from(count))]);
        }
    }
}

impl<P> Process<P> {
    /// Returns whether it is blocked, asleep or ended: it does not run until something else
    /// happens.
    const fn is_blocked(&self) -> bool {
        matches!(
            self.state,
            State::Blocked | State::Waiting | State::AtChannel | State::Asleep | State::Ended
        )
    }
}
