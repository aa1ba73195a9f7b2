//! The thread that switches points off and on.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use undertick_clock::Source;
use undertick_format::TraceError;
use undertick_format::schema::Switched;
use undertick_memory::control_page::ControlPage;
use undertick_ring::layout::control;

use super::Plan;

/// After this time pairs become rarer, so that a long recording is not cut into ever more of
/// them.
const EAGER: Duration = Duration::from_secs(60);
/// Pause between two checks for a plan.
const WAIT: Duration = Duration::from_millis(5);
/// Halves of a pair are shorter or longer than planned by up to this share, so that no period of
/// the program stays in step with them.
const SPREAD: f64 = 0.25;

/// A switch, between two readings of the trace clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Epoch {
    pub(crate) before_ticks: u64,
    pub(crate) after_ticks: u64,
    pub(crate) state: Switched,
}

/// Switches points as long as it lives.
#[derive(Debug)]
pub(crate) struct Switcher {
    stop: Sender<()>,
    thread: JoinHandle<u64>,
}

impl Switcher {
    /// Starts switching as soon as there is a plan: the points of the control page, or the
    /// kernel's trace by the file that takes 0 and 1. Each switch is sent to `epochs`.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn start(
        pages: Vec<ControlPage>,
        kernel: Option<File>,
        clock: Source,
        plan: Arc<Plan>,
        epochs: Sender<Epoch>,
    ) -> Result<Self, TraceError> {
        let (stop, stopped) = channel();
        let switching = Switching {
            pages,
            kernel,
            clock,
            plan,
            epochs,
            stopped,
            random: ChaCha8Rng::seed_from_u64(clock.read_ticks()),
        };
        let thread = Builder::new()
            .name("perturbation".to_owned())
            .spawn(move || switching.run())
            .map_err(|e| TraceError::Recording(format!("no thread for --perturbation: {e}")))?;
        Ok(Self { stop, thread })
    }

    /// Leaves all points on; returns how many pairs of halves there were.
    pub(crate) fn finish(self) -> u64 {
        drop(self.stop);
        match self.thread.join() {
            Ok(pairs) => pairs,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

struct Switching {
    pages: Vec<ControlPage>,
    kernel: Option<File>,
    clock: Source,
    plan: Arc<Plan>,
    epochs: Sender<Epoch>,
    stopped: Receiver<()>,
    random: ChaCha8Rng,
}

impl Switching {
    fn run(mut self) -> u64 {
        // Halves end when they are to, not 50 us later.
        // SAFETY: a number about the calling thread.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000, 0, 0, 0) };
        let mut begun: Option<Instant> = None;
        let mut pairs = 0;
        loop {
            let half_ns = self.plan.half_ns.load(Ordering::Relaxed);
            if half_ns == 0 {
                if self.is_over(WAIT) {
                    break;
                }
                continue;
            }
            let half = Duration::from_nanos(half_ns);
            let Some(()) = self.pair(half) else { break };
            pairs += 1;
            let so_far = begun.get_or_insert_with(Instant::now).elapsed();
            if so_far > EAGER {
                self.switch(Switched::Between);
                let rarer = so_far.as_secs_f64() / EAGER.as_secs_f64();
                let pause = 2.0 * rarer * self.random.random_range(0.5..1.5);
                if self.is_over(half.mul_f64(pause)) {
                    break;
                }
            }
        }
        self.switch(Switched::Between);
        // SAFETY: the thread that switches them ends here, and nothing else has them.
        self.pages.iter().for_each(|page| unsafe { page.unmap() });
        pairs
    }

    /// Makes two halves of one length; `None`: it was ended in between.
    fn pair(&mut self, half: Duration) -> Option<()> {
        let half = half.mul_f64(self.random.random_range(1.0 - SPREAD..1.0 + SPREAD));
        let mut order = [Switched::AllOn, Switched::SomeOff];
        if self.random.random() {
            order.reverse();
        }
        for state in order {
            let until = Instant::now() + half;
            self.switch(state);
            if self.is_over(until.saturating_duration_since(Instant::now())) {
                return None;
            }
        }
        Some(())
    }

    fn is_over(&self, after: Duration) -> bool {
        self.stopped.recv_timeout(after) != Err(std::sync::mpsc::RecvTimeoutError::Timeout)
    }

    fn switch(&self, state: Switched) {
        let (code, digit) = match state {
            Switched::SomeOff => (control::SOME, b"0"),
            Switched::AllOn | Switched::Between => (control::ALL, b"1"),
        };
        let before_ticks = self.clock.read_ticks_ordered();
        if let Some(mut kernel) = self.kernel.as_ref() {
            // Refused only if the instance is gone: the missing rows show that.
            let _ = kernel.write_all(digit);
        } else {
            // All CPUs see it before the second reading.
            for page in &self.pages {
                page.field_u32(control::OFF_ON)
                    .swap(code | page.serial, Ordering::SeqCst);
            }
        }
        let after_ticks = self.clock.read_ticks_ordered();
        // Nothing receives any more when the recording ends.
        let _ = self.epochs.send(Epoch {
            before_ticks,
            after_ticks,
            state,
        });
    }
}
