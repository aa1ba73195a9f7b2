//! The zero-elapsed-time test: measures nothing with every method, and chooses one.

use undertick_units::Estimate;

use super::correction::{Correction, Paired, control_variate};
use super::improvement::improvement;
use super::variance::Correlations;
use crate::long_run::spread_of_mean;

/// A method to determine the cost to be subtracted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The mean cost of nothing.
    LongTerm,
    /// The pairs beside the interval (Method I).
    Pairs,
    /// The nearest pairs of a sampler (Method II).
    Sampler,
    /// Fitted shares of the pairs beside the interval.
    ControlVariate,
}

impl Method {
    /// Returns the name as on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LongTerm => "long-term",
            Self::Pairs => "pairs",
            Self::Sampler => "sampler",
            Self::ControlVariate => "control-variate",
        }
    }
}

/// Result of the zero test for one method.
#[derive(Clone, Debug)]
pub struct Tested {
    /// The method.
    pub method: Method,
    /// Mean of nothing after correction, ticks: the truth is 0.
    pub bias: Estimate,
    /// Improvement factor; `None` where nothing scatters.
    pub k: Option<Estimate>,
    /// Correlations of the pairs that the method uses.
    pub correlations: Correlations,
    /// The correction to subtract, fitted to all samples.
    pub correction: Correction,
    /// Every interval around nothing after an out-of-sample correction, ticks.
    pub corrected: Vec<f64>,
}

/// The outcome of the test.
#[derive(Clone, Debug)]
pub struct ZeroTest {
    /// One result per method, in the order of [`Method`].
    pub methods: Vec<Tested>,
    /// The method to use.
    pub chosen: Method,
    /// The reason for the choice, in plain words.
    pub why: String,
}

impl ZeroTest {
    /// Returns the figures of the chosen method.
    #[must_use]
    pub fn choice(&self) -> &Tested {
        (self.methods.iter())
            .find(|tested| tested.method == self.chosen)
            .expect("the chosen method was tested")
    }
}

/// Folds of the cross-fit: each is corrected with what the others give.
const FOLDS: usize = 10;
/// Fewest chunks that are used in turn for the choice and for the reported figures, so that k is not
/// reported from the samples by which the method was chosen.
const CHUNKS: usize = 64;
/// Samples in a chunk, if there are enough: both halves must see what is there for a hundredth of the
/// run, such as the beginning of a load.
const OF_CHUNK: usize = 16;
/// Number of samples below which no method can be chosen.
const FEWEST: usize = 2 * CHUNKS;
/// A method must make the mean squared error smaller by more than this to be worth two readings more.
const WORTH_IT: f64 = 1.05;

/// Tests every method on intervals around nothing, in the order in which they
/// were measured. `own` holds the pairs of the measuring process itself,
/// `sampled` the same intervals with the nearest pairs of a sampler. The
/// clock's step is `granularity` ticks.
///
/// Slopes are fitted on nine tenths and applied to the remaining tenth. The truth is 0, so the mean
/// squared error of each method is measured: the method with the least on one half of the samples is
/// chosen if that is below 1/1.05 of long-term averaging's, and is kept only if neither its error nor
/// its scatter is above long-term averaging's on the other half. `None` below 128 samples.
#[must_use]
pub fn zero_test(
    own: &[Paired],
    sampled: Option<&[Paired]>,
    level: f64,
    granularity: f64,
) -> Option<ZeroTest> {
    if own.len() < FEWEST {
        return None;
    }
    let uncorrected: Vec<f64> = own.iter().map(|s| s.tm).collect();
    let test = |method: Method, samples: &[Paired]| {
        let corrected = out_of_sample(method, samples);
        Tested {
            method,
            bias: mean_of(&corrected, level)
                .unwrap_or_else(|| unreachable!("there are {FEWEST} samples")),
            k: improvement(&reported(&uncorrected), &reported(&corrected), level),
            correlations: Correlations::from_samples(
                samples,
                granularity,
                method != Method::Sampler,
            ),
            correction: fit(method, samples),
            corrected,
        }
    };
    let mut methods = vec![test(Method::LongTerm, own), test(Method::Pairs, own)];
    if let Some(sampled) = sampled {
        assert_eq!(sampled.len(), own.len(), "the same intervals");
        methods.push(test(Method::Sampler, sampled));
    }
    methods.push(test(Method::ControlVariate, own));
    let (chosen, why) = choose(&methods, &uncorrected);
    Some(ZeroTest {
        methods,
        chosen,
        why,
    })
}

/// Returns the correction that a method fits to these samples. Pairs are as published: no constant
/// is added, so that their bias shows.
fn fit(method: Method, samples: &[Paired]) -> Correction {
    match method {
        Method::LongTerm => Correction::constant(0.0).centred(samples, 0.0),
        Method::Pairs | Method::Sampler => Correction::pairs(),
        Method::ControlVariate => control_variate(samples),
    }
}

/// Corrects each sample with slopes that come from neither it nor its neighbours, and the constant
/// of the whole run, as long-term averaging has it. Fitted slopes weigh how far a pair is from the
/// mean of all pairs: without that, a fold's own slopes would move its mean, and a difference of 0.01
/// between two folds would add a hundredth of a reading to the scatter.
fn out_of_sample(method: Method, samples: &[Paired]) -> Vec<f64> {
    let n = samples.len();
    let mut corrected = Vec::with_capacity(n);
    let published = matches!(method, Method::Pairs | Method::Sampler);
    for fold in 0..FOLDS {
        let held_out = fold * n / FOLDS..(fold + 1) * n / FOLDS;
        let others = [&samples[..held_out.start], &samples[held_out.end..]].concat();
        let slopes = Correction {
            constant: 0.0,
            ..fit(method, &others)
        };
        let at_mean = match published {
            true => 0.0,
            false => samples.iter().map(|s| slopes.cost(s.t1, s.t4)).sum::<f64>() / n as f64,
        };
        corrected.extend((samples[held_out].iter()).map(|s| slopes.apply(s) + at_mean));
    }
    if !published {
        let mean = corrected.iter().sum::<f64>() / n as f64;
        corrected.iter_mut().for_each(|x| *x -= mean);
    }
    corrected
}

fn chunks(values: &[f64], parity: usize) -> Vec<f64> {
    let n = values.len();
    let chunks = CHUNKS.max(n / OF_CHUNK);
    (parity..chunks)
        .step_by(2)
        .flat_map(|i| values[i * n / chunks..(i + 1) * n / chunks].to_vec())
        .collect()
}

fn for_choice(values: &[f64]) -> Vec<f64> {
    chunks(values, 0)
}

fn reported(values: &[f64]) -> Vec<f64> {
    chunks(values, 1)
}

/// How many times the mean square of what long-term averaging leaves of nothing is that of what a
/// method leaves, its bias included; `None` if either leaves nothing at all.
fn gain(uncorrected: &[f64], corrected: &[f64]) -> Option<f64> {
    let n = uncorrected.len() as f64;
    let mean = uncorrected.iter().sum::<f64>() / n;
    let without = uncorrected.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
    let with = corrected.iter().map(|x| x * x).sum::<f64>();
    (without > 0.0 && with > 0.0).then(|| without / with)
}

fn choose(methods: &[Tested], uncorrected: &[f64]) -> (Method, String) {
    let gain_of = |tested: &Tested, half: fn(&[f64]) -> Vec<f64>| {
        gain(&half(uncorrected), &half(&tested.corrected))
    };
    let best = (methods[1..].iter())
        .filter_map(|tested| Some((tested, gain_of(tested, for_choice)?)))
        .filter(|(_, gain)| *gain > WORTH_IT)
        .max_by(|a, b| a.1.total_cmp(&b.1));
    let Some((best, _)) = best else {
        return (
            Method::LongTerm,
            "no pair of readings tells more about an interval's cost than the long-term mean does"
                .into(),
        );
    };
    let name = best.method.name();
    // Bias and scatter together, and the scatter alone: neither may be worse than without.
    let judged = gain_of(best, reported).unwrap_or(0.0);
    let k = best.k.as_ref().filter(|k| k.value >= 1.0);
    match k.filter(|_| judged >= 1.0) {
        Some(k) => {
            let parts = match k.interval.lo {
                Some(lo) if lo >= 1.0 => "",
                _ => "; not in all parts of the run, as the interval of k says",
            };
            (
                best.method,
                format!(
                    "{name} leaves the least mean squared error, 1/{judged:.2} of that of long-term \
                     averaging on samples that had no part in the choice{parts}"
                ),
            )
        }
        None => (
            Method::LongTerm,
            format!(
                "{name} looked better, but not on the samples that had no part in the choice: \
                 long-term averaging, which never scatters more than no correction"
            ),
        ),
    }
}

/// Returns the mean with its interval by batch means, ticks.
fn mean_of(values: &[f64], level: f64) -> Option<Estimate> {
    let spread = spread_of_mean(values)?;
    let n = values.len();
    let mean = values.iter().sum::<f64>() / n as f64;
    let half = spread.half_width(level);
    let (variance, _) = crate::long_run::variance_and_lag1(values);
    Some(Estimate {
        value: mean,
        interval: undertick_units::Interval::new(mean - half, mean + half),
        level,
        unit: "ticks".into(),
        method: "mean of nothing, batch means".into(),
        n: n as u64,
        n_effective: if spread.variance > 0.0 {
            (variance / spread.variance).min(n as f64)
        } else {
            n as f64
        },
        notes: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 192 values in 64 chunks of three, in turn.
    #[test]
    fn halves_take_turns_by_chunks() {
        let values: Vec<f64> = (0..192).map(f64::from).collect();
        let (even, odd) = (for_choice(&values), reported(&values));
        assert_eq!((even.len(), odd.len()), (96, 96));
        assert_eq!(even[..7], [0.0, 1.0, 2.0, 6.0, 7.0, 8.0, 12.0]);
        assert_eq!(odd[..4], [3.0, 4.0, 5.0, 9.0]);
        assert_eq!(odd[95], 191.0);
    }

    /// 1 and 4: mean 2.5, standard error 1.5, t = 1 at 50 %; equivalent to two values.
    #[test]
    fn mean_of_two_by_hand() {
        let e = mean_of(&[1.0, 4.0], 0.5).unwrap();
        assert_eq!((e.value, e.n, e.n_effective), (2.5, 2, 2.0));
        assert!((e.interval.lo.unwrap() - 1.0).abs() < 1e-9);
        assert!((e.interval.hi.unwrap() - 4.0).abs() < 1e-9);
        assert_eq!(mean_of(&[3.0; 5], 0.5).unwrap().n_effective, 5.0);
        // A ramp of 512: sixteen to thirty-one batches are equivalent to one value.
        let ramp: Vec<f64> = (0..512).map(f64::from).collect();
        let e = mean_of(&ramp, 0.95).unwrap();
        assert!((e.n_effective - 1.0).abs() < 0.2, "{}", e.n_effective);
    }

    /// Without slopes only the mean is subtracted; pairs subtract their own durations.
    #[test]
    fn what_is_left_of_each_sample() {
        let samples: Vec<Paired> = (0..40)
            .map(|i| Paired {
                t1: f64::from(i % 3),
                tm: f64::from(i % 5) + 7.0,
                t4: f64::from(i % 2),
            })
            .collect();
        let left = out_of_sample(Method::LongTerm, &samples);
        let expected: Vec<f64> = (0..40).map(|i| f64::from(i % 5) - 2.0).collect();
        assert_eq!(left.len(), 40);
        for (left, expected) in left.iter().zip(expected) {
            assert!((left - expected).abs() < 1e-9, "{left} {expected}");
        }
        let left = out_of_sample(Method::Pairs, &samples);
        let pairs = Correction::pairs();
        for (left, sample) in left.iter().zip(&samples) {
            assert!((left - pairs.apply(sample)).abs() < 1e-9);
        }
    }
}
