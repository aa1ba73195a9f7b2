//! The terminal report: it fits, is complete, and is harmless.

use undertick_document::Reads;
use undertick_report::terminal::{Options, histogram, render};
use unicode_width::UnicodeWidthStr;

use super::invented;

fn assert_fits(text: &str, columns: usize) {
    for line in text.lines() {
        assert!(line.width() <= columns, "{} columns: {line}", line.width());
    }
}

#[test]
fn every_report_fits_its_columns() {
    for columns in [60, 80, 100, 137] {
        let options = Options {
            columns,
            histograms: 400,
            frequencies: 400,
        };
        for report in [
            invented::one(),
            invented::six(),
            invented::nasty(),
            invented::many(300),
        ] {
            assert_fits(&render(&report, options), columns);
        }
    }
    assert_eq!(Options::default().columns, 100);
}

#[test]
fn no_control_character_reaches_the_terminal() {
    let nasty = render(&invented::nasty(), Options::default());
    assert!(nasty.contains("\\u{1b}[31mred"));
    let throughout = invented::hostile_throughout(&invented::six());
    let throughout = render(&throughout, Options::default());
    assert_fits(&throughout, 100);
    for c in nasty
        .chars()
        .chain(throughout.chars())
        .filter(|c| *c != '\n')
    {
        assert!(!c.is_control(), "{c:?}");
        assert!(
            !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'),
            "{c:?}"
        );
    }
}

#[test]
fn every_interval_is_in_the_table() {
    let report = invented::many(300);
    let text = render(&report, Options::default());
    for interval in &report.intervals {
        assert!(text.contains(&interval.name), "{}", interval.name);
    }
    assert!(text.contains("Histograms of 294 more intervals"));
}

#[test]
fn dropping_is_shown_with_its_cause_and_effect() {
    let text = render(&invented::six(), Options::default());
    let mut rows = text
        .lines()
        .skip_while(|line| !line.starts_with("before and after"))
        .skip_while(|line| !line.starts_with("commit"));
    let (before, after) = (rows.next().unwrap(), rows.next().unwrap());
    assert!(
        before.contains("descheduled") && before.contains(" 8 "),
        "{before}"
    );
    assert!(before.contains("1.245 ms"), "{before}");
    assert!(
        after.contains("0.40 %") && after.contains("-> 1.240 ms"),
        "{after}"
    );
}

#[test]
fn losses_and_warnings_are_shown() {
    let text = render(&invented::six(), Options::default());
    println!("{text}");
    assert!(text.contains("1 244 lost (1 244 dropped)"), "{text}");
    assert!(text.contains("! 1 244 events were lost"));
    assert!(text.contains("* bind: the median is 8 steps"));
    assert!(text.contains("* step: mean: successive samples are correlated"));
    assert!(text.contains("slowed the program by 2.1 %"));
    let slowed = text
        .lines()
        .skip_while(|line| !line.starts_with("commit: slowed by"));
    let slowed: Vec<&str> = slowed.take(4).map(str::trim).collect();
    let wanted = "commit: slowed by 120 ns [90, 160] (2.1 % [1.5, 2.8]) by 4.0 points inside, 30 ns [22, 40] a point; \
         12 000 samples with them on, 12 345 with them off, 4 000 pairs of halves; nothing subtracted";
    assert!(slowed.join(" ").starts_with(wanted), "{slowed:?}");
    let mut unordered = invented::six();
    for interval in &mut unordered.intervals {
        interval.reads = Reads::Unordered;
        interval.compensation.method = "in place".into();
    }
    let text = render(&unordered, Options::default());
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted = "4 000 pairs of halves; subtracted; its edges are not ordered, so some nanoseconds of points \
                  may show outside it: use begin and end";
    assert!(words.contains(wanted), "{text}");
    let quiet = render(&invented::one(), Options::default());
    assert!(quiet.contains("none lost") && !quiet.contains("Warnings"));
}

#[test]
fn a_histogram_of_nothing_is_not_drawn() {
    assert_eq!(histogram(&invented::empty_interval("gone"), 100), None);
    assert!(histogram(&invented::interval("work", 400.0, 1_000), 100).is_some());
}

/// The report of one interval is short enough for a new user.
#[test]
fn the_whole_of_a_small_report() {
    let options = Options {
        histograms: 0,
        ..Options::default()
    };
    let text = render(&invented::one(), options);
    println!("{text}");
    assert_eq!(text, include_str!("one.txt"));
}

#[test]
fn the_share_of_an_enclosing_interval_stands_with_its_interval() {
    let text = render(&invented::six(), Options::default());
    let row = text
        .lines()
        .find(|line| line.starts_with("prepare") && line.contains("transaction"))
        .unwrap_or_else(|| panic!("no share of prepare in:\n{text}"));
    // 0.124 from 2 % below, 0.1215, to 2.6 % above, 0.1272; bounds are rounded outwards.
    assert!(
        row.contains("12.4 %") && row.contains("[12.1, 12.8]"),
        "{row}"
    );
    let shares = |text: &str| {
        text.lines()
            .any(|l| l.starts_with("interval") && l.contains("share"))
    };
    assert!(shares(&text) && !shares(&render(&invented::one(), Options::default())));
}

/// Two modes are described in words, and their rows marked; one mode is not.
#[test]
fn several_modes_are_said_and_marked() {
    let interval = invented::two_modes();
    let text = histogram(&interval, 100).unwrap();
    let words: Vec<&str> = text.split_whitespace().collect();
    let said = words.join(" ");
    assert!(
        said.contains(
            "2 modes: 12.5 us (52.0 % [51.0, 53.0]), 25.0 us (48.0 % [47.0, 49.0]): the mean lies between them"
        ),
        "{said}"
    );
    let marked: Vec<&str> = text.lines().filter(|l| l.starts_with('>')).collect();
    assert_eq!(marked.len(), 2, "{text}");
    for room in [60, 80, 100] {
        assert_fits(&histogram(&interval, room).unwrap(), room);
    }
    let one = histogram(&invented::interval("one", 7000.0, 1000), 100).unwrap();
    assert!(!one.contains("modes") && !one.contains('>'), "{one}");
}
