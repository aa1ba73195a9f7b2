//! The page of a comparison, with hostile names in every place.

use undertick_report::compare::{
    Comparison, KIND, PathChange, PathSide, Row, SCHEMA_VERSION, Source, Summary, Verdict,
};
use undertick_report::html::compare::render;
use undertick_report::survey::{Better, Host};

use super::invented::{NASTY_NAMES, estimate};
use super::page::{assert_harmless, keep};

fn side(total_ns: f64) -> Option<PathSide> {
    Some(PathSide {
        calls: 10.0,
        total_ns: Some(total_ns),
        self_ns: Some(total_ns / 4.0),
        call_ns: Some(total_ns / 10.0),
    })
}

/// Four outermost paths of twelve each, with every verdict.
fn paths() -> Vec<PathChange> {
    let mut paths = Vec::new();
    for outer in 0..4 {
        let parent = paths.len() as u32;
        for (inner, name) in NASTY_NAMES.iter().enumerate() {
            let verdicts = [
                Verdict::Slower,
                Verdict::Faster,
                Verdict::Alike,
                Verdict::CannotTell,
            ];
            let (a, b) = match (inner, inner % 6) {
                (0, _) => (side(12_000.0), side(13_000.0)),
                (_, 4) => (side(900.0), None),
                (_, 5) => (None, side(900.0)),
                _ => (side(1000.0), side(1000.0 + 50.0 * inner as f64)),
            };
            let is_in_both = a.is_some() && b.is_some();
            paths.push(PathChange {
                name: format!("{name}{outer}"),
                parent: (inner > 0).then_some(parent),
                depth: u32::from(inner > 0),
                ratio: is_in_both
                    .then(|| estimate(1.0 + 0.1 * inner as f64, Some(1.0), None, "", 5)),
                adjusted_p: is_in_both.then_some(0.01),
                verdict: match is_in_both {
                    true => verdicts[inner % 4],
                    false => Verdict::CannotTell,
                },
                words: format!("words of {name}"),
                a,
                b,
            });
        }
    }
    paths
}

fn comparison() -> Comparison {
    let source = |file: &str| Source {
        file: file.to_owned(),
        kind: "report".to_owned(),
        host: Host {
            name: NASTY_NAMES[0].to_owned(),
            ..Host::default()
        },
        begun_unix_s: 0.0,
        runs: Some(5),
    };
    let row = |name: &str, verdict| Row {
        id: name.to_owned(),
        group: NASTY_NAMES[1].to_owned(),
        name: name.to_owned(),
        better: Better::Lower,
        a: estimate(1000.0, Some(990.0), Some(1010.0), "", 5),
        b: estimate(1200.0, Some(1190.0), Some(1210.0), "", 5),
        ratio: Some(estimate(1.2, Some(1.19), Some(1.21), "", 5)),
        difference: estimate(200.0, Some(180.0), Some(220.0), "", 5),
        p: Some(0.001),
        adjusted_p: Some(0.002),
        verdict,
        bound: None,
        runs_wanted: None,
        gate_p: None,
        words: format!("words of {name}"),
    };
    Comparison {
        schema_version: SCHEMA_VERSION,
        kind: KIND.to_owned(),
        a: source(NASTY_NAMES[2]),
        b: source(NASTY_NAMES[3]),
        confidence: 0.95,
        false_share: 0.05,
        paired: false,
        within: None,
        gate: None,
        sequential: None,
        summary: Summary {
            compared: 2,
            differ: 1,
            ..Summary::default()
        },
        rows: vec![
            row(NASTY_NAMES[4], Verdict::Slower),
            row(NASTY_NAMES[6], Verdict::CannotTell),
        ],
        paths: paths(),
        only_in_a: vec![NASTY_NAMES[0].to_owned()],
        only_in_b: vec![NASTY_NAMES[8].to_owned()],
        warnings: Vec::new(),
    }
}

#[test]
fn the_page_of_a_comparison_is_harmless_and_whole() {
    let found = comparison();
    let page = render(&found);
    keep("changes.html", &page);
    assert_harmless(&page);
    let json = page
        .split("<script type=\"application/json\" id=\"comparison\">")
        .nth(1)
        .and_then(|rest| rest.split("</script>").next())
        .expect("the document");
    assert_eq!(serde_json::from_str::<Comparison>(json).unwrap(), found);
    // Each path has a row; differences stand out.
    let tree = page.split("<section id=\"tree\">").nth(1).unwrap();
    let tree = tree.split("</section>").next().unwrap();
    assert_eq!(tree.matches("<tr>").count(), found.paths.len() + 1);
    assert!(page.contains("id=\"differ\"") && page.contains("id=\"rest\""));
    assert!(!page.contains("://"), "the page loads nothing");
}

#[test]
fn without_a_call_tree_there_is_no_section_for_it() {
    let found = Comparison {
        paths: Vec::new(),
        ..comparison()
    };
    let page = render(&found);
    assert!(!page.contains("id=\"tree\"") && !page.contains("href=\"#tree\""));
}
