//! Speed of the core, relative to the CPU's counter.
//!
//! **Method.** In a chain each instruction needs the result of the one before, so the chain takes
//! the sum of the latencies in core cycles. On every core known to us an addition of registers
//! takes 1; on x86 a multiplication of 64 bits has taken 3 since 2008. The counter's ticks around
//! the chain give cycles per tick. Chains are short (a few microseconds), and a block is the median
//! of some of them. Blocks are spread over seconds, and the interval is that of the blocks, so it
//! includes the drift of the speed.
//!
//! **Caveats.** The latencies are assumed. Only the addition is used; the multiplication checks the
//! assumption: its result must be 3.

use undertick_clock::{Source, best, rate};
use undertick_estimate::spread_of_mean;
use undertick_report::audit::CoreSpeed;
use undertick_units::{Estimate, Interval};

/// Instructions in a chain: at 3 GHz 4 us, 400 steps of a 10 ns clock.
const CHAIN: u64 = 12_000;
/// Chains in a block, whose median counts.
const CHAINS: usize = 9;
/// Minimum number of blocks for an interval.
const FEWEST: usize = 8;

/// Blocks of cycles per tick, in the order in which they were run.
pub struct CoreSpeedBlocks {
    counter: Option<Source>,
    cycles_per_tick: Vec<f64>,
    multiply_cycles: Vec<f64>,
}

impl CoreSpeedBlocks {
    /// Returns a measurement without blocks.
    #[must_use]
    pub fn none() -> Self {
        let counter = (best().clock.is_counter())
            .then(|| Source::open(best().clock).ok())
            .flatten();
        Self {
            counter,
            cycles_per_tick: Vec::new(),
            multiply_cycles: Vec::new(),
        }
    }

    /// Number of blocks so far; where there is no counter, more than any caller wants.
    #[must_use]
    pub fn count(&self) -> usize {
        self.counter
            .map_or(usize::MAX, |_| self.cycles_per_tick.len())
    }

    /// Cycles per tick of each block; empty where there is no counter.
    #[must_use]
    pub fn cycles_per_tick(&self) -> &[f64] {
        &self.cycles_per_tick
    }

    /// Runs that many blocks; none where there is no counter.
    pub fn run(&mut self, blocks: usize) {
        let Some(counter) = self.counter else { return };
        for _ in 0..blocks {
            let (Some(add), Some(multiply)) =
                (median_ticks(counter, add), median_ticks(counter, multiply))
            else {
                return;
            };
            self.cycles_per_tick.push(CHAIN as f64 / add);
            self.multiply_cycles.push(multiply / add);
        }
    }

    /// Returns the speed of the core from all blocks, with intervals of that level. `None` for fewer than
    /// eight blocks, or where there is no counter.
    #[must_use]
    pub fn finish(mut self, level: f64) -> Option<CoreSpeed> {
        let source = Source::open(self.counter?.clock()).ok()?;
        let rate = rate::find(source, rate::SHORTEST_SPAN).ok()?.claim.rate;
        let n = self.cycles_per_tick.len();
        if n < FEWEST {
            return None;
        }
        let spread = spread_of_mean(&self.cycles_per_tick)?;
        let half = spread.half_width(level);
        let mean = self.cycles_per_tick.iter().sum::<f64>() / n as f64;
        self.multiply_cycles.sort_unstable_by(f64::total_cmp);
        let estimate = |factor: f64, unit: &str| Estimate {
            value: mean * factor,
            interval: Interval::new((mean - half) * factor, (mean + half) * factor),
            level,
            unit: unit.to_owned(),
            method: "mean of blocks of dependent additions".to_owned(),
            n: n as u64,
            n_effective: spread.degrees + 1.0,
            notes: vec!["an addition is taken to last one core cycle".to_owned()],
        };
        Some(CoreSpeed {
            cycles_per_tick: estimate(1.0, "1"),
            ghz: estimate(rate.ticks_per_s() / 1e9, "GHz"),
            multiply_cycles: self.multiply_cycles[n / 2],
        })
    }
}

fn median_ticks(counter: Source, chain: fn()) -> Option<f64> {
    let mut ticks: Vec<u64> = (0..CHAINS)
        .map(|_| {
            let begin = counter.read_ticks_ordered();
            chain();
            counter.read_ticks_ordered().saturating_sub(begin)
        })
        .collect();
    ticks.sort_unstable();
    Some(ticks[CHAINS / 2] as f64).filter(|ticks| *ticks > 0.0)
}

/// Links of a chain in one turn of its loop: the loop's own instructions run in parallel with the
/// chain.
const LINKS: u64 = 24;

macro_rules! chain {
    ($name:ident, $x86:literal, $arm:literal) => {
        /// Executes `CHAIN` dependent instructions.
        #[inline(never)]
        fn $name() {
            let mut x = 3_u64;
            for _ in 0..CHAIN / LINKS {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: arithmetic on registers only.
                unsafe {
                    core::arch::asm!(
                        ".rept 24", $x86, ".endr",
                        x = inout(reg) x, y = in(reg) 5_u64, options(nomem, nostack)
                    );
                }
                #[cfg(target_arch = "aarch64")]
                // SAFETY: arithmetic on registers only.
                unsafe {
                    core::arch::asm!(
                        ".rept 24", $arm, ".endr",
                        x = inout(reg) x, y = in(reg) 5_u64, options(nomem, nostack)
                    );
                }
            }
            std::hint::black_box(x);
        }
    };
}

chain!(add, "add {x}, {y}", "add {x}, {x}, {y}");
chain!(multiply, "imul {x}, {y}", "mul {x}, {x}, {y}");

#[cfg(test)]
mod tests;
