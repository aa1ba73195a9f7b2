//! What the steps of a loop do.

use std::fmt;
use std::hint::black_box;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

/// A step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Counted dependent instructions that take about so long, ns.
    Work {
        /// Nominal time, ns.
        ns: f64,
    },
    /// Sleeps at least so long, ns.
    Sleep {
        /// Nominal time, ns.
        ns: f64,
    },
    /// `sched_yield(2)`.
    Yield,
    /// `getppid(2)`: a system call that does next to nothing.
    Getppid,
    /// A byte to another thread over a pipe, and back.
    Message,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Work { ns } => write!(f, "work {} us", ns / 1e3),
            Self::Sleep { ns } => write!(f, "sleep {} us", ns / 1e3),
            Self::Yield => f.write_str("yield"),
            Self::Getppid => f.write_str("getppid"),
            Self::Message => f.write_str("message"),
        }
    }
}

impl Step {
    /// Names for `call`.
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

/// Does steps, and delays.
pub(crate) struct Worker {
    turn_ns: f64,
    partner: Option<Partner>,
}

struct Partner {
    to: std::io::PipeWriter,
    from: std::io::PipeReader,
}

impl Worker {
    /// Calibrates the work; starts the partner if messages are exchanged.
    pub(crate) fn new(steps: &[Step]) -> std::io::Result<Self> {
        let partner = if steps.contains(&Step::Message) {
            Some(Partner::start()?)
        } else {
            None
        };
        Ok(Self {
            turn_ns: calibrated_turn_ns(),
            partner,
        })
    }

    /// Does a step.
    pub(super) fn act(&mut self, step: &Step) {
        match *step {
            Step::Work { ns } => self.work(ns),
            Step::Sleep { ns } => std::thread::sleep(Duration::from_nanos(ns as u64)),
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

    /// Turns of dependent instructions that take about so long.
    pub(crate) fn work(&self, ns: f64) {
        turns((ns / self.turn_ns).round() as u64);
    }
}

impl Partner {
    fn start() -> std::io::Result<Self> {
        let (mut there, to) = std::io::pipe()?;
        let (from, mut back) = std::io::pipe()?;
        // Ends when the other end of its pipe is closed.
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

/// A chain of that many dependent multiply-adds.
#[inline(never)]
fn turns(count: u64) {
    let mut x = black_box(0x9e37_79b9_7f4a_7c15_u64);
    for _ in 0..count {
        x = black_box(x.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1));
    }
    black_box(x);
}

/// The quickest of many stretches of 100 us: the least disturbed.
fn calibrated_turn_ns() -> f64 {
    const TURNS: u64 = 50_000;
    (0..100)
        .map(|_| {
            let begin = Instant::now();
            turns(TURNS);
            begin.elapsed().as_nanos() as f64 / TURNS as f64
        })
        .fold(f64::INFINITY, f64::min)
        .max(1e-3)
}
