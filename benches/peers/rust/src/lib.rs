//! The floor and the doses of `floor.h` and `dose.h`, for Rust.

use std::time::Instant;

const FLOOR_SLOTS: usize = 65536;

/// The floor's ring.
pub struct Floor(Vec<[u64; 2]>);

impl Default for Floor {
    fn default() -> Self {
        Self(vec![[1; 2]; FLOOR_SLOTS])
    }
}

impl Floor {
    /// One clock reading and one 16-byte store, `n` times.
    #[inline(never)]
    pub fn run(&mut self, n: u32) {
        for i in 0..n {
            let slot = &mut self.0[i as usize & (FLOOR_SLOTS - 1)];
            // SAFETY: reads the counter; the slot is a valid place to write to.
            unsafe {
                let now = core::arch::x86_64::_rdtsc();
                std::ptr::write_volatile(&raw mut slot[0], now);
                std::ptr::write_volatile(&raw mut slot[1], u64::from(i) | 7 << 32);
            }
        }
    }
}

/// Prints one line: what, thread, ns a unit, units.
pub fn timed(what: &str, n: u32, block: impl FnOnce(u32)) {
    let from = Instant::now();
    block(n);
    println!(
        "{what} 0 {:.4} {n}",
        from.elapsed().as_secs_f64() * 1e9 / f64::from(n)
    );
}

/// Returns the blocks and the units in each, from the command line.
pub fn told() -> (u32, u32) {
    let mut words = std::env::args().skip(1).map_while(|w| w.parse().ok());
    (words.next().unwrap_or(10), words.next().unwrap_or(20_000))
}

/// A span of known length: pairs of dependent instructions.
#[macro_export]
macro_rules! dose {
    ($n:literal, $x:ident) => {
        // SAFETY: changes one register.
        unsafe {
            core::arch::asm!(concat!(".rept ", $n), "imul {0}, {0}, 3", "add {0}, 1", ".endr",
                inout(reg) $x, options(nomem, nostack))
        }
    };
}
