//! Executes the steps of a loop.

use std::fmt;
use std::hint::black_box;
use std::io::{Read, Write};
use std::time::Duration;

use undertick_clock::slow::Fine;
use undertick_experiment::counted_work::{calibrated_turn_ns, turns};

/// A step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Counted dependent instructions that take about this long, ns.
    Work {
        /// Nominal time, ns.
        ns: f64,
    },
    /// Sleeps at least this long, ns.
    Sleep {
        /// Nominal time, ns.
        ns: f64,
    },
    /// Spins until this long has passed since the last execution of the step, so that the loop
    /// keeps its pace regardless of its other steps.
    Pace {
        /// The period, ns.
        ns: f64,
    },
    /// `sched_yield(2)`.
    Yield,
    /// `getppid(2)`: a system call that does almost nothing.
    Getppid,
    /// Sends a byte to another thread over a pipe, and receives it back.
    Message,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Work { ns } => write!(f, "work {} us", ns / 1e3),
            Self::Sleep { ns } => write!(f, "sleep {} us", ns / 1e3),
            Self::Pace { ns } => write!(f, "pace {} us", ns / 1e3),
            Self::Yield => f.write_str("yield"),
            Self::Getppid => f.write_str("getppid"),
            Self::Message => f.write_str("message"),
        }
    }
}

impl Step {
    /// Names that `call` accepts.
    pub const CALLS: [&'static str; 3] = ["getppid", "yield", "message"];

    pub(super) fn call(name: &str) -> Option<Self> {
        match name {
            "getppid" => Some(Self::Getppid),
            "yield" => Some(Self::Yield),
            "message" => Some(Self::Message),
            _ => None,
        }
    }

    /// Whether the step gives the CPU away.
    pub(super) fn blocks(&self) -> bool {
        matches!(self, Self::Sleep { .. } | Self::Yield | Self::Message)
    }
}

/// Executes steps and delays.
pub struct Worker {
    turn_ns: f64,
    partner: Option<Partner>,
    pacer: Option<Pacer>,
}

/// Paces a loop by the fine clock.
struct Pacer {
    clock: Fine,
    /// Time when the step was last due, fine ticks; `None` after a pause.
    due: Option<f64>,
}

impl Pacer {
    fn now(&self) -> f64 {
        self.clock.read_ticks() as f64
    }

    fn ticks(&self, ns: f64) -> f64 {
        ns / self.clock.rate().ns_per_tick()
    }

    /// Waits for the next due time, which is a whole number of periods later.
    fn wait(&mut self, ns: f64) {
        let period = self.ticks(ns);
        let now = self.now();
        let last = self.due.unwrap_or(now);
        let due = last + period * ((now - last) / period).ceil().max(1.0);
        while self.now() < due {}
        self.due = Some(due);
    }
}

struct Partner {
    to: std::io::PipeWriter,
    from: std::io::PipeReader,
}

impl Worker {
    /// Calibrates the work; starts the partner if messages are exchanged.
    ///
    /// # Errors
    /// The partner cannot be started, or there is no clock for a step that needs one.
    pub fn new(steps: &[Step]) -> std::io::Result<Self> {
        let partner = if steps.contains(&Step::Message) {
            Some(Partner::start()?)
        } else {
            None
        };
        let pacer = if steps.iter().any(|s| matches!(s, Step::Pace { .. })) {
            let clock = Fine::best().ok_or_else(|| {
                std::io::Error::other("no fine clock to keep a pace by; see undertick clock")
            })?;
            Some(Pacer { clock, due: None })
        } else {
            None
        };
        Ok(Self {
            turn_ns: calibrated_turn_ns(),
            partner,
            pacer,
        })
    }

    /// Executes a step.
    pub fn act(&mut self, step: &Step) {
        match *step {
            Step::Work { ns } => self.work(ns),
            Step::Sleep { ns } => std::thread::sleep(Duration::from_nanos(ns as u64)),
            Step::Pace { ns } => {
                if let Some(pacer) = &mut self.pacer {
                    pacer.wait(ns);
                }
            }
            Step::Yield => std::thread::yield_now(),
            Step::Getppid => {
                black_box(std::os::unix::process::parent_id());
            }
            Step::Message => {
                if let Some(partner) = &mut self.partner {
                    partner.round_trip();
                }
            }
        }
    }

    /// Called at the begin of a cycle: after a pause, the pace counts from here.
    pub fn begin(&mut self) {
        if let Some(pacer) = &mut self.pacer {
            let now = pacer.now();
            pacer.due.get_or_insert(now);
        }
    }

    /// Called when the loop waits for something else: the pace begins anew.
    pub(super) fn pause(&mut self) {
        if let Some(pacer) = &mut self.pacer {
            pacer.due = None;
        }
    }

    /// Delays the loop, and its pace, by about this long.
    pub(super) fn delay(&mut self, ns: f64) {
        if let Some(pacer) = &mut self.pacer {
            let ticks = pacer.ticks(ns);
            pacer.due = pacer.due.map(|due| due + ticks);
        }
        self.work(ns);
    }

    /// Executes turns of dependent instructions that take about this long.
    pub fn work(&self, ns: f64) {
        turns((ns / self.turn_ns).round() as u64);
    }
}

impl Partner {
    fn start() -> std::io::Result<Self> {
        let (mut there, to) = std::io::pipe()?;
        let (from, mut back) = std::io::pipe()?;
        // The thread ends when the other end of its pipe is closed.
        std::thread::spawn(move || {
            let mut byte = [0];
            while there.read_exact(&mut byte).is_ok() && back.write_all(&byte).is_ok() {}
        });
        Ok(Self { to, from })
    }

    fn round_trip(&mut self) {
        let mut byte = [1];
        // The partner lives as long as this end does.
        let _ = self
            .to
            .write_all(&byte)
            .and_then(|()| self.from.read_exact(&mut byte));
    }
}
