//! One clock read on several CPUs.
//!
//! **Question.** How far apart do two CPUs show the same clock, and does it ever go back for a
//! thread that reads it on one CPU after the other?
//!
//! **Method.** *Offset*: CPU A reads, passes a number over a shared cache line, CPU B sees it,
//! reads, passes it back, A reads again: B's reading was taken between A's two. Each exchange
//! bounds the offset from both sides. All bounds together (the largest lower, the smallest upper
//! one) still contain the truth, as nothing but the order of events is assumed. The bounds are
//! widened by a step of the clock, which may show a time a step old. *Going back*: all CPUs read at
//! once, after loading the largest reading published by any of them; a smaller reading went back.
//!
//! **Caveats.** The offset is assumed constant for the milliseconds that this takes; bounds that
//! contradict each other show that it was not ([`Offset::is_consistent`]).

use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use crate::{Source, cpus};

/// The offset of a clock between two CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// The CPU whose clock is compared.
    pub cpu: usize,
    /// The CPU that it is compared with.
    pub reference_cpu: usize,
    /// The clock on `cpu` is ahead by at least this, ticks.
    pub lo_ticks: i64,
    /// The clock on `cpu` is ahead by at most this, ticks.
    pub hi_ticks: i64,
    /// Number of exchanges behind the bounds.
    pub exchanges: u64,
}

impl Offset {
    /// Whether one offset fits all exchanges.
    #[must_use]
    pub const fn is_consistent(&self) -> bool {
        self.lo_ticks <= self.hi_ticks
    }

    /// Whether equal clocks fit all exchanges.
    #[must_use]
    pub const fn holds_zero(&self) -> bool {
        self.lo_ticks <= 0 && 0 <= self.hi_ticks
    }
}

/// Results of the comparison of a clock on several CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Across {
    /// Number of CPUs that this process may use.
    pub cpus_allowed: usize,
    /// CPUs compared; one alone is compared with nothing.
    pub cpus: Vec<usize>,
    /// Each CPU's offset to the first one; CPUs that did not answer in time are missing.
    pub offsets: Vec<Offset>,
    /// Number of readings that were compared with the largest published one.
    pub readings: u64,
    /// Number of these readings that were below it.
    pub backward: u64,
    /// The largest distance of a reading below it, ticks.
    pub worst_backward_ticks: u64,
}

/// Limits of the time and the number of CPUs.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Time for each pair of CPUs, from its first answer on.
    pub pair: Duration,
    /// Time to wait for the first answer of a pair: another program may occupy its CPU.
    pub patience: Duration,
    /// Time for all pairs.
    pub all_pairs: Duration,
    /// Time for all CPUs at once.
    pub together: Duration,
    /// Maximum number of CPUs, spread over all available ones.
    pub most_cpus: usize,
}

impl Effort {
    /// The effort at the start of a recording: 20 ms at most on idle CPUs. Longer patience does not
    /// help on busy ones: a spinning thread uses up its time slice.
    pub const SHORT: Self = Self {
        pair: Duration::from_millis(2),
        patience: Duration::from_millis(2),
        all_pairs: Duration::from_millis(16),
        together: Duration::from_millis(4),
        most_cpus: 8,
    };
    /// The effort of an audit.
    pub const FULL: Self = Self {
        pair: Duration::from_millis(15),
        patience: Duration::from_millis(50),
        all_pairs: Duration::from_millis(300),
        together: Duration::from_millis(40),
        most_cpus: 16,
    };
}

/// Compares a clock on the CPUs that this process may use; `step_ticks` is its
/// granularity.
#[must_use]
pub fn measure(source: Source, step_ticks: f64, effort: Effort) -> Across {
    let allowed = cpus::allowed();
    let cpus = spread(&allowed, effort.most_cpus);
    let mut across = Across {
        cpus_allowed: allowed.len(),
        offsets: Vec::new(),
        readings: 0,
        backward: 0,
        worst_backward_ticks: 0,
        cpus,
    };
    if let [reference, others @ ..] = &across.cpus[..] {
        let last = Instant::now() + effort.all_pairs;
        for cpu in others {
            let exchanges = exchange(source, [*reference, *cpu], effort, last);
            across
                .offsets
                .extend(bounds(&exchanges, step_ticks).map(|(lo, hi)| Offset {
                    cpu: *cpu,
                    reference_cpu: *reference,
                    lo_ticks: lo,
                    hi_ticks: hi,
                    exchanges: exchanges.len() as u64,
                }));
        }
        if !others.is_empty() {
            together(source, &mut across, effort.together);
        }
    }
    across
}

/// Returns at most `most` of the CPUs, evenly spread, including the first one.
fn spread(cpus: &[usize], most: usize) -> Vec<usize> {
    let taken = cpus.len().min(most);
    (0..taken).map(|i| cpus[i * cpus.len() / taken]).collect()
}

/// One exchange: A before, B, A after, in the order in which they happened.
#[derive(Clone, Copy, Debug)]
struct Exchange {
    before: u64,
    there: u64,
    after: u64,
}

/// Returns the smallest and the largest amount by which B is ahead of A, by all exchanges; `None`
/// without one.
fn bounds(exchanges: &[Exchange], step_ticks: f64) -> Option<(i64, i64)> {
    let ahead = |there: u64, here: u64| there.wrapping_sub(here).cast_signed();
    let lo = exchanges.iter().map(|e| ahead(e.there, e.after)).max()?;
    let hi = exchanges.iter().map(|e| ahead(e.there, e.before)).min()?;
    let step = step_ticks.ceil() as i64;
    Some((lo.saturating_sub(step), hi.saturating_add(step)))
}

/// Maximum number of exchanges of a pair: the bounds hardly get closer beyond.
const MOST_EXCHANGES: usize = 20_000;

/// A cache line for each word that is passed, so that one does not disturb the other.
#[repr(align(128))]
#[derive(Default)]
struct Line(AtomicU64);

/// Passes a number to and fro between two CPUs, until `last` at the latest.
fn exchange(
    source: Source,
    [here, there]: [usize; 2],
    effort: Effort,
    last: Instant,
) -> Vec<Exchange> {
    let (ping, pong, reading) = (Line::default(), Line::default(), Line::default());
    let stop = AtomicBool::new(false);
    let mut exchanges = Vec::with_capacity(MOST_EXCHANGES);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            if cpus::pin(there).is_err() {
                return;
            }
            for number in 1.. {
                // Pairs with the release store of the other side.
                if !seen(&ping.0, number, || stop.load(Ordering::Relaxed)) {
                    return;
                }
                reading
                    .0
                    .store(source.read_ticks_ordered(), Ordering::Relaxed);
                pong.0.store(number, Ordering::Release);
            }
        });
        let asking = scope.spawn(|| {
            if cpus::pin(here).is_ok() {
                let mut end = last.min(Instant::now() + effort.patience);
                for number in 1..=MOST_EXCHANGES as u64 {
                    let before = source.read_ticks_ordered();
                    ping.0.store(number, Ordering::Release);
                    if !seen(&pong.0, number, || Instant::now() >= end) {
                        break;
                    }
                    let after = source.read_ticks_ordered();
                    let there = reading.0.load(Ordering::Relaxed);
                    exchanges.push(Exchange {
                        before,
                        there,
                        after,
                    });
                    if number == 1 {
                        end = last.min(Instant::now() + effort.pair);
                    }
                    if number % 64 == 0 && Instant::now() >= end {
                        break;
                    }
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        let _ = asking.join();
        stop.store(true, Ordering::Relaxed);
    });
    exchanges
}

/// Waits until the word is the number; returns false if `given_up` said so before.
fn seen(word: &AtomicU64, number: u64, given_up: impl Fn() -> bool) -> bool {
    loop {
        for _ in 0..256 {
            if word.load(Ordering::Acquire) == number {
                return true;
            }
            core::hint::spin_loop();
        }
        if given_up() {
            return false;
        }
    }
}

/// Compares readings of all CPUs at once with the largest published reading.
fn together(source: Source, across: &mut Across, time: Duration) {
    // Signed and from a common start, so that a wrap of the clock is not a step back.
    let start = source.read_ticks_ordered();
    let greatest = AtomicI64::new(0);
    let go = Barrier::new(across.cpus.len());
    let found: Vec<(u64, u64, u64)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (across.cpus.iter())
            .map(|&cpu| {
                let (go, greatest) = (&go, &greatest);
                scope.spawn(move || {
                    let pinned = cpus::pin(cpu).is_ok();
                    go.wait();
                    if pinned {
                        look(source, start, greatest, time)
                    } else {
                        (0, 0, 0)
                    }
                })
            })
            .collect();
        threads.into_iter().filter_map(|t| t.join().ok()).collect()
    });
    for (readings, backward, worst) in found {
        across.readings += readings;
        across.backward += backward;
        across.worst_backward_ticks = across.worst_backward_ticks.max(worst);
    }
}

/// Returns the number of readings, of those that went back, and the furthest step back.
fn look(source: Source, start: u64, greatest: &AtomicI64, time: Duration) -> (u64, u64, u64) {
    let end = Instant::now() + time;
    let (mut readings, mut backward, mut worst) = (0, 0, 0);
    loop {
        // Acquire: the reading below is taken after what was published.
        let published = greatest.load(Ordering::Acquire);
        let now = source
            .read_ticks_ordered()
            .wrapping_sub(start)
            .cast_signed();
        readings += 1;
        if now < published {
            backward += 1;
            worst = worst.max(published.abs_diff(now));
        }
        greatest.fetch_max(now, Ordering::AcqRel);
        if readings % 128 == 0 && Instant::now() >= end {
            return (readings, backward, worst);
        }
    }
}

#[cfg(test)]
mod tests;
