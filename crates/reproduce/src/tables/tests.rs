use super::*;

/// By hand: beyond 1, the triangular density leaves the integral of u Phi(-u/s) over u, s^2/4,
/// on either side: s^2/2 = 0.01 if s is small.
#[test]
fn the_exact_bound() {
    let s2 = largest_scatter(0.99).powi(2);
    assert!((s2 - 0.02).abs() < 1e-4, "{s2}");
}

/// By hand: sqrt(29500/0.04) = 858.78.
#[test]
fn the_longest_activity() {
    let formula = longest_activity().formula.unwrap();
    assert!((formula - 858.778).abs() < 1e-3, "{formula}");
}

#[test]
fn few_digits() {
    assert_eq!(
        [52.0, 0.022_09, 3.919_93, 147.5].map(short),
        ["52", "0.02209", "3.920", "147.5"]
    );
}

fn notes(id: &str) -> Vec<String> {
    let mut found = Reproduction::new("", "");
    required_cycles(&mut found);
    bounds(&mut found, 0.1);
    let items = found
        .items
        .into_iter()
        .filter(|item| item.id.starts_with(id));
    items.map(|item| item.note).collect()
}

/// The notes of the source as it is, each row by hand: the first is right, the others have the
/// first one's precision.
#[test]
fn verdicts_of_the_printed_figures() {
    for note in notes("table-15/(90,0.1)") {
        assert_eq!(note, "agrees, rounded to hundreds");
    }
    assert_eq!(
        notes("table-15/(99,0.01)/200"),
        ["erratum: printed with p = 0.1 (529850), not with p = 0.01"]
    );
    assert_eq!(notes("w/90"), ["agrees"]);
    assert_eq!(
        notes("w/95"),
        ["does not agree: 3.940 printed, 3.920 computed"]
    );
    assert_eq!(notes("duration/(90,0.1)/2.5ms"), ["agrees"]);
    // 10 ms sqrt(0.02209 / 1000).
    assert_eq!(
        notes("+-d/n/standard-deviation"),
        ["does not agree: 0.0479 printed, 0.0470 computed"]
    );
    assert_eq!(
        notes("duration/(95,0.05)/"),
        [
            "agrees; the cycles printed are 4 times too few",
            "does not agree: 145 s printed, 147.5 s computed; the cycles printed are 4 times too few"
        ]
    );
    assert_eq!(
        all_with_printed_precision(),
        "3 of 3 printed rows come out with p = 0.1; that of p = 0.05 is 4 times too small, that of p = 0.01 \
         is 100 times too small. Plan with the formula (undertick slow plan)."
    );
}

/// What is printed wrong has a reason with computed figures; what agrees has none.
#[test]
fn an_erratum_is_one_only_if_the_figures_differ() {
    let note = |figures| misprinted(item("", "", "", figures, ""), 5.0, "why").note;
    assert_eq!(note((430.0, 434.9)), "");
    assert_eq!(note((430.0, 435.1)), "erratum: why");
    // 430^2; 858.778^2 over it; 0.01 of that width; the whole width at 99 %.
    let longest = longest_activity().note;
    for figure in ["184900", "over 4.0;", "w = 8.6", "need 5.16"] {
        assert!(
            longest.replace(' ', "").contains(&figure.replace(' ', "")),
            "{longest}"
        );
    }
    assert!(longest.starts_with("erratum"), "{longest}");
    // 1/2.58^2 - 1/6 = 0.15023 - 0.16667.
    let variance = notes("+-d/n/variance").join("");
    assert!(
        variance.contains("-0.0164, and a variance is never below 0"),
        "{variance}"
    );
}

#[test]
fn wrong_figures_do_not_agree() {
    let computed = [100_060.0, 25_015.0];
    assert_eq!(
        printed_cycles(100_100, 0.05, computed).1,
        "agrees, rounded to hundreds"
    );
    assert!(
        printed_cycles(25_000, 0.05, computed)
            .1
            .starts_with("erratum: printed with p = 0.1 (25015)")
    );
    assert_eq!(
        printed_cycles(25_100, 0.05, computed).1,
        "does not agree with p = 0.05, nor with p = 0.1"
    );
}
