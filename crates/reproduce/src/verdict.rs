//! Verdicts: whether a printed figure follows from what the source says it follows from, and whether
//! a simulated one agrees with it.

use undertick_units::{Estimate, Interval};

/// Whether a printed figure is the computed one, within what it was rounded to. `half_digit` is half
/// of the last digit that is printed, or what else the print may be off by.
pub(super) fn agrees(printed: f64, computed: f64, half_digit: f64) -> bool {
    // Half a digit of a decimal fraction is no binary fraction.
    (printed - computed).abs() <= half_digit * (1.0 + 1e-9)
}

/// The verdict in words; `shown` writes a figure.
pub(super) fn verdict(
    (printed, computed): (f64, f64),
    half_digit: f64,
    shown: impl Fn(f64) -> String,
) -> String {
    match agrees(printed, computed, half_digit) {
        true => "agrees".to_owned(),
        false => format!(
            "does not agree: {} printed, {} computed",
            shown(printed),
            shown(computed)
        ),
    }
}

/// The verdict on a simulated figure beside a published one that would scatter by `scatter` if it
/// were measured again: whether the interval, widened by that, holds the published one.
pub(super) fn beside(published: f64, simulated: &Estimate, scatter: f64, unit: &str) -> String {
    let Interval { lo, hi } = simulated.interval;
    let (lo, hi) = (
        lo.unwrap_or(simulated.value).min(simulated.value) - scatter,
        hi.unwrap_or(simulated.value).max(simulated.value) + scatter,
    );
    let scatters = format!("the published one scatters by {scatter:.2}{unit}");
    match lo <= published && published <= hi {
        true => format!("agrees: {scatters}"),
        false => format!(
            "does not agree: {:+.2}{unit} from the published one, and {scatters}",
            simulated.value - published
        ),
    }
}

#[cfg(test)]
mod tests {
    use undertick_units::{Estimate, Interval};

    use super::{beside, verdict};

    #[test]
    fn a_simulated_figure_agrees_within_the_scatter_of_the_published_one() {
        let of = |value, lo, hi| Estimate {
            interval: Interval { lo, hi },
            ..crate::compared::bare(value, "1", "of the test", 1)
        };
        // From 1.10 to 1.30, widened by 0.10: from 1.00 to 1.40.
        let said = |published| beside(published, &of(1.2, Some(1.1), Some(1.3)), 0.1, "");
        assert_eq!(said(1.01), "agrees: the published one scatters by 0.10");
        assert_eq!(said(1.39), "agrees: the published one scatters by 0.10");
        assert_eq!(
            said(0.99),
            "does not agree: +0.21 from the published one, and the published one scatters by 0.10"
        );
        assert!(said(1.41).starts_with("does not agree: -0.21"));
        assert!(beside(1.29, &of(1.2, None, None), 0.1, "").starts_with("agrees"));
        assert!(beside(1.31, &of(1.2, None, None), 0.1, "").starts_with("does not"));
    }

    #[test]
    fn a_figure_agrees_within_half_of_its_last_digit() {
        let of = |printed, computed| verdict((printed, computed), 0.05, |x| format!("{x:.2}"));
        for computed in [1.25, 1.3, 1.35] {
            assert_eq!(of(1.3, computed), "agrees", "{computed}");
        }
        assert_eq!(of(1.3, 1.36), "does not agree: 1.30 printed, 1.36 computed");
        assert_eq!(
            of(1.3, f64::NAN),
            "does not agree: 1.30 printed, NaN computed"
        );
    }
}
