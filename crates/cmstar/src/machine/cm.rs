//! A computer module: a processor with interrupts and the processes on it.

use std::collections::VecDeque;

use crate::engine::{Entity, Law, Moment, Stream};
use crate::parameters::{Cms, Interrupts};

/// Length, ns, of the independent pieces into which work is divided for its scatter.
const GRAIN_NS: f64 = 100_000.0;

/// A processor.
#[derive(Clone, Debug)]
pub(super) struct Cm {
    /// Its cluster, from 0.
    pub cluster: usize,
    /// The process that is running on it.
    pub running: Option<u32>,
    /// The processes that are ready for it, in turn.
    pub ready: VecDeque<u32>,
    /// Remaining quantum of the running process, ns.
    pub quantum_left_ns: u64,
    /// Number of interrupts that it handled.
    pub interrupts: u64,
    speed: f64,
    scatter: f64,
    law: Law,
    line: Option<Line>,
    stream: Stream,
}

/// The line clock, as a Cm sees it.
#[derive(Clone, Copy, Debug)]
struct Line {
    next_ns: u64,
    period_ns: u64,
    handler_ns: f64,
    handler_scatter_ns: f64,
}

impl Cm {
    /// Creates Cm number `index`. The line clock first ticks at `first_tick` of its period, 0 to 1.
    pub fn new(
        cluster: usize,
        index: usize,
        cms: &Cms,
        interrupts: Option<&Interrupts>,
        first_tick: f64,
        seed: u64,
    ) -> Self {
        let mut stream = Stream::new(seed, Entity::Cm, index as u64);
        // The slowest over the fastest is at most 1 + speed_range.
        let half = cms.speed_range / (2.0 + cms.speed_range);
        let speed = 1.0 + half * (2.0 * stream.uniform() - 1.0);
        let late = stream.uniform();
        let line = interrupts.map(|i| Line {
            next_ns: (1e3 * (i.period_us * first_tick + i.skew * late)).round() as u64,
            period_ns: (1e3 * i.period_us).round() as u64,
            handler_ns: 1e3 * i.handler,
            handler_scatter_ns: 1e3 * i.handler_scatter,
        });
        Self {
            cluster,
            running: None,
            ready: VecDeque::new(),
            quantum_left_ns: 0,
            interrupts: 0,
            speed,
            scatter: cms.work_scatter,
            law: cms.work_law,
            line,
            stream,
        }
    }

    /// Returns how long work takes here that takes `nominal_ns` on a Cm of medium speed, ns; at
    /// least 1.
    pub fn work_ns(&mut self, nominal_ns: f64) -> u64 {
        let mut ns = nominal_ns * self.speed;
        if self.scatter > 0.0 {
            let sd_ns = self.scatter * (ns * ns.min(GRAIN_NS)).sqrt();
            ns += sd_ns * self.stream.normal();
        }
        if self.law == Law::Exponential {
            ns *= self.stream.exponential();
        }
        ns.round().max(1.0) as u64
    }

    /// Returns when work of length `work_ns` ends that begins at `start`, with the interrupts in
    /// between. No interrupt is pending at `start`.
    pub fn end_of_work(&mut self, start: Moment, work_ns: u64) -> Moment {
        let mut end_ns = start.ns() + work_ns;
        while let Some(line) = self.line
            && line.next_ns < end_ns
        {
            end_ns += self.take_interrupt(line);
        }
        Moment::from_ns(end_ns)
    }

    /// Returns when a processor that was stalled until `now` continues: an interrupt during the
    /// stall waited for the end of the instruction.
    pub fn after_stall(&mut self, now: Moment) -> Moment {
        match self.line {
            Some(line) if line.next_ns <= now.ns() => now.plus_ns(self.take_interrupt(line)),
            _ => now,
        }
    }

    /// Returns when a processor that was idle until `now` can begin: an interrupt may not be over
    /// yet.
    pub fn after_idle(&mut self, now: Moment) -> Moment {
        let mut free_ns = now.ns();
        while let Some(line) = self.line
            && line.next_ns <= now.ns()
        {
            // Interrupts long past cost nothing, and their duration does not matter.
            if line.next_ns + line.period_ns <= now.ns() {
                self.line.as_mut().expect("it is there").next_ns += line.period_ns;
            } else {
                free_ns = free_ns.max(line.next_ns + self.take_interrupt(line));
            }
        }
        Moment::from_ns(free_ns)
    }

    /// Handles the next interrupt; returns how long that takes, ns.
    fn take_interrupt(&mut self, line: Line) -> u64 {
        self.interrupts += 1;
        self.line = Some(Line {
            next_ns: line.next_ns + line.period_ns,
            ..line
        });
        let ns = line.handler_ns + line.handler_scatter_ns * self.stream.normal();
        ns.round().max(1.0) as u64
    }
}
