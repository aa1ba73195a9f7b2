//! Doses under Criterion: alone, and within 2 us of other work by `iter_custom`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use peers::dose;

macro_rules! doses {
    ($c:ident, $($n:literal),*) => {$(
        $c.bench_function(concat!("alone_", $n), |b| {
            let mut x = 1_u64;
            b.iter(|| dose!($n, x));
            black_box(x);
        });
        $c.bench_function(concat!("within_", $n), |b| {
            let mut x = 1_u64;
            b.iter_custom(|n| {
                let mut sum = Duration::ZERO;
                for _ in 0..n {
                    dose!(2000, x);
                    let from = Instant::now();
                    dose!($n, x);
                    sum += from.elapsed();
                }
                sum
            });
            black_box(x);
        });
    )*};
}

fn all(c: &mut Criterion) {
    doses!(c, 5, 20, 50, 200);
}

criterion_group!(benches, all);
criterion_main!(benches);
