//! Assignment of Cms to processes, and the duration of their turns.

use super::process::{Part, State};
use super::{Event, Machine};
use crate::engine::Moment;
use crate::program::{Outcome, Program, StepInput};

impl<P: Program> Machine<P> {
    /// Makes a process ready for its Cm; it gets the Cm at once if that is free.
    pub(super) fn make_ready(&mut self, p: u32) {
        self.process(p).state = State::Ready;
        let now = self.agenda.now();
        let cm = self.cm_of(p);
        cm.ready.push_back(p);
        if cm.running.is_none() {
            let start = cm.after_idle(now);
            let index = self.process(p).cm;
            self.dispatch(index, start);
        }
    }

    /// Gives a Cm to the next process in turn, if there is one.
    pub(super) fn dispatch(&mut self, cm: usize, start: Moment) {
        let (dispatch, quantum) = (self.costs.dispatch, self.costs.quantum);
        let cm = &mut self.cms[cm];
        cm.running = cm.ready.pop_front();
        let Some(p) = cm.running else { return };
        let dispatch_ns = match dispatch {
            0.0 => 0,
            ns => cm.work_ns(ns),
        };
        cm.quantum_left_ns = quantum as u64 + dispatch_ns;
        self.counts.dispatches += 1;
        let process = self.process(p);
        process.state = State::Running;
        process.left_ns += dispatch_ns;
        self.work(p, start);
    }

    /// Makes the running process give up its Cm; it is in another state from now on.
    pub(super) fn leave(&mut self, p: u32, state: State) {
        let now = self.agenda.now();
        let index = self.process(p).cm;
        self.process(p).state = state;
        self.cms[index].running = None;
        self.dispatch(index, now);
    }

    /// As [`Machine::leave`], but the process waits for its next turn.
    pub(super) fn queue_up(&mut self, p: u32) {
        self.cm_of(p).ready.push_back(p);
        self.leave(p, State::Ready);
    }

    /// Continues local work of a process, until it is done or the quantum is over.
    fn work(&mut self, p: u32, start: Moment) {
        let left_ns = self.process(p).left_ns;
        let cm = self.cm_of(p);
        let slice_ns = left_ns.min(cm.quantum_left_ns);
        let end = cm.end_of_work(start, slice_ns);
        self.process(p).slice_ns = slice_ns;
        self.agenda.enter(end, Event::Step(p));
    }

    /// Handles the end of a stretch of a process's work.
    pub(super) fn worked(&mut self, p: u32) {
        let process = self.process(p);
        let slice_ns = std::mem::take(&mut process.slice_ns);
        process.left_ns -= slice_ns;
        let cm = self.cm_of(p);
        cm.quantum_left_ns = cm.quantum_left_ns.saturating_sub(slice_ns);
        self.go_on(p);
    }

    /// Continues a process that has its Cm.
    pub(super) fn go_on(&mut self, p: u32) {
        loop {
            let quantum_ns = self.costs.quantum as u64;
            let runs_out = self.process(p).runs_out;
            let cm = self.cm_of(p);
            if cm.quantum_left_ns == 0 {
                if runs_out || !cm.ready.is_empty() {
                    self.process(p).runs_out = false;
                    return self.queue_up(p);
                }
                cm.quantum_left_ns = quantum_ns;
            }
            if self.process(p).left_ns > 0 {
                let now = self.agenda.now();
                return self.work(p, now);
            }
            match self.process(p).parts.pop_front() {
                None => self.ask(p),
                Some(Part::Local(nominal_ns)) => {
                    let ns = self.cm_of(p).work_ns(nominal_ns);
                    self.process(p).left_ns = ns;
                }
                Some(Part::Refer(target, operation)) => return self.issue(p, target, operation),
                Some(Part::Operate(kmap, pieces)) => return self.operate(p, kmap, pieces),
                Some(Part::Continue(continuation)) => {
                    if !self.continue_with(p, continuation) {
                        return;
                    }
                }
            }
        }
    }

    /// Asks a process for its next act.
    fn ask(&mut self, p: u32) {
        let now = self.agenda.now();
        self.counts.acts += 1;
        let process = self.process(p);
        let input = StepInput {
            now,
            outcome: process.outcome,
        };
        process.outcome = Outcome::Done;
        let act = process.program.next(input);
        self.perform(p, act);
    }
}
