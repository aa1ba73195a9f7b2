//! Verdicts: whether a printed figure follows from what the source says it follows from.

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

#[cfg(test)]
mod tests {
    use super::verdict;

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
