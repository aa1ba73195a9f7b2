//! The spans of the core's fastest state.
//!
//! Where another tenant has the core's second thread, readings take 30 to 43 ns within one second,
//! and a span beside a slow pair takes 1 to 4 ns longer than the pair, differently in each process.
//! Beside a fast pair it takes as long as the pair, within 0.3 ns. So the cost of spans is measured in
//! the fastest state, and the pairs of a program, or its readings, show how far it was from there. Over
//! all states, a plain span came out at 12 to 28 ns in runs a moment apart (AMD Zen 3 guest).

use undertick_estimate::compensation::Paired;

use super::samples::Samples;

/// Fewest and most successive spans in a window, whose mean pair shows the core's state: 0.1 to 5 ms
/// of the workload. States were seen to last from a millisecond to minutes.
const WINDOW: [usize; 2] = [8, 512];
/// The steps of the clock change the mean of a window by no more than this share.
const ROUNDING: f64 = 0.01;
/// A window is of the fastest state if its mean pair is at most this many times that of the fastest
/// tenth.
const ALIKE: f64 = 1.05;

/// The times at which the core was in its fastest state.
pub(super) struct Fastest {
    /// Start and mean pair of each window, ticks.
    windows: Vec<(i64, f64)>,
    /// The largest mean of a window of the fastest state.
    most: f64,
}

impl Fastest {
    /// By the pairs that the spans of these events carry.
    pub(super) fn by_pairs(samples: &Samples, events: &[u32]) -> Self {
        let mut pairs: Vec<(i64, f64)> = (events.iter())
            .flat_map(|&event| samples.timed(event))
            .map(|(start, s): (i64, &Paired)| (start, f64::midpoint(s.t1, s.t4)))
            .collect();
        let mean = pairs.iter().map(|pair| pair.1).sum::<f64>() / pairs.len().max(1) as f64;
        pairs.sort_unstable_by_key(|pair| pair.0);
        let windows: Vec<(i64, f64)> = (pairs.chunks(window(mean, samples.granularity_ticks)))
            .map(|window| {
                let sum: f64 = window.iter().map(|w| w.1).sum();
                (window[0].0, sum / window.len() as f64)
            })
            .collect();
        let mut means: Vec<f64> = windows.iter().map(|w| w.1).collect();
        means.sort_unstable_by(f64::total_cmp);
        let most = means.get(means.len() / 10).map_or(0.0, |fast| ALIKE * fast);
        Self { windows, most }
    }

    /// The spans of these events that lie in windows of the fastest state.
    pub(super) fn only(&self, samples: &Samples, events: &[u32]) -> Samples {
        samples.only(events, |start| {
            let after = self.windows.partition_point(|w| w.0 <= start);
            after > 0 && self.windows[after - 1].1 <= self.most
        })
    }

    /// The mean pair of the fastest state, as a ratio to that of all times.
    pub(super) fn ratio(&self) -> f64 {
        let mean = |of: &mut dyn Iterator<Item = f64>| {
            let (n, sum) = of.fold((0.0, 0.0), |(n, sum), pair| (n + 1.0, sum + pair));
            sum / n
        };
        let all = || self.windows.iter().map(|window| window.1);
        let ratio = mean(&mut all().filter(|&pair| pair <= self.most)) / mean(&mut all());
        if ratio.is_finite() { ratio } else { 1.0 }
    }
}

/// Spans in a window of pairs of this mean on a clock with such steps, ticks. The mean of a span's
/// two pairs, four readings, has a rounding error of `step / sqrt(12)`.
fn window(mean: f64, step: f64) -> usize {
    let of_one = step / 12.0_f64.sqrt() / mean.max(step);
    ((of_one / ROUNDING).powi(2).ceil() as usize).clamp(WINDOW[0], WINDOW[1])
}

#[cfg(test)]
mod tests {
    use super::super::samples::tests::of;
    use super::*;

    const STRETCH: usize = 1024;

    fn starts(samples: &Samples) -> Vec<i64> {
        samples.timed(7).map(|(start, _)| start).collect()
    }

    /// Three stretches of spans whose pairs take 60 in the second and `slow` in the others, on a clock
    /// that moves `step` at a time.
    fn three(slow: f64, step: f64) -> Samples {
        let spans = (0..3 * STRETCH).map(|at| {
            let pair = if at / STRETCH == 1 { 60.0 } else { slow };
            let pair = if at % 2 == 0 {
                pair + step
            } else {
                pair - step
            };
            let readings = Paired {
                t1: pair,
                tm: 100.0,
                t4: pair,
            };
            (100 * at as i64, readings)
        });
        of(7, step, spans)
    }

    /// The spans of the fast stretch are left, but for windows that reach beyond it. Where all are
    /// alike, all are.
    #[test]
    fn the_fastest_state_is_seen_through_the_steps_of_the_clock() {
        for step in [2.0, 20.0] {
            let samples = three(80.0, step);
            let found = Fastest::by_pairs(&samples, &[7]);
            let fast = starts(&found.only(&samples, &[7]));
            let stretch = 100 * STRETCH as i64..200 * STRETCH as i64;
            assert!(
                fast.iter().all(|start| stretch.contains(start)),
                "step {step}"
            );
            assert!(
                fast.len() > STRETCH - 2 * 93,
                "{} with step {step}",
                fast.len()
            );
            let alike = three(61.0, step);
            // 60 beside 80 in two of three windows.
            let ratio = found.ratio();
            assert!((ratio - 60.0 / (220.0 / 3.0)).abs() < 0.01, "{ratio}");
            let found = Fastest::by_pairs(&alike, &[7]);
            assert_eq!(starts(&found.only(&alike, &[7])), starts(&alike));
            assert!((found.ratio() - 1.0).abs() < 0.01);
            let none = Fastest::by_pairs(&alike, &[8]);
            assert!(starts(&none.only(&alike, &[7])).is_empty());
            assert_eq!(none.ratio(), 1.0);
        }
    }

    #[test]
    fn windows_are_as_long_as_steps_require() {
        assert_eq!(window(60.0, 2.0), 8);
        // 20 / 60 / sqrt(12) is 9.6 % for one: 93 make it 1 %.
        assert_eq!(window(60.0, 20.0), 93);
        assert_eq!(window(10.0, 1000.0), 512);
    }
}
