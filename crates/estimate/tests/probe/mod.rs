//! A probe on a machine whose disturbances are known: bursts of loops on a jittered grid, states
//! that come and go, a core that changes its speed, a clock with a step. It goes through time loop
//! by loop and shares no code with the estimator.

use undertick_estimate::peaks::RateSample;

use crate::known::Source;

/// How long states last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stay {
    /// Every loop has a new state: the disturber is much faster than a loop.
    Loop,
    /// A state lasts for an exponential time with this mean, in places of the grid.
    Grid(f64),
}

/// Scatter of the loops of one state, in standard deviations of logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Scatter of each loop.
    pub own: f64,
    /// Correlation of a loop's scatter with that of the loop before, in a burst.
    pub along: f64,
    /// Scatter common to a burst.
    pub burst: f64,
    /// Correlation of a burst's scatter with that of the burst before.
    pub lasting: f64,
    /// Whether the burst's scatter has long tails: Student's t of 3 degrees of freedom.
    pub now_and_then: bool,
    /// Share of the loops with a slow tail.
    pub tail_share: f64,
    /// Mean of the exponential tail.
    pub tail: f64,
    /// Share of the loops that are up to 100 times as long, evenly over octaves.
    pub outliers: f64,
    /// Relative noise of the reference.
    pub reference: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Wanted share of the time of each state, and its slow-down: the first is the baseline, 1.
    pub states: Vec<(f64, f64)>,
    pub stay: Stay,
    pub noise: Noise,
    pub bursts: usize,
    pub loops: usize,
    /// Duration of a clean loop, s.
    pub loop_s: f64,
    /// Time from one burst to the next, s.
    pub grid_s: f64,
    /// Share of the grid by which the start of a burst is moved at most.
    pub jitter: f64,
    /// Approximate interquartile range of the core's speed.
    pub drift: f64,
    /// Step of the clock, s; 0: none.
    pub clock_s: f64,
    /// Whether the reference is recorded; otherwise it is 1.
    pub with_reference: bool,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            states: vec![(1.0, 1.0)],
            stay: Stay::Loop,
            noise: Noise {
                own: 0.01,
                along: 0.0,
                burst: 0.0,
                lasting: 0.0,
                now_and_then: false,
                tail_share: 0.2,
                tail: 0.01,
                outliers: 0.0,
                reference: 0.003,
            },
            bursts: 300,
            loops: 50,
            loop_s: 50e-6,
            grid_s: 10e-3,
            jitter: 0.5,
            drift: 0.04,
            clock_s: 10e-9,
            with_reference: true,
        }
    }
}

/// The samples of a run, and the truth about it.
pub struct Ran {
    pub samples: Vec<RateSample>,
    /// Share of the run's time in each state.
    pub time: Vec<f64>,
    /// Share of the loops in each state, for a probe that begins such bursts everywhere in this
    /// run.
    pub loops: Vec<f64>,
}

/// The states of the machine, each with its begin.
struct History {
    from: Vec<(f64, usize)>,
    end: f64,
}

impl History {
    /// Draws a semi-Markov process: a state lasts exponentially, and the shares give the next one.
    fn draw(machine: &Machine, source: &mut Source) -> Self {
        let end = machine.bursts as f64 * machine.grid_s;
        let Stay::Grid(mean) = machine.stay else {
            return Self {
                from: vec![(0.0, 0)],
                end,
            };
        };
        let mut from = Vec::new();
        let mut now = 0.0;
        while now < end {
            from.push((now, machine.draw(source)));
            now += mean * machine.grid_s * source.exponential();
        }
        Self { from, end }
    }

    fn shares(&self, states: usize) -> Vec<f64> {
        let mut shares = vec![0.0; states];
        for (i, &(from, state)) in self.from.iter().enumerate() {
            let to = self.from.get(i + 1).map_or(self.end, |next| next.0);
            shares[state] += (to.min(self.end) - from) / self.end;
        }
        shares
    }
}

impl Machine {
    fn draw(&self, source: &mut Source) -> usize {
        let mut u = source.uniform();
        for (state, (share, _)) in self.states.iter().enumerate() {
            if u <= *share || state + 1 == self.states.len() {
                return state;
            }
            u -= share;
        }
        0
    }

    /// Runs loops from `start` on: calls `each` with the state in the middle of the loop's work,
    /// and its time. `noise` gives the time of a clean loop.
    fn burst(
        &self,
        history: &History,
        start: f64,
        source: &mut Source,
        mut noise: impl FnMut(&mut Source, f64) -> f64,
        mut each: impl FnMut(usize, f64, f64),
    ) {
        let mut now = start;
        let mut piece = history.from.partition_point(|f| f.0 <= now).max(1) - 1;
        for _ in 0..self.loops {
            let began = now;
            let mut work = noise(source, began);
            let (half, mut middle) = (work / 2.0, usize::MAX);
            let fixed = (self.stay == Stay::Loop).then(|| self.draw(source));
            while work > 0.0 {
                let state = fixed.unwrap_or(history.from[piece].1);
                let slow = self.states[state].1;
                let until = match fixed {
                    Some(_) => f64::INFINITY,
                    None => history.from.get(piece + 1).map_or(f64::INFINITY, |n| n.0),
                };
                let done = work.min((until - now) / slow);
                work -= done;
                if middle == usize::MAX && work <= half {
                    middle = state;
                }
                match work > 0.0 {
                    true => {
                        now = until;
                        piece += 1;
                    }
                    false => now += done * slow,
                }
            }
            each(middle, began, now - began);
        }
    }

    /// Makes one run. The true shares come from the same history without noise, from 20 places of
    /// each grid place.
    pub fn run(&self, source: &mut Source) -> Ran {
        let history = History::draw(self, source);
        let states = self.states.len();
        let mut ran = Ran {
            samples: Vec::with_capacity(self.bursts * self.loops),
            time: vec![0.0; states],
            loops: vec![0.0; states],
        };
        let phase = std::f64::consts::TAU * source.uniform();
        let turns = 1.0 + 2.0 * source.uniform();
        let mut walk = 0.0;
        let mut offset = source.normal();
        let kept = |r: f64| (1.0 - r * r).sqrt();
        for burst in 0..self.bursts {
            let start = (burst as f64 + self.jitter * source.uniform()) * self.grid_s;
            // A sine has an interquartile range of 1.41 amplitudes.
            walk = 0.9 * walk + 0.1 * self.drift * source.normal();
            let sine = (phase + std::f64::consts::TAU * turns * start / history.end).sin();
            let speed = (self.drift / 1.41 * sine + walk).exp();
            offset = self.noise.lasting * offset + kept(self.noise.lasting) * source.normal();
            let mut together = self.noise.burst * offset;
            if self.noise.now_and_then {
                let chi: f64 = (0..3).map(|_| source.normal().powi(2)).sum();
                together /= (chi / 3.0).sqrt();
            }
            let mut own = source.normal();
            let mut loops = Vec::with_capacity(self.loops);
            let noise = |source: &mut Source, _: f64| {
                own = self.noise.along * own + kept(self.noise.along) * source.normal();
                let mut x = self.noise.own * own + together;
                if self.noise.outliers > 0.0 && source.uniform() < self.noise.outliers {
                    x += 100.0_f64.ln() * source.uniform();
                }
                if source.uniform() < self.noise.tail_share {
                    x += self.noise.tail * source.exponential();
                }
                self.loop_s * x.exp() / speed
            };
            self.burst(&history, start, source, noise, |_, _, time| {
                loops.push(time);
            });
            for time in loops {
                let time = self.on_clock(time, source);
                let noise = 1.0 + self.noise.reference * source.normal();
                ran.samples.push(RateSample {
                    burst: burst as u32,
                    rate: 419.0 / time,
                    reference: match self.with_reference {
                        true => 3.1e9 * speed * noise,
                        false => 1.0,
                    },
                    seconds: time,
                });
            }
        }
        self.truth(&history, source, &mut ran);
        ran
    }

    fn on_clock(&self, time: f64, source: &mut Source) -> f64 {
        match self.clock_s > 0.0 {
            true => {
                let steps = (time / self.clock_s + source.uniform()).floor();
                steps.max(1.0) * self.clock_s
            }
            false => time,
        }
    }

    fn truth(&self, history: &History, source: &mut Source, ran: &mut Ran) {
        if self.stay == Stay::Loop {
            ran.loops = self.states.iter().map(|s| s.0).collect();
            let time: f64 = self.states.iter().map(|s| s.0 * s.1).sum();
            ran.time = self.states.iter().map(|s| s.0 * s.1 / time).collect();
            return;
        }
        ran.time = history.shares(self.states.len());
        let places = 20 * self.bursts;
        for place in 0..places {
            let start = (place as f64 + 0.5) / places as f64 * history.end;
            let clean = |_: &mut Source, _: f64| self.loop_s;
            self.burst(history, start, source, clean, |state, _, _| {
                ran.loops[state] += 1.0 / (places * self.loops) as f64;
            });
        }
    }
}
