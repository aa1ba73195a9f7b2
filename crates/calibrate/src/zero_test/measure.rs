//! The measuring loop.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

use undertick_clock::Source;
use undertick_ring::mark::Mark;

use super::sampler::{Pair, Sampler};
use super::{Failure, Request};

/// Pairs of one multiplication and one addition in each dose: about 0, 5, 20 and 50 ns.
pub(super) const DOSES: [u32; 4] = [0, 5, 20, 50];
/// Turns of the loop in a block: about 13 ms.
const TURNS: u32 = 6000;
/// Links of 200 pairs in the chain that prices a pair, and turns between two chains.
const LINKS: u32 = 25;
const CHAIN_EVERY: u32 = 64;
pub(super) const CHAIN_PAIRS: u32 = LINKS * 200;

/// Four readings around a dose.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Index in [`DOSES`].
    pub(super) dose: u8,
    pub(super) descheduled: bool,
    pub(super) readings: [u64; 4],
}

/// The results of one block.
#[derive(Debug, Default)]
pub(super) struct Block {
    pub(super) samples: Vec<Sample>,
    /// Durations of the chain, ticks; those with the thread descheduled are dropped.
    pub(super) chains: Vec<u64>,
    /// Duration of all turns, ticks.
    pub(super) ticks: u64,
    pub(super) with_sampler: bool,
}

/// All blocks, and the sampler's pairs in order of time.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) blocks: Vec<Block>,
    pub(super) pairs: Vec<Pair>,
    pub(super) has_mark: bool,
    /// Duration of all blocks by the monotonic clock, ns, over that in ticks: the clock's rate
    /// during the test.
    pub(super) ns_per_tick: f64,
}

macro_rules! dose {
    ($x:ident, $pairs:literal) => {
        // SAFETY: arithmetic on two registers.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            core::arch::asm!(
                concat!(".rept ", $pairs, "\nimul {x}, {c}\nadd {x}, {c}\n.endr"),
                x = inout(reg) $x, c = in(reg) ODD, options(nostack, nomem),
            );
            #[cfg(target_arch = "aarch64")]
            core::arch::asm!(
                concat!(".rept ", $pairs, "\nmul {x}, {x}, {c}\nadd {x}, {x}, {c}\n.endr"),
                x = inout(reg) $x, c = in(reg) ODD, options(nostack, nomem),
            );
        }
    };
}

const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Work like that of a program: dependent loads and stores in 32 KiB, about 2 us.
struct OtherWork(Box<[u64; 4096]>);

impl OtherWork {
    #[inline(never)]
    fn turn(&mut self, mut x: u64) -> u64 {
        for _ in 0..160 {
            let cell = &mut self.0[(x >> 20) as usize & 4095];
            x = x
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(*cell)
                .wrapping_add(1_442_695_040_888_963_407);
            *cell ^= x;
        }
        x
    }
}

/// Readings around a dose. Each dose is a separate function: in one function the compiler reads the
/// clock before it branches to the dose, and the branch lies in the interval (7 ns here).
macro_rules! around {
    ($name:ident, $pairs:literal) => {
        #[inline(never)]
        fn $name<R: Fn() -> u64>(read: &R, x: &mut u64) -> [u64; 4] {
            let mut value = *x;
            let r0 = read();
            let r1 = read();
            dose!(value, $pairs);
            let r2 = read();
            let r3 = read();
            *x = value;
            [r0, r1, r2, r3]
        }
    };
}

around!(around_0, 0);
around!(around_5, 5);
around!(around_20, 20);
around!(around_50, 50);

/// One block with one way of reading.
#[inline(never)]
fn block<R: Fn() -> u64>(read: R, work: &mut OtherWork, x: &mut u64, mark: Option<&Mark>) -> Block {
    let mut block = Block {
        samples: Vec::with_capacity(TURNS as usize),
        ..Block::default()
    };
    let mut value = *x;
    let mut choice = *x | 1;
    let set = || {
        if let Some(mark) = mark {
            mark.set();
        }
    };
    let gone = || mark.is_some_and(Mark::is_gone);
    let begin = read();
    for turn in 0..TURNS {
        value = work.turn(value);
        choice = choice
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(ODD);
        let dose = (choice >> 33) as u8 % 4;
        set();
        let readings = match dose {
            0 => around_0(&read, &mut value),
            1 => around_5(&read, &mut value),
            2 => around_20(&read, &mut value),
            _ => around_50(&read, &mut value),
        };
        block.samples.push(Sample {
            dose,
            descheduled: gone(),
            readings,
        });
        if turn % CHAIN_EVERY == 0 {
            set();
            let start = read();
            for _ in 0..LINKS {
                dose!(value, 200);
            }
            let end = read();
            if !gone() {
                block.chains.push(end.wrapping_sub(start));
            }
        }
    }
    block.ticks = read().wrapping_sub(begin);
    *x = black_box(value);
    block
}

/// One block with the ordered read of a clock. The counters' instructions are written inline, so
/// that no choice of clock stands between reading and work.
fn one(clock: Source, work: &mut OtherWork, x: &mut u64, mark: Option<&Mark>) -> Block {
    #[cfg(target_arch = "x86_64")]
    if clock.clock() == undertick_clock::ClockId::Tsc {
        use undertick_clock::tsc;
        if tsc::has_rdtscp() {
            return block(|| tsc::read_rdtscp().raw(), work, x, mark);
        }
        return block(|| tsc::read_fenced().raw(), work, x, mark);
    }
    block(move || clock.read_ticks_ordered(), work, x, mark)
}

fn fresh_work() -> OtherWork {
    let cells: Box<[u64]> = (1..=4096_u64).map(|i| i.wrapping_mul(ODD)).collect();
    OtherWork(cells.try_into().expect("4096 cells"))
}

/// Runs the same loop until stopped, as a replica of the experiment.
pub(super) fn replica(clock: Source, stop: &AtomicBool) {
    let (mut work, mut x) = (fresh_work(), 88_172_645_463_325_252);
    while !stop.load(Ordering::Relaxed) {
        black_box(one(clock, &mut work, &mut x, None));
    }
}

/// Runs all blocks under the load.
pub(super) fn all(
    request: &Request,
    mut progress: impl FnMut(f64) -> bool,
) -> Result<Measured, Failure> {
    let clock = request.clock;
    let load = request.load.start(clock).map_err(Failure::Load)?;
    let sampler = Sampler::start(clock);
    let mark = Mark::of_this_thread();
    let (mut work, mut x) = (fresh_work(), 88_172_645_463_325_252);
    // Warms up caches, predictors and the pages of the samples.
    black_box(one(clock, &mut work, &mut x, None));
    let began = (std::time::Instant::now(), clock.read_ticks_ordered());
    let mut blocks = Vec::new();
    for number in 0..request.blocks {
        // Pairs of blocks, with and without the sampler, in an alternating order, so that a steady
        // drift favours neither.
        let with_sampler = (number % 2 == 0) == (number / 2 % 2 == 0);
        sampler.run(with_sampler);
        let mut done = one(clock, &mut work, &mut x, mark.as_ref());
        done.with_sampler = with_sampler;
        blocks.push(done);
        sampler.run(false);
        if !progress(f64::from(number + 1) / f64::from(request.blocks)) {
            return Err(Failure::Interrupted);
        }
        std::thread::sleep(request.pause);
        if let Some(mark) = &mark {
            mark.set();
        }
    }
    let ticks = clock.read_ticks_ordered().wrapping_sub(began.1);
    let ns = began.0.elapsed().as_nanos() as f64;
    let pairs = sampler.finish();
    load.check().map_err(Failure::Load)?;
    Ok(Measured {
        blocks,
        pairs,
        has_mark: mark.is_some(),
        ns_per_tick: ns / ticks.max(1) as f64,
    })
}
