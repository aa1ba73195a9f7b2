//! Verdicts: whether a printed figure follows from what the source says it follows from, and whether
//! a simulated one agrees with it.

use undertick_report::reproduce::{Item, Reproduction, Verdict};
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

/// Gives a figure that is computed by formula its verdict: `otherwise` where it does not agree.
/// `half_digit` is as in [`agrees`].
pub(super) fn by_formula(item: Item, half_digit: f64, otherwise: Verdict) -> Item {
    let figures = item.published.zip(item.formula);
    Item {
        verdict: figures.map(
            |(printed, computed)| match agrees(printed, computed, half_digit) {
                true => Verdict::Agrees,
                false => otherwise,
            },
        ),
        ..item
    }
}

/// Gives every published figure a verdict: those that have none were only measured, or are missing.
pub(super) fn complete(found: &mut Reproduction) {
    let open =
        (found.items.iter_mut()).filter(|item| item.published.is_some() && item.verdict.is_none());
    for item in open {
        item.verdict = Some(match item.measured {
            Some(_) => Verdict::OtherMachine,
            None => Verdict::Missing,
        });
    }
}

/// The verdict on a simulated figure beside a published one that would scatter by `scatter` if it
/// were measured again: whether the interval, widened by that, holds the published one.
pub(super) fn beside(
    published: f64,
    simulated: &Estimate,
    scatter: f64,
    unit: &str,
) -> (Verdict, String) {
    let scatters = format!("the published one scatters by {scatter:.2}{unit}");
    match holds(published, simulated, scatter) {
        true => (Verdict::Agrees, format!("agrees: {scatters}")),
        false => (
            Verdict::Differs,
            format!(
                "does not agree: {:+.2}{unit} from the published one, and {scatters}",
                simulated.value - published
            ),
        ),
    }
}

/// Share by which a simulated figure may differ from one that is published without a scatter, beyond
/// its own interval.
pub(super) const NEAR: f64 = 0.05;

/// The verdict on a simulated figure beside one that is published without a scatter.
pub(super) fn near(published: f64, simulated: &Estimate) -> (Verdict, String) {
    let off = 100.0 * (simulated.value / published - 1.0);
    match holds(published, simulated, NEAR * published) {
        true => (Verdict::Agrees, format!("agrees: {off:+.1} %")),
        false => (
            Verdict::Differs,
            format!("does not agree within {:.0} %: {off:+.1} %", 100.0 * NEAR),
        ),
    }
}

/// Whether the interval of a simulated figure, widened by `by`, holds the published one.
fn holds(published: f64, simulated: &Estimate, by: f64) -> bool {
    let Interval { lo, hi } = simulated.interval;
    let (lo, hi) = (
        lo.unwrap_or(simulated.value).min(simulated.value) - by,
        hi.unwrap_or(simulated.value).max(simulated.value) + by,
    );
    lo <= published && published <= hi
}

#[cfg(test)]
mod tests {
    use undertick_units::{Estimate, Interval};

    use super::{Verdict, beside, complete, near, verdict};
    use undertick_report::reproduce::{Item, Reproduction};

    #[test]
    fn a_simulated_figure_agrees_within_the_scatter_of_the_published_one() {
        let of = |value, lo, hi| Estimate {
            interval: Interval { lo, hi },
            ..crate::compared::bare(value, "1", "of the test", 1)
        };
        // From 1.10 to 1.30, widened by 0.10: from 1.00 to 1.40.
        let said = |published| beside(published, &of(1.2, Some(1.1), Some(1.3)), 0.1, "").1;
        assert_eq!(said(1.01), "agrees: the published one scatters by 0.10");
        assert_eq!(said(1.39), "agrees: the published one scatters by 0.10");
        assert_eq!(
            said(0.99),
            "does not agree: +0.21 from the published one, and the published one scatters by 0.10"
        );
        assert!(said(1.41).starts_with("does not agree: -0.21"));
        let judged = |published| beside(published, &of(1.2, None, None), 0.1, "").0;
        assert_eq!(
            [1.29, 1.31].map(judged),
            [Verdict::Agrees, Verdict::Differs]
        );
        // 5 % of 100 beyond the interval from 103 to 109: from 98 to 114; of 120, from 97 to 115.
        let (verdict, said) = near(100.0, &of(106.0, Some(103.0), Some(109.0)));
        assert_eq!(
            (verdict, said.as_str()),
            (Verdict::Agrees, "agrees: +6.0 %")
        );
        let (verdict, said) = near(120.0, &of(106.0, Some(103.0), Some(109.0)));
        assert_eq!(verdict, Verdict::Differs);
        assert_eq!(said, "does not agree within 5 %: -11.7 %");
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

    #[test]
    fn every_published_figure_gets_a_verdict() {
        let item = |published, measured, verdict| Item {
            published,
            measured,
            verdict,
            ..Item::default()
        };
        let measured = || Some(crate::compared::bare(1.0, "1", "of the test", 1));
        let mut found = Reproduction::new("", "");
        found.items = vec![
            item(Some(1.0), measured(), None),
            item(Some(1.0), None, None),
            item(None, measured(), None),
            item(Some(1.0), measured(), Some(Verdict::Erratum)),
        ];
        complete(&mut found);
        let verdicts: Vec<Option<Verdict>> = found.items.iter().map(|i| i.verdict).collect();
        assert_eq!(
            verdicts,
            [
                Some(Verdict::OtherMachine),
                Some(Verdict::Missing),
                None,
                Some(Verdict::Erratum)
            ]
        );
    }
}
