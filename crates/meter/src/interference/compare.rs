//! Compares two runs of the meter to value a change between them.

use undertick_report::interference::{Compared, Interference};
use undertick_units::{Estimate, Interval};

/// Compares a run with an earlier one.
///
/// The runs are independent, so the half-widths of their intervals add as squares. The speed is the
/// clean rate less the part that was lost: the memo of 1971 also values the interlace by what a
/// program gains overall.
#[must_use]
pub fn against(now: &Interference, then: &Interference, name: &str) -> Compared {
    let same = now.probe.mix == then.probe.mix;
    let rates = || {
        Some((
            now.probe.clean_rate.as_ref()?,
            then.probe.clean_rate.as_ref()?,
        ))
    };
    let clean_rate_ratio = rates().map(|(now, then)| ratio(now, then));
    let speed_ratio =
        rates().map(|(a, b)| ratio(&speed(a, &now.mean_loss), &speed(b, &then.mean_loss)));
    let difference = difference(&now.mean_loss, &then.mean_loss);
    let verdict = match &speed_ratio {
        _ if !same => format!(
            "other mixes ({} now, {} then): only the losses compare",
            now.probe.mix, then.probe.mix
        ),
        Some(ratio) => in_words(ratio),
        None => "no clean rate to compare".to_owned(),
    };
    Compared {
        with: name.to_owned(),
        mean_loss: then.mean_loss.clone(),
        difference,
        clean_rate_ratio: clean_rate_ratio.filter(|_| same),
        speed_ratio: speed_ratio.filter(|_| same),
        verdict,
    }
}

fn in_words(ratio: &Estimate) -> String {
    let percent = |x: f64| 100.0 * (x - 1.0).abs();
    match (ratio.interval.lo, ratio.interval.hi) {
        (Some(lo), Some(hi)) if lo > 1.0 => format!(
            "the mix is {:.1} % faster now, losses included ({:.1} to {:.1} %)",
            percent(ratio.value),
            percent(lo),
            percent(hi)
        ),
        (Some(lo), Some(hi)) if hi < 1.0 => format!(
            "the mix is {:.1} % slower now, losses included ({:.1} to {:.1} %)",
            percent(ratio.value),
            percent(hi),
            percent(lo)
        ),
        (Some(lo), Some(hi)) => format!(
            "no difference in speed larger than {:.1} % is possible at this level",
            percent(lo).max(percent(hi))
        ),
        _ => "too few bursts to tell a difference".to_owned(),
    }
}

/// Half the width of the interval, if there is one.
fn half(estimate: &Estimate) -> Option<f64> {
    estimate.interval.half_width()
}

fn made(value: f64, half: Option<f64>, of: [&Estimate; 2], method: &str) -> Estimate {
    Estimate {
        value,
        interval: Interval {
            lo: half.map(|h| value - h),
            hi: half.map(|h| value + h),
        },
        level: of[0].level.min(of[1].level),
        unit: "1".into(),
        method: method.into(),
        n: of[0].n.min(of[1].n),
        n_effective: of[0].n_effective.min(of[1].n_effective),
        notes: Vec::new(),
    }
}

fn difference(a: &Estimate, b: &Estimate) -> Estimate {
    let both = half(a).zip(half(b)).map(|(a, b)| a.hypot(b));
    made(
        a.value - b.value,
        both,
        [a, b],
        "difference of independent runs",
    )
}

fn ratio(a: &Estimate, b: &Estimate) -> Estimate {
    let value = a.value / b.value;
    let relative = |e: &Estimate| Some(half(e)? / e.value);
    let both = relative(a)
        .zip(relative(b))
        .map(|(a, b)| value * a.hypot(b));
    made(value, both, [a, b], "ratio of independent runs")
}

/// The rate that remains after a loss.
fn speed(rate: &Estimate, loss: &Estimate) -> Estimate {
    let kept = 1.0 - loss.value;
    let of_rate = half(rate).map(|h| h * kept);
    let of_loss = half(loss).map(|h| h * rate.value);
    let both = of_rate.zip(of_loss).map(|(a, b)| a.hypot(b));
    let mut speed = made(
        rate.value * kept,
        both,
        [rate, loss],
        "clean rate less what was lost",
    );
    speed.unit.clone_from(&rate.unit);
    speed
}

#[cfg(test)]
mod tests;
