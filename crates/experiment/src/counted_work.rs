//! Counted work: a chain of dependent instructions of known number, which takes a time that is
//! determined once in a process.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::Instant;

/// Executes a chain of that many dependent multiply-adds, turns.
#[inline(never)]
pub fn turns(count: u64) {
    let mut x = black_box(0x9e37_79b9_7f4a_7c15_u64);
    for _ in 0..count {
        x = black_box(x.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1));
    }
    black_box(x);
}

/// Duration of one of the [`turns`], ns; determined once in a process.
#[must_use]
pub fn turn_ns() -> f64 {
    static TURN_NS: OnceLock<f64> = OnceLock::new();
    *TURN_NS.get_or_init(calibrated_turn_ns)
}

/// Determines the duration of one of the [`turns`] now, ns: from the quickest of many runs of 100 us,
/// which was the least disturbed.
#[must_use]
pub fn calibrated_turn_ns() -> f64 {
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
