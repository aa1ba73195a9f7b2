//! The HTML page: complete, self-contained, harmless.
//!
//! The pages are also written to the target directory, for inspection.

use undertick_document::{Report, without_impossible};
use undertick_report::html::{Beside, render, render_beside};

use super::invented;

/// Writes a page where a person or a browser test finds it.
pub fn keep(name: &str, page: &str) {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(path, page).expect("the target directory can be written to");
}

/// Asserts that the document inside the page is the document, both read by the same parser.
fn assert_embedded(page: &str, report: &Report) {
    let begin = "<script type=\"application/json\" id=\"report\">";
    let json = page.split(begin).nth(1).unwrap();
    let json = json.split("</script>").next().unwrap();
    let read = |json: &str| serde_json::from_str::<serde_json::Value>(json).unwrap();
    let possible = without_impossible(report.clone());
    assert_eq!(read(json), read(&serde_json::to_string(&possible).unwrap()));
    serde_json::from_str::<Report>(json).unwrap();
}

#[test]
fn pages_of_any_size_hold_every_interval() {
    for (name, report) in [
        ("one.html", invented::one()),
        ("six.html", invented::six()),
        ("many.html", invented::many(300)),
        ("none.html", invented::report(vec![])),
        ("deep.html", invented::deep()),
    ] {
        let page = render(&report);
        keep(name, &page);
        for (index, interval) in report.intervals.iter().enumerate() {
            let link = format!("href=\"#i{index}\">{}<", interval.name);
            assert!(
                page.contains(&link),
                "{name} has no row for {}",
                interval.name
            );
            assert!(
                page.contains(&format!("id=\"i{index}\"")),
                "{name} has no panel {index}"
            );
        }
        assert_embedded(&page, &report);
    }
}

/// The part of a page about states.
fn about_states(page: &str) -> &str {
    let (_, states) = page.split_once("<details id=\"states\">").unwrap();
    states.split_once("</details>").unwrap().0
}

/// The drawings of the states of a path: their paths as points, and the marks of their medians as left
/// and right end.
fn drawings(states: &str) -> Vec<(Vec<[f64; 2]>, [f64; 2])> {
    let number = |text: &str| text.parse::<f64>().unwrap();
    let attribute = |text: &str, name: &str| -> f64 {
        let value = text.split_once(&format!("{name}=\"")).unwrap().1;
        number(value.split('"').next().unwrap())
    };
    let each = states
        .split("<path class=\"distribution\" d=\"M0 40")
        .skip(1);
    each.map(|drawing| {
        let (path, rest) = drawing.split_once("V40Z\"/>").unwrap();
        let steps = path.split('V').skip(1).map(|step| {
            let (y, x) = step.split_once('H').unwrap();
            [number(x), number(y)]
        });
        let median = rest.split_once("<rect class=\"median\"").unwrap().1;
        let from = attribute(median, "x");
        (steps.collect(), [from, from + attribute(median, "width")])
    })
    .collect()
}

/// Bins of a tenth of a decade above 200 ns: the highest bar is that of the median, medians lie where
/// the axis has them, and all distributions are as large.
#[test]
fn states_are_drawn_on_one_axis() {
    let report = invented::six();
    let page = render(&report);
    let states = about_states(&page);
    assert_eq!(states.matches("<svg").count(), 5, "three states, and two");
    let all = drawings(states);
    for (steps, [from, to]) in &all {
        assert!(
            steps
                .iter()
                .all(|[x, y]| (0.0..=480.0).contains(x) && (0.0..=40.0).contains(y))
        );
        assert!((steps.last().unwrap()[0] - 480.0).abs() < 0.1);
        let top = (0..steps.len())
            .min_by(|a, b| steps[*a][1].total_cmp(&steps[*b][1]))
            .unwrap();
        let (left, right) = (steps[top - 1][0], steps[top][0]);
        assert!(
            left < *to && right > *from,
            "{left}..{right} and {from}..{to}"
        );
        // As wide as its interval: 2 % below and 2.6 % above, on an axis of 20 ns to 39.9 us.
        let width = 480.0 * (1.026_f64 / 0.98).ln() / (200.0 * 10_f64.powf(2.3) / 20.0).ln();
        assert!((to - from - width).abs() < 0.11, "{from}..{to}");
    }
    let middle = |at: usize| f64::midpoint(all[at].1[0], all[at].1[1]);
    // 810, 930 and 5800 ns; 1200 and 2600 ns.
    let apart = 480.0 / (200.0 * 10_f64.powf(2.3) / 20.0).ln();
    for (from, to, ratio) in [
        (0, 1, 930.0 / 810.0),
        (1, 2, 5800.0 / 930.0),
        (3, 4, 2600.0 / 1200.0_f64),
    ] {
        let drawn = middle(to) - middle(from);
        assert!((drawn - apart * f64::ln(ratio)).abs() < 0.5, "{drawn}");
    }
    // Areas are shares of a state's calls: of each state the same.
    let area = |steps: &[[f64; 2]]| -> f64 {
        let before = std::iter::once(0.0).chain(steps.iter().map(|[x, _]| *x));
        before
            .zip(steps)
            .map(|(from, [to, y])| (to - from) * (40.0 - y))
            .sum()
    };
    for pair in [[0, 1], [0, 2], [3, 4]] {
        let [a, b] = pair.map(|at| area(&all[at].0));
        assert!((a / b - 1.0).abs() < 0.1, "{a} {b}");
    }
    assert!(
        states.contains("20.0\u{a0}ns") && states.contains("39.9\u{a0}µs"),
        "{states}"
    );

    // Bins of any width: as many calls for each part of the axis are as high.
    let mut even = report.clone();
    for of in &mut even.states {
        let bins = of.edges_ns.windows(2);
        let counts: Vec<u64> = bins
            .map(|bin| (1e3 * (bin[1] / bin[0]).ln()) as u64)
            .collect();
        of.looked_at = counts.iter().sum();
        of.states
            .iter_mut()
            .for_each(|state| state.counts.clone_from(&counts));
    }
    let page = render(&even);
    for (steps, _) in drawings(about_states(&page)) {
        assert!(steps.iter().all(|[_, y]| *y < 2.0), "{steps:?}");
    }

    let mut without = report;
    without.states.iter_mut().for_each(|of| of.edges_ns.clear());
    let page = render(&without);
    let states = about_states(&page);
    assert!(!states.contains("<svg") && states.contains("<table"));
}

#[test]
fn the_page_loads_nothing() {
    for report in [
        invented::six(),
        invented::many(300),
        invented::report(vec![]),
    ] {
        let page = render(&report);
        // The book is a link, which only a click follows.
        let rest = page.replace("<a href=\"https://github.com/undertick/", "");
        for needle in [
            "http://", "https://", "//cdn", "src=", "@import", "url(", "<link", "<iframe",
        ] {
            assert!(!rest.contains(needle), "the page contains {needle}");
        }
        assert!(page.contains("Content-Security-Policy\" content=\"default-src 'none'"));
    }
}

/// Returns the start tags of a page, as a browser sees them: the contents of scripts, styles and
/// comments are skipped.
fn start_tags(page: &str) -> Vec<String> {
    let mut tags = Vec::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        assert!(!rest.starts_with("!--"), "a comment begins in the page");
        let end = rest.find('>').expect("every tag ends");
        let tag = rest[..end].to_owned();
        rest = &rest[end + 1..];
        for raw in ["script", "style"] {
            if tag == raw || tag.starts_with(&format!("{raw} ")) {
                let close = rest.find(&format!("</{raw}>")).expect("raw text ends");
                rest = &rest[close..];
            }
        }
        if !tag.starts_with(['/', '!']) {
            tags.push(tag);
        }
    }
    tags
}

/// Asserts that there are only known tags, no attribute that runs code, and only the known script.
pub fn assert_harmless(page: &str) {
    let known = [
        "html", "head", "meta", "title", "style", "body", "header", "div", "h1", "button", "p",
        "nav", "a", "main", "section", "h2", "h3", "ul", "li", "span", "table", "thead", "tr",
        "th", "td", "tbody", "svg", "line", "rect", "i", "b", "dl", "dt", "dd", "article",
        "fieldset", "legend", "label", "input", "output", "noscript", "pre", "footer", "code",
        "script", "dialog", "path", "details", "summary", "select", "option",
    ];
    let mut scripts = 0;
    for tag in start_tags(page) {
        let name = tag.split([' ', '/']).next().unwrap();
        assert!(known.contains(&name), "unexpected <{tag}>");
        scripts += usize::from(name == "script");
        for attribute in tag.split_whitespace().skip(1) {
            assert!(!attribute.starts_with("on"), "<{tag}>");
            assert!(!attribute.contains("alert"), "<{tag}>");
        }
    }
    assert_eq!(scripts, 2, "the document and our own script");
    // A browser would end a script at the first of these, wherever it is.
    assert_eq!(page.matches("</script").count(), 2);
    assert!(!page.contains("<!--"));
    for c in page.chars().filter(|c| *c != '\n') {
        assert!(
            !c.is_control() && c != '\u{202e}' && c != '\u{2028}',
            "{c:?}"
        );
    }
}

#[test]
fn text_from_the_trace_stays_text_wherever_it_stands() {
    let report = invented::hostile_throughout(&invented::six());
    let page = render(&report);
    keep("hostile.html", &page);
    assert_harmless(&page);
    assert!(page.matches("&lt;poison onload=&#39;alert(1)&#39;").count() > 50);
    assert_embedded(&page, &report);
}

#[test]
fn hostile_names_stay_text() {
    let report = invented::nasty();
    let page = render(&report);
    keep("nasty.html", &page);
    assert_harmless(&page);
    // The names are all shown as text, and are unchanged in the document.
    assert!(page.contains("&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(page.contains("{{style}} {{data}} $&amp;"));
    assert_embedded(&page, &report);
}

#[test]
fn a_median_without_an_interval_is_said_to_be_of_this_recording() {
    let mut report = invented::six();
    for median in report
        .intervals
        .iter_mut()
        .filter_map(|of| of.median.as_mut())
    {
        (median.interval.lo, median.interval.hi) = (None, None);
    }
    let page = render(&report);
    let (_, summary) = page.split_once("<section id=\"summary\">").unwrap();
    let summary = summary.split("</section>").next().unwrap();
    let said = "(median of this recording; of another one it is not known)";
    assert!(
        summary.contains(said) && !summary.contains("?"),
        "{summary}"
    );
}

#[test]
fn the_summary_says_what_was_lost_and_left_out() {
    let page = render(&invented::six());
    for sentence in [
        "1\u{a0}244 were lost, 0.039\u{a0}% of those written.",
        "1\u{a0}244 events were lost because a ring was full",
        "were dropped; the figures before and after",
        "The clock, tsc, moves 10.0\u{a0}ns at a time",
        "slowed the program by 2.1\u{a0}%",
        "3\u{a0}205\u{a0}292 events written = 3\u{a0}204\u{a0}048 received + 1\u{a0}244 lost",
    ] {
        let sentence = sentence.replace(
            "1\u{a0}244 events were lost because",
            "1 244 events were lost because",
        );
        assert!(page.contains(&sentence), "{sentence}");
    }
}

#[test]
fn figures_carry_the_number_they_sort_by() {
    let page = render(&invented::one());
    assert!(
        page.contains("data-sort=\"1820\">1.820\u{a0}µs <span class=\"within\">[1.814, 1.828]")
    );
    let empty = render(&invented::report(vec![invented::empty_interval("gone")]));
    assert!(empty.contains("<td data-label=\"median\">–</td>"));
    let text = empty.split("<script>").next().unwrap();
    assert!(!text.contains("NaN") && !text.contains("inf\""));
}

/// The panel describes the modes in words; the script gets them in the document.
#[test]
fn several_modes_are_on_the_page() {
    let report = invented::report(vec![invented::two_modes()]);
    let page = render(&report);
    keep("modes.html", &page);
    assert!(page.contains("<dt>modes</dt><dd>2 modes: "));
    assert!(page.contains("the mean lies between them"));
    assert_embedded(&page, &report);
    assert!(!render(&invented::one()).contains("<dt>modes</dt>"));
}

/// A second of two threads, for the tests in a browser (`web/tests`).
#[test]
fn a_timeline_is_words_a_table_and_a_document_of_its_own() {
    let report = invented::six();
    let timeline = invented::second();
    let beside = Beside {
        timeline: Some(&timeline),
        explanation: None,
        trace: Some("it's mine.ut"),
    };
    let page = render_beside(&report, &beside);
    keep("second.html", &page);
    assert_embedded(&page, &report);
    let begin = "<script type=\"application/json\" id=\"timeline\">";
    let json = page.split(begin).nth(1).unwrap();
    let json = json.split("</script>").next().unwrap();
    assert_eq!(
        serde_json::from_str::<undertick_document::timeline::Timeline>(json).unwrap(),
        timeline
    );
    for sentence in [
        "From 2.00\u{a0}s to 3.00\u{a0}s of 5.00\u{a0}s: the second that was asked for.",
        "4 of 1\u{a0}203 spans are here one by one",
        "The span furthest over its median: &lt;b&gt;commit",
        "undertick export &#39;it&#39;\\&#39;&#39;s mine.ut&#39; --to perfetto",
    ] {
        assert!(page.contains(sentence), "{sentence}");
    }
}

/// The slowest calls, for the tests in a browser.
#[test]
fn slow_calls_are_a_table_with_bars_and_names_are_harmless() {
    let report = invented::six();
    let explanation = invented::explanation();
    let beside = Beside {
        explanation: Some(&explanation),
        ..Beside::default()
    };
    let page = render_beside(&report, &beside);
    keep("slowest.html", &page);
    assert_embedded(&page, &report);
    let section = page.split("<section id=\"slowest\">").nth(1).unwrap();
    let section = section.split("</section>").next().unwrap();
    for text in [
        "<summary>server/&lt;b&gt;request: 1.00\u{a0}ms at the most; typical 1.20\u{a0}µs</summary>",
        "The 2 slowest, of 48\u{a0}211 calls (48\u{a0}209 are not shown), have an excess of 1.20\u{a0}ms: 75",
        "preempted by &lt;script&gt;alert(2)&lt;/script&gt; (9)",
        "(hypervisor: up to 50.0\u{a0}µs)",
    ] {
        assert!(section.contains(text), "{text}: {section}");
    }
    // 900 us and 100 us of 1 ms fill the first bar; the second is a fifth of it.
    for rect in [
        "<rect class=\"waits\" x=\"0.0\" y=\"0\" width=\"180.0\"",
        "<rect class=\"unknown\" x=\"180.0\" y=\"0\" width=\"20.0\"",
        "<rect class=\"others\" x=\"0.0\" y=\"0\" width=\"40.0\"",
    ] {
        assert!(section.contains(rect), "{rect}: {section}");
    }
    assert!(page.contains("<a href=\"#slowest\">"));
    assert!(
        !render(&report).contains("slowest\""),
        "nothing without an explanation"
    );
}
