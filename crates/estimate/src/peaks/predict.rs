//! Prediction of a disturber's cost at another activity.

use undertick_units::{Estimate, Interval};

/// The mean loss where a disturber is active for `activity` of the time, 0 to 1.
///
/// While it is active, work proceeds at 1 / `slowdown` of the clean rate, and otherwise at the
/// clean rate. So the mean rate is 1 - activity + activity / slowdown, and the loss `activity` (1 -
/// 1 / `slowdown`). The bounds of the slow-down give the bounds of the loss. `share`, the share of
/// the *time* at which the disturber was seen, cancels; it says how far the prediction
/// extrapolates.
///
/// The published drum: seen at 0.1, a slow-down of 0.352 / 0.328 = 1.073, predicted for
/// 0.3: 0.3 (1 - 0.328 / 0.352) = 0.0205, published as 2 %.
///
/// Where a disturber slows only part of the time that it is active (it meets the probe in one of
/// two memories), its activity and the share seen differ. Then the share seen grows as the activity
/// does: see [`predict_times`].
#[must_use]
pub fn predict(share: &Estimate, slowdown: &Estimate, activity: f64) -> Estimate {
    let activity = match activity.is_nan() {
        true => f64::NAN,
        false => activity.clamp(0.0, 1.0),
    };
    let lost = |slowdown: f64| activity * (1.0 - 1.0 / slowdown);
    let bound = |slowdown: Option<f64>| slowdown.filter(|s| *s > 0.0).map(lost);
    let mut notes = vec!["the slow-down is taken to be the same at the other activity".into()];
    if share.value > 0.0 {
        notes.push(format!(
            "seen at {:.3} of the time, predicted at {:.2} times as much",
            share.value,
            activity / share.value
        ));
    }
    Estimate {
        value: lost(slowdown.value),
        interval: Interval {
            lo: bound(slowdown.interval.lo),
            hi: bound(slowdown.interval.hi),
        },
        level: slowdown.level,
        unit: "1".into(),
        method: "activity (1 - 1 / slow-down)".into(),
        n: slowdown.n,
        n_effective: slowdown.n_effective,
        notes,
    }
}

/// The mean loss where a disturber is active `times` as much as when it was seen for
/// `share` of the time: `times` `share` (1 - 1 / `slowdown`), at most 1 - 1 / `slowdown`.
///
/// The errors of share and slow-down are independent; each bound moves by the root of
/// the sum of squares of what the bounds of either do.
///
/// The published drum without interlace: seen for 0.1 while it was active for 0.18, at
/// full load active for 0.3: `times` is 0.3 / 0.18.
#[must_use]
pub fn predict_times(share: &Estimate, slowdown: &Estimate, times: f64) -> Estimate {
    let lost = |share: f64, slowdown: f64| (times * share).clamp(0.0, 1.0) * (1.0 - 1.0 / slowdown);
    let value = lost(share.value, slowdown.value);
    let moved = |share_bound: Option<f64>, slowdown_bound: Option<f64>| {
        let by_share = lost(share_bound?, slowdown.value) - value;
        let by_slowdown = lost(share.value, slowdown_bound.filter(|s| *s > 0.0)?) - value;
        Some(by_share.hypot(by_slowdown))
    };
    Estimate {
        value,
        interval: Interval {
            lo: moved(share.interval.lo, slowdown.interval.lo).map(|by| value - by),
            hi: moved(share.interval.hi, slowdown.interval.hi).map(|by| value + by),
        },
        level: slowdown.level,
        unit: "1".into(),
        method: "times share (1 - 1 / slow-down)".into(),
        n: share.n,
        n_effective: share.n_effective.min(slowdown.n_effective),
        notes: vec!["the slow-down is taken to be the same at the other activity".into()],
    }
}
