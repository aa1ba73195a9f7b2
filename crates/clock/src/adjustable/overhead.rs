//! The cost of the clock for a program on its CPU, and its removal from a result.

use std::hint::black_box;
use std::io;

use super::AdjustableClock;
use crate::{ClockId, Source};

/// The cost of a clock for a program on the same CPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overhead {
    /// Share of the CPU that the program loses while the clock runs: thread, wake-ups, interrupts
    /// and the cache lines that they evict.
    pub share: f64,
    /// Half the distance between the quartiles of the blocks behind it.
    pub share_spread: f64,
    /// The share by the CPU time of the clock's thread alone.
    pub thread_share: f64,
}

/// Corrects a mean measured while the clock took `share` of the CPU to its value without the clock,
/// ns (Beilner 1988, "the clock itself may cost"). `None` if the clock leaves nothing: a tick of
/// 100 us whose handling takes 100 us.
///
/// ```
/// use undertick_clock::adjustable::corrected_mean_ns;
///
/// // 100 us of handling a tick: at 1 kHz a tenth, at 10 kHz everything.
/// assert!((corrected_mean_ns(1_000.0, 0.1).unwrap() - 900.0).abs() < 1e-9);
/// assert_eq!(corrected_mean_ns(1_000.0, 1.0), None);
/// ```
#[must_use]
pub fn corrected_mean_ns(mean_ns: f64, share: f64) -> Option<f64> {
    (share < 1.0).then_some(mean_ns * (1.0 - share))
}

/// Number of pairs of blocks, with the clock and without.
const PAIRS: usize = 16;
/// Number of dependent steps of a block: about 10 ms.
const STEPS: u64 = 10_000_000;

/// Measures what a clock of this tick takes from work on `cpu`, on a separate thread: about 0.3 s.
///
/// # Errors
/// The CPU is not available, or the clock cannot be started.
pub fn on_same_cpu(tick_ns: u64, cpu: usize) -> io::Result<Overhead> {
    std::thread::scope(|scope| {
        scope
            .spawn(|| {
                crate::cpus::pin(cpu)?;
                measure(tick_ns, cpu)
            })
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the measuring thread ended")))
    })
}

fn measure(tick_ns: u64, cpu: usize) -> io::Result<Overhead> {
    let timer = Source::open(ClockId::MonotonicRaw).map_err(io::Error::other)?;
    let block_ns = || {
        let begin = timer.read_ticks_ordered();
        let mut x = 1_u64;
        for _ in 0..STEPS {
            x = black_box(x.wrapping_mul(3));
        }
        black_box(x);
        timer.read_ticks_ordered().saturating_sub(begin) as f64
    };
    let mut shares = Vec::with_capacity(PAIRS);
    let mut thread_share = 0.0;
    block_ns();
    for pair in 0..PAIRS {
        // The order alternates, so that a drift of the CPU's speed affects both.
        let bare = |clock_last: bool| (pair % 2 == usize::from(clock_last)).then(block_ns);
        let before = bare(false);
        let clock = AdjustableClock::start(tick_ns, Some(cpu))?;
        let with = block_ns();
        thread_share += clock.cost().share() / PAIRS as f64;
        drop(clock);
        let alone = before.or_else(|| bare(true)).unwrap_or(with);
        shares.push(1.0 - alone / with);
    }
    shares.sort_unstable_by(f64::total_cmp);
    Ok(Overhead {
        share: (shares[PAIRS / 2 - 1] + shares[PAIRS / 2]) / 2.0,
        share_spread: (shares[PAIRS * 3 / 4] - shares[PAIRS / 4]) / 2.0,
        thread_share,
    })
}
