//! Invented figures, whose verdicts are known.

use undertick_report::reproduce::{Item, Reproduction, Verdict};
use undertick_units::{Estimate, Interval};

use super::{InventoryLine, Printed, conclude, matches, places};
use crate::compared::bare;

fn figure(id: &str, verdict: Option<Verdict>) -> Item {
    Item {
        id: id.to_owned(),
        quantity: format!("the {id}"),
        published: verdict.map(|_| 1.0),
        verdict,
        ..Item::default()
    }
}

fn simulated(id: &str, value: f64) -> Item {
    Item {
        simulated: Some(Estimate {
            interval: Interval { lo: None, hi: None },
            ..bare(value, "us", "of the test", 1)
        }),
        ..figure(id, None)
    }
}

fn measured(id: &str, ratio: f64) -> Item {
    Item {
        published: Some(1.0),
        measured: Some(bare(1.0 / ratio, "us", "of the test", 1)),
        ratio: Some(ratio),
        ..figure(id, None)
    }
}

/// The verdict on a table or figure of a source with these figures.
fn verdict(source: &str, name: &str, items: Vec<Item>) -> String {
    let mut found = Reproduction {
        items,
        ..Reproduction::new(source, "")
    };
    conclude(&mut found);
    let of = found.tables_and_figures.iter().find(|one| one.name == name);
    of.unwrap_or_else(|| panic!("no {name}")).verdict.clone()
}

#[test]
fn a_star_stands_for_any_text() {
    for (pattern, id, is) in [
        ("table-15/*", "table-15/(90,0.1)/20", true),
        ("table-15/*", "table-17/(1,1)/mean", false),
        ("table-17/*/mean", "table-17/(1,2)/mean", true),
        ("table-17/*/mean", "table-17/(1,2)/true-mean", false),
        ("here/zero/*/pairs/*", "here/zero/none/pairs/k", true),
        ("here/zero/*/pairs/*", "here/zero/none/sampler/k", false),
        ("trams/loop", "trams/loop", true),
        ("trams/loop", "trams/loops", false),
    ] {
        assert_eq!(matches(pattern, id), is, "{pattern} {id}");
    }
}

#[test]
fn verdicts_by_hand() {
    let table_15 = |verdicts: &[Verdict]| {
        let items = (verdicts.iter().enumerate())
            .map(|(i, v)| Item {
                formula: Some(1.31),
                ..figure(&format!("table-15/{i}"), Some(*v))
            })
            .collect();
        verdict("slow-clock", "Table 15", items)
    };
    use Verdict::{Agrees, Differs, Erratum};
    assert_eq!(table_15(&[Agrees, Agrees]), "reproduced");
    assert_eq!(
        table_15(&[Agrees, Erratum, Erratum]),
        "reproduced; 2 printed wrong"
    );
    assert_eq!(
        table_15(&[Agrees, Differs, Erratum]),
        "1 of 3 reproduced, one differs: the table-15/1 (1.31 for 1.00); 1 printed wrong"
    );
    assert_eq!(
        table_15(&[Differs; 5]),
        "not reproduced: the table-15/0 (1.31 for 1.00); the table-15/1 (1.31 for 1.00); the table-15/2 (1.31 for \
         1.00) and 2 more"
    );
    assert_eq!(table_15(&[]), "not reproduced: the run ended before it");
    let fork = |items| verdict("trams", "Table 4", items);
    assert_eq!(
        fork(vec![
            measured("trams/table-4/33/max", 1200.0),
            measured("trams/table-4/33/min", 9.0)
        ]),
        "measured here, 9.0 to 1200 times faster"
    );
    let missing = Item {
        note: "24 samples were published; not measured: no fork".to_owned(),
        published: Some(1.0),
        ..figure("trams/table-4/33/max", None)
    };
    assert_eq!(fork(vec![missing]), "1 of 1 not measured: no fork");
    assert_eq!(
        verdict("slow-clock", "Figure 2", Vec::new()),
        "a drawing: there is no figure to reproduce"
    );
}

#[test]
fn shapes_by_hand() {
    let of = |name: &str, items: &[(&str, f64)]| {
        let items = items.iter().map(|(id, value)| simulated(id, *value));
        verdict("cmstar", name, items.collect())
    };
    let four = [
        ("figure-4/1/mean", 310.0),
        ("figure-4/30/mean", 900.0),
        ("figure-4/1/sd", 10.0),
    ];
    let with = |sd| [&four[..], &[("figure-4/30/sd", sd)]].concat();
    assert_eq!(
        of("Figure 4", &with(200.0)),
        "reproduced; the mean grows: 310 to 900 us; the deviation grows: 10 to 200 us"
    );
    assert_eq!(
        of("Figure 4", &with(10.0)),
        "reproduced but for its shape; the deviation does not grow: 10 to 10 us; the mean grows: 310 to 900 us"
    );
    let six = |peak: &str| {
        let largest = format!("figure-6/{peak}/sd");
        let items = [
            ("figure-6/1/sd", 10.0),
            (largest.as_str(), 90.0),
            ("figure-6/30/sd", 100.0),
        ];
        of("Figure 6", &items)
    };
    assert!(
        six("12").contains("largest at 12 Cms, published between 16 and 20"),
        "{}",
        six("12")
    );
    assert!(six("12").starts_with("reproduced but for its shape"));
    assert_eq!(
        six("16"),
        "reproduced; the deviation is largest at 16 Cms, published between 16 and 20"
    );
    assert_eq!(
        of(
            "Figure 7",
            &[("figure-7/1/mean", 348.0), ("figure-7/30/mean", 400.0)]
        ),
        "reproduced but for its shape; mean, 1 and 30 Cms, not alike: 348 and 400 us"
    );
}

/// The tables and figures that the sources number, each once.
#[test]
fn none_is_left_out() {
    let numbered = |source: &str, kind: &str| -> Vec<String> {
        let of = |name: &str| {
            let rest = name.strip_prefix(kind)?.trim_start_matches("s ");
            Some(rest.trim().to_owned())
        };
        places(source).filter_map(|place| of(place.name)).collect()
    };
    let all: Vec<String> = (1..=17).map(|n| n.to_string()).collect();
    assert_eq!(numbered("cmstar", "Figure"), all);
    assert_eq!(numbered("slow-clock", "Figure"), ["2", "12", "16"]);
    assert_eq!(numbered("slow-clock", "Table"), ["15", "17a", "17b"]);
    assert_eq!(
        numbered("trams", "Figure"),
        ["1", "2 to 4", "5 to 7", "8 to 10", "11 to 13"]
    );
    assert_eq!(
        numbered("trams", "Table"),
        ["1", "2a", "2b", "3a", "3b", "4", "5a", "5b"]
    );
    assert_eq!(numbered("interference", "Figure"), ["one", "two"]);
    let groups: Vec<String> = (1..=9).map(|n| n.to_string()).collect();
    assert_eq!(numbered("traffic", "Group"), groups);
}

/// The lines of `printed.txt`, an independent reading of the sources: of which table or figure, on which
/// page, and the figures there.
struct PrintedLine {
    of: [&'static str; 2],
    page: u32,
    /// Each with what it may be off by: a derived one is not exact.
    figures: Vec<(f64, f64)>,
}

fn printed_lines() -> impl Iterator<Item = PrintedLine> {
    let lines = include_str!("printed.txt").lines();
    lines.filter(|line| !line.starts_with('#')).map(|line| {
        let mut fields = line.split(" | ");
        let mut next = || fields.next().unwrap_or_else(|| panic!("{line}"));
        let (of, page, figures) = ([next(), next()], next(), next());
        let remark = fields.next().unwrap_or_default();
        let factor = (remark.strip_prefix("times "))
            .and_then(|rest| rest.split(':').next())
            .map_or(1.0, |factor| {
                factor.parse().unwrap_or_else(|_| panic!("{line}"))
            });
        let number = |text: &str| -> f64 {
            text.replace(',', "")
                .parse()
                .unwrap_or_else(|_| panic!("{text} in {line}"))
        };
        let figure = |text: &str| match text.split_once(':') {
            Some((_, value)) => (number(value), 1e-5 * number(value)),
            None => match text.split_once("..") {
                Some((lo, hi)) => (factor * f64::midpoint(number(lo), number(hi)), 0.0),
                None => (factor * number(text), 0.0),
            },
        };
        PrintedLine {
            of,
            page: page.parse().unwrap_or_else(|_| panic!("{line}")),
            figures: figures.split_whitespace().map(figure).collect(),
        }
    })
}

/// Whether that figure, or a range with that middle, is printed there.
fn is_printed(place: &InventoryLine, value: f64) -> bool {
    (printed_lines().filter(|line| line.of == [place.source, place.name])).any(|line| {
        (line.figures.iter())
            .any(|(printed, within)| (value - printed).abs() <= within.max(1e-9 * printed.abs()))
    })
}

/// Each line is of a table or figure of the list, on a page that a document of that length has.
#[test]
fn what_is_printed_has_a_place() {
    let pages = [
        ("cmstar", 40),
        ("slow-clock", 25),
        ("trams", 20),
        ("interference", 8),
        ("traffic", 5),
    ];
    let mut lines = 0;
    for line in printed_lines() {
        let [source, name] = line.of;
        assert!(
            places(source).any(|place| place.name == name),
            "{source} {name}"
        );
        let (_, last) = pages
            .iter()
            .find(|(of, _)| *of == source)
            .expect("a source");
        assert!(
            (1..=*last).contains(&line.page),
            "{source} {name}: page {}",
            line.page
        );
        lines += 1;
    }
    assert!(lines > 100, "{lines}");
    // By hand, from the sources: a wakeup of 877 to 911 us, and what it had been taken for.
    let wakeups = places("traffic")
        .find(|place| place.name == "Group 1")
        .expect("listed");
    assert!(is_printed(&wakeups, 894.0) && !is_printed(&wakeups, 895.0));
}

/// Every published figure is of a table or figure, and each of these has figures.
pub(crate) fn is_whole(found: &Reproduction) {
    let mut found = found.clone();
    conclude(&mut found);
    for item in found.items.iter().filter(|item| item.published.is_some()) {
        assert!(
            places(&found.source).any(|place| place.has(&item.id)),
            "{}",
            item.id
        );
        assert!(item.verdict.is_some(), "{}", item.id);
        let value = item.published.unwrap_or_default();
        let has = |place: &InventoryLine| place.has(&item.id) && is_printed(place, value);
        assert!(
            places(&found.source).any(|place| has(&place)),
            "{}: {value} is not printed where the list says",
            item.id
        );
        let computed = item.formula.is_some() || item.simulated.is_some();
        assert!(
            !computed || item.verdict != Some(Verdict::OtherMachine),
            "{}: no tolerance",
            item.id
        );
    }
    for (listed, place) in found.tables_and_figures.iter().zip(places(&found.source)) {
        assert!(
            place.printed == Printed::Drawing || !listed.items.is_empty(),
            "{listed:?}"
        );
    }
}

#[test]
fn every_published_figure_is_listed() {
    let empty = crate::invented::report(Vec::new(), Vec::new());
    is_whole(&crate::interference::published(0.95));
    is_whole(&crate::trams::reproduction(&empty, &empty, &[], &empty));
}
