//! Elapsed times, and the pairs of readings by which they are corrected.

use undertick_cmstar::Reading;
use undertick_cmstar::load::Repetition;
use undertick_estimate::compensation::Paired;

/// Ticks of the clock between two readings; `None` where the routine was too slow.
fn ticks(from: &Reading, to: &Reading) -> Option<f64> {
    Some(to.ticks?.wrapping_sub(from.ticks?).cast_signed() as f64)
}

/// Elapsed time read between two readings, us; `None` where the routine was too slow.
pub(super) fn elapsed_us([first, second]: &[Reading; 2], tick_us: f64) -> Option<f64> {
    Some(ticks(first, second)? * tick_us)
}

/// True elapsed time, us.
pub(super) fn true_us(pair: &[Reading; 2]) -> f64 {
    pair[1].sampled.ns_since(pair[0].sampled) as f64 / 1e3
}

/// A repetition of a zero test, ticks.
pub(super) fn of_repetition(repetition: &Repetition) -> Option<Paired> {
    let of = |[first, second]: &[Reading; 2]| ticks(first, second);
    Some(Paired {
        t1: of(&repetition.before)?,
        tm: of(&repetition.measured)?,
        t4: of(&repetition.after)?,
    })
}

/// Method I: four readings of one process, ticks.
pub(super) fn own([r0, r1, r2, r3]: &[Reading; 4]) -> Option<Paired> {
    Some(Paired {
        t1: ticks(r0, r1)?,
        tm: ticks(r1, r2)?,
        t4: ticks(r2, r3)?,
    })
}

/// Method II: an elapsed time with the clock process's pairs nearest to its ends, ticks.
pub(super) fn of_clock_process(
    from: &Reading,
    to: &Reading,
    samples: &[[Reading; 2]],
) -> Option<Paired> {
    // Nearest by what the clock shows, because the truth is not available to a measurement.
    let nearest = |to: &Reading| {
        let at = to.ticks?;
        let after = samples.partition_point(|[first, _]| first.ticks < Some(at));
        let candidates = samples.get(after.saturating_sub(1)..(after + 1).min(samples.len()))?;
        let distance = |pair: &&[Reading; 2]| pair[0].ticks.map_or(u64::MAX, |t| t.abs_diff(at));
        let [first, second] = candidates.iter().min_by_key(distance)?;
        ticks(first, second)
    };
    Some(Paired {
        t1: nearest(from)?,
        tm: ticks(from, to)?,
        t4: nearest(to)?,
    })
}

pub(super) fn standard_deviation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt()
}
