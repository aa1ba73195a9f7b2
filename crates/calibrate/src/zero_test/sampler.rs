//! The sampler of Method II: a process beside the experiment that periodically takes pairs of
//! readings.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use undertick_clock::Source;
use undertick_ring::mark::Mark;

/// A pair of readings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    /// First reading, ticks.
    pub(super) at: u64,
    /// Second reading less first, ticks.
    pub(super) ticks: u64,
}

/// Spins between two pairs; with other work about 2 us, so that a pair lies near every interval.
const SPINS: u32 = 60;
/// Maximum number of pairs kept: 64 MiB.
const MOST: usize = 1 << 22;

#[derive(Debug)]
pub(super) struct Sampler {
    shared: Arc<Switches>,
    thread: Option<JoinHandle<Vec<Pair>>>,
}

#[derive(Debug, Default)]
struct Switches {
    running: AtomicBool,
    stop: AtomicBool,
}

impl Sampler {
    pub(super) fn start(clock: Source) -> Self {
        let shared = Arc::new(Switches::default());
        let switches = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("sampler".into())
            .spawn(move || sample(clock, &switches))
            .ok();
        Self { shared, thread }
    }

    /// Switches the sampling on or off.
    pub(super) fn run(&self, on: bool) {
        self.shared.running.store(on, Ordering::Relaxed);
        if let (Some(thread), true) = (&self.thread, on) {
            thread.thread().unpark();
            // The sampler must be running before the block starts.
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub(super) fn finish(mut self) -> Vec<Pair> {
        self.end().unwrap_or_default()
    }

    fn end(&mut self) -> Option<Vec<Pair>> {
        self.shared.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take()?;
        thread.thread().unpark();
        thread.join().ok()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.end();
    }
}

fn sample(clock: Source, switches: &Switches) -> Vec<Pair> {
    let mut pairs = Vec::new();
    let mark = Mark::of_this_thread();
    while !switches.stop.load(Ordering::Relaxed) {
        if !switches.running.load(Ordering::Relaxed) || pairs.len() == MOST {
            std::thread::park_timeout(Duration::from_millis(20));
            continue;
        }
        if let Some(mark) = &mark {
            mark.set();
        }
        let at = clock.read_ticks_ordered();
        let ticks = clock.read_ticks_ordered().wrapping_sub(at);
        // A pair during which the sampler was off its CPU says nothing about the clock.
        if !mark.as_ref().is_some_and(Mark::is_gone) {
            pairs.push(Pair { at, ticks });
        }
        for _ in 0..SPINS {
            std::hint::spin_loop();
        }
    }
    pairs
}
