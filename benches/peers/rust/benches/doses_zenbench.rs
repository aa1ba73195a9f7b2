//! Doses under zenbench: alone, and after 2 us of other work as input that is not timed.

use peers::dose;
use zenbench::prelude::*;

macro_rules! doses {
    ($suite:ident, $($n:literal),*) => {$(
        $suite.group(concat!("alone_", $n), |g| {
            g.bench("dose", |b| {
                let mut x = 1_u64;
                b.iter(|| { dose!($n, x); x });
            });
        });
        $suite.group(concat!("within_", $n), |g| {
            g.bench("dose", |b| {
                b.with_input(|| { let mut x = 1_u64; dose!(2000, x); x })
                    .run(|mut x| { dose!($n, x); x })
            });
        });
    )*};
}

fn all(suite: &mut Suite) {
    doses!(suite, 5, 20, 50, 200);
}

zenbench::main!(all);
