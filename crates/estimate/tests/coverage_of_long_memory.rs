//! Series with long memory: the intervals of their mean and their quantiles contain the truth and
//! are not much wider than they must be, or there are none.

use crate::known;

use known::{LEVEL, Source, repetitions};
use undertick_estimate::{Sample, Series};
use undertick_units::Estimate;

/// The dependence of successive values.
#[derive(Clone, Copy, Debug)]
enum Memory {
    /// AR(1) with this correlation of neighbours.
    Falling(f64),
    /// Two levels, each kept for this number of values on average.
    TwoStates(f64),
}

impl Memory {
    /// Draws values of standard deviation about 1000.
    fn draw(self, source: &mut Source, n: usize) -> Sample {
        let values = match self {
            Self::Falling(phi) => source.ar1(phi, n),
            Self::TwoStates(stay) => {
                let mut high = source.uniform() < 0.5;
                (0..n)
                    .map(|_| {
                        high ^= source.uniform() < 1.0 / stay;
                        f64::from(i8::from(high) * 2 - 1) + 0.1 * source.normal()
                    })
                    .collect()
            }
        };
        let series: Series = values.iter().map(|x| (1000.0 * x).round() as i64).collect();
        series.sample()
    }

    /// Returns the half-width for the mean of n values with known memory.
    fn best(self, n: usize) -> f64 {
        let (variance, phi) = match self {
            Self::Falling(phi) => (1.0, phi),
            Self::TwoStates(stay) => (1.0, 1.0 - 2.0 / stay),
        };
        let noise = f64::from(u8::from(matches!(self, Self::TwoStates(_)))) * 0.01;
        let of_mean = (variance * (1.0 + phi) / (1.0 - phi) + noise) / n as f64;
        1960.0 * of_mean.sqrt()
    }
}

/// Results of many repetitions.
#[derive(Debug, Default)]
struct Asked {
    refused: u64,
    missed: u64,
    half_sum: f64,
}

impl Asked {
    fn note(&mut self, estimate: &Estimate, truth: f64) {
        let (lo, hi) = (estimate.interval.lo, estimate.interval.hi);
        let missed = lo.is_some_and(|lo| lo > truth) || hi.is_some_and(|hi| hi < truth);
        self.missed += u64::from(missed);
        match estimate.interval.half_width() {
            Some(half) => self.half_sum += half,
            None => self.refused += 1,
        }
    }

    fn share(&self, n: u64) -> f64 {
        n as f64 / repetitions() as f64
    }

    fn half(&self) -> f64 {
        self.half_sum / (repetitions() - self.refused).max(1) as f64
    }
}

fn ask(case: u64, memory: Memory, n: usize) -> [Asked; 3] {
    let mut found = [Asked::default(), Asked::default(), Asked::default()];
    for repetition in 0..repetitions() {
        let sample = memory.draw(&mut Source::new(case, repetition), n);
        found[0].note(&sample.mean(LEVEL, 0.0).unwrap(), 0.0);
        if let Memory::Falling(_) = memory {
            found[1].note(&sample.quantile(0.5, LEVEL, 0.0).unwrap(), 0.0);
            // Standard normal quantile of 0.99.
            found[2].note(&sample.quantile(0.99, LEVEL, 0.0).unwrap(), 2_326.348);
        }
    }
    eprintln!("{memory:?}, n = {n}: {found:?}");
    found
}

/// Ten correlation times and more give an interval with its stated coverage.
#[test]
fn long_enough_is_answered() {
    for (case, memory, n) in [
        (1, Memory::Falling(0.8), 200),
        (2, Memory::Falling(0.95), 1000),
        (3, Memory::Falling(0.95), 2000),
        (4, Memory::Falling(0.99), 5000),
        (5, Memory::TwoStates(20.0), 500),
        (6, Memory::TwoStates(200.0), 5000),
    ] {
        let [mean, median, p99] = ask(case, memory, n);
        let what = format!("{memory:?}, n = {n}");
        assert!(mean.share(mean.refused) < 0.15, "{what}: refused");
        let given = (repetitions() - mean.refused) as f64;
        let covered = 1.0 - mean.missed as f64 / given;
        assert!((0.925..=0.985).contains(&covered), "{what}: {covered}");
        let wide = mean.half() / memory.best(n);
        assert!((0.8..=1.7).contains(&wide), "{what}: {wide} times the best");
        for quantile in [median, p99] {
            assert!(
                quantile.share(quantile.missed) < 0.075,
                "{what}: {quantile:?}"
            );
        }
    }
}

/// With fewer than ten correlation times there is usually no interval, and seldom a wrong one.
#[test]
fn too_short_is_refused() {
    for (case, memory, n) in [
        (7, Memory::Falling(0.99), 500),
        (8, Memory::Falling(0.95), 200),
        (9, Memory::TwoStates(200.0), 2000),
    ] {
        for asked in ask(case, memory, n) {
            assert!(
                asked.share(asked.missed) < 0.075,
                "{memory:?}, n = {n}: {asked:?}"
            );
        }
        let [mean, ..] = ask(case, memory, n);
        assert!(
            mean.share(mean.refused) > 0.8,
            "{memory:?}, n = {n}: {mean:?}"
        );
    }
}

/// A quantile that fewer than twenty independent values exceed has no upper bound.
#[test]
fn tails_need_exceedances() {
    let bound = |n: usize, p: f64| {
        let mut source = Source::new(10, n as u64);
        let values = source.many(n, |s| (1000.0 * s.exponential()).round());
        let series: Series = values.iter().map(|x| *x as i64).collect();
        series.sample().quantile(p, LEVEL, 0.0).unwrap().interval.hi
    };
    assert_eq!((bound(1_900, 0.99), bound(19_000, 0.999)), (None, None));
    assert!(bound(2_100, 0.99).is_some() && bound(21_000, 0.999).is_some());
    assert!(bound(20, 0.5).is_some(), "the middle is no tail");
}
