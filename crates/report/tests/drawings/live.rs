//! The view of a recording, drawn on screens of many sizes.

use std::collections::VecDeque;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Cell;
use ratatui::style::{Color, Modifier};
use undertick_document::figures;
use undertick_report::live::{Entry, Order, Recent, State, draw};

use super::invented::{NASTY_NAMES, interval};

/// Returns the text of a screen, line by line, without the spaces at its end.
fn lines(state: &State, width: u16, height: u16) -> Vec<String> {
    let cells = cells(state, width, height);
    let line = |y: u16| {
        let row = &cells[usize::from(y * width)..usize::from((y + 1) * width)];
        // A wide character takes two cells; the second one is empty.
        let mut text = String::new();
        let mut skip = 0;
        for cell in row {
            if skip > 0 {
                skip -= 1;
                continue;
            }
            text.push_str(cell.symbol());
            skip = unicode_width::UnicodeWidthStr::width(cell.symbol()).saturating_sub(1);
        }
        text.trim_end().to_owned()
    };
    (0..height).map(line).collect()
}

fn cells(state: &State, width: u16, height: u16) -> Vec<Cell> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, state)).unwrap();
    terminal.backend().buffer().content.clone()
}

fn entry(name: &str, median_ns: f64, n: u64, per_s: f64) -> Entry {
    Entry {
        interval: interval(name, median_ns, n),
        per_s,
        cut: 0.0,
    }
}

fn state(entries: Vec<Entry>) -> State {
    State {
        command: ["./server", "--port", "8080"].map(str::to_owned).to_vec(),
        is_attached: false,
        elapsed_s: 3_725.9,
        events: 12_345_678,
        lost: 0,
        bytes: 45_100_000,
        threads: 8,
        rates: (0..300)
            .map(|i| 1.2e6 + 1e6 * f64::from(i % 17) / 17.0)
            .collect(),
        own_use: Some((0.021, 0.006)),
        recent: Some(Recent {
            entries,
            of_s: 4.9,
            until_s: 3_725.4,
            looked_share: 1.0,
            confidence: 0.95,
        }),
        output: (1..=12)
            .map(|i| format!("listening, request {i}"))
            .collect(),
        order: Order::default(),
        above: 0,
        is_paused: false,
        is_help: false,
        finalizing: None,
    }
}

fn usual() -> State {
    state(vec![
        entry("request", 21_400.0, 200_300, 40_060.0),
        entry("request/parse header", 849.3, 1_200_000, 240_000.0),
        entry("store", 1.2e6, 912, 182.4),
    ])
}

#[test]
fn eighty_by_twenty_four_and_two_hundred_by_fifty() {
    for (width, height, expected) in [
        (80, 24, include_str!("live/80x24.txt")),
        (200, 50, include_str!("live/200x50.txt")),
    ] {
        let drawn = lines(&usual(), width, height).join("\n") + "\n";
        assert_eq!(drawn, expected, "{width}x{height}:\n{drawn}");
    }
}

/// At any size a figure is shown whole or left out, with its interval.
#[test]
fn no_figure_is_cut() {
    let state = usual();
    let entries = &state.recent.as_ref().unwrap().entries;
    for width in 60..=230 {
        let drawn = lines(&state, width, 24);
        for entry in entries {
            let interval = &entry.interval;
            let name = &interval.name[interval.name.len() - 3..];
            let at = drawn
                .iter()
                .position(|line| line.split("  ").next().unwrap().ends_with(name));
            let at = at.unwrap_or_else(|| panic!("{width}: no {name}:\n{}", drawn.join("\n")));
            let words = |line: &str| -> Vec<String> {
                let parts = line
                    .split("  ")
                    .map(str::trim)
                    .filter(|part| !part.is_empty());
                parts.map(str::to_owned).collect()
            };
            let [above, below] = [words(&drawn[at]), words(&drawn[at + 1])];
            let estimates = [interval.mean.as_ref(), interval.median.as_ref()];
            let known: Vec<(String, String)> = (estimates.into_iter().flatten())
                .chain(interval.quantiles.values())
                .map(figures::figure)
                .map(|f| (f.value_and_unit().replace('\u{a0}', " "), f.interval()))
                .collect();
            // Every interval on the screen is one of them, under its value.
            assert!(below.len() >= 2, "{width}: {below:?}");
            let values: Vec<&String> = (above.iter())
                .filter(|text| known.iter().any(|(value, _)| value == *text))
                .collect();
            for text in &below {
                let of: Vec<_> = known
                    .iter()
                    .filter(|(_, interval)| interval == text)
                    .collect();
                assert!(
                    !of.is_empty(),
                    "{width}: {text} is no interval of {known:?}"
                );
                assert!(
                    of.iter().any(|(value, _)| values.contains(&value)),
                    "{width}: {text}"
                );
            }
        }
    }
}

/// Any screen shows something sensible, and nothing panics.
#[test]
fn every_size() {
    let many = (0..300).map(|i| entry(&format!("section {i}"), 100.0 + f64::from(i), 1000, 10.0));
    let mut many = state(many.collect());
    many.is_help = true;
    for state in [usual(), many, state(vec![])] {
        for width in (1..240).step_by(7) {
            for height in 1..60 {
                let drawn = lines(&state, width, height);
                let is_small = width < 60 || height < 12;
                assert_eq!(
                    drawn[0].starts_with("./server"),
                    !is_small,
                    "{width}x{height}"
                );
                let keys = drawn.last().unwrap();
                assert_eq!(
                    keys.contains(" q leave the view"),
                    !is_small,
                    "{width}x{height}"
                );
            }
        }
    }
    let small = lines(&usual(), 59, 24).join("\n");
    assert!(small.contains("60x12 at least"), "{small}");
}

/// Names that would control the screen, or are wider than it.
#[test]
fn hostile_names_stay_in_their_place() {
    let entries = NASTY_NAMES
        .iter()
        .map(|name| entry(name, 849.3, 1000, 10.0));
    let mut state = state(entries.collect());
    state.command = NASTY_NAMES.map(str::to_owned).to_vec();
    state.output = NASTY_NAMES.map(str::to_owned).to_vec();
    for (width, height) in [(60, 12), (80, 24), (200, 50)] {
        let drawn = lines(&state, width, height);
        assert_eq!(drawn.len(), usize::from(height));
        for line in &drawn {
            assert!(
                !line.contains(['\x1b', '\x07', '\u{202e}', '\u{200b}', '\u{2028}']),
                "{line:?}"
            );
        }
        let figures = drawn
            .iter()
            .filter(|line| line.contains(" 960 ns "))
            .count();
        assert!(figures >= 2, "{}", drawn.join("\n"));
    }
}

#[test]
fn losses_stand_out() {
    let is_red = |state: &State| {
        let cells = cells(state, 80, 24);
        let second = &cells[80..160];
        let red = second.iter().filter(|cell| cell.fg == Color::Red);
        red.map(Cell::symbol).collect::<String>()
    };
    assert_eq!(is_red(&usual()), "");
    let lossy = State {
        lost: 1_234,
        ..usual()
    };
    assert_eq!(is_red(&lossy), "1 234 LOST");
}

#[test]
fn what_was_looked_at_is_said() {
    let mut state = usual();
    let recent = state.recent.as_mut().unwrap();
    recent.looked_share = 0.031;
    recent.entries[2].cut = 0.2;
    let drawn = lines(&state, 80, 24);
    let text = drawn.join("\n");
    assert!(
        text.contains("last 4.90 s, 3.1 % of the time looked at "),
        "{text}"
    );
    // Rates are approximate; a cut span has a mark.
    assert!(
        text.contains(" ~40.1 k ") && text.contains(" ~182 "),
        "{text}"
    );
    assert!(
        drawn.iter().any(|line| line.starts_with("†store")),
        "{text}"
    );
    assert!(
        !text.contains("†request") && text.contains("† over 5 %"),
        "{text}"
    );
    let whole = lines(&usual(), 80, 24).join("\n");
    assert!(
        whole.contains("every event looked at") && !whole.contains('~'),
        "{whole}"
    );
    // If estimating takes long, the figures are not of the last moment.
    state.recent.as_mut().unwrap().until_s = 3_720.0;
    let old = lines(&state, 80, 24).join("\n");
    assert!(
        old.contains("4.90 s, 6 s ago, 3.1 % of the time looked at "),
        "{old}"
    );
    state.recent = None;
    let none = lines(&state, 80, 24).join("\n");
    assert!(
        none.contains("the first figures come in a moment"),
        "{none}"
    );
}

#[test]
fn order_and_place() {
    let names = |state: &State| -> Vec<String> {
        let drawn = lines(state, 80, 24);
        let table = drawn.iter().skip_while(|line| !line.contains("99 %"));
        let with_name = table
            .skip(1)
            .filter(|line| line.starts_with(|c: char| c.is_alphabetic()));
        let name = |line: &String| line.split("  ").next().unwrap().to_owned();
        with_name.map(name).collect()
    };
    let mut entries = vec![
        entry("often", 10.0, 1_000, 5_000.0),
        entry("slow", 5_000.0, 10, 1.0),
        entry("a third", 300.0, 100, 200.0),
    ];
    // The totals of these invented figures need not agree with the rest.
    for (entry, total) in entries.iter_mut().zip([1e4, 5e4, 3e4]) {
        entry.interval.total_ns = Some(total);
    }
    let mut state = state(entries);
    state.output.clear();
    let mut seen = Vec::new();
    for _ in 0..5 {
        seen.push(names(&state).join(", "));
        state.order = state.order.next();
    }
    assert_eq!(
        seen,
        [
            "slow, a third, often",
            "often, a third, slow",
            "slow, a third, often",
            "slow, a third, often",
            "a third, often, slow"
        ]
    );
    assert_eq!(state.order, Order::Total);
    // More than there is room for: the view scrolls only as far as there are entries.
    let many = (0..40).map(|i| entry(&format!("section {i:02}"), 100.0, 1000, f64::from(100 - i)));
    let mut state = self::state(many.collect());
    state.order = Order::Rate;
    for (above, first, last) in [(0, 0, 5), (1, 1, 6), (39, 34, 39)] {
        state.above = above;
        let drawn = lines(&state, 80, 24);
        let shown = drawn.iter().filter(|line| line.starts_with("section"));
        let shown: Vec<&str> = shown.map(|line| &line[..10]).collect();
        assert_eq!(shown.first(), Some(&format!("section {first:02}").as_str()));
        assert_eq!(
            shown.last(),
            Some(&format!("section {last:02}").as_str()),
            "{shown:?}"
        );
        let text = drawn.join("\n");
        assert!(
            text.contains(&format!("{}-{} of 40", first + 1, last + 1)),
            "{text}"
        );
    }
}

#[test]
fn stages() {
    let mut state = usual();
    state.is_paused = true;
    let text = lines(&state, 80, 24).join("\n");
    assert!(
        text.contains("figures paused") && text.contains("space go on"),
        "{text}"
    );
    state.finalizing = Some(0.43);
    let text = lines(&state, 80, 24).join("\n");
    assert!(text.contains("ended, finalizing the trace: 43 %"), "{text}");
    state.is_attached = true;
    state.is_help = true;
    state.rates = VecDeque::new();
    let text = lines(&state, 80, 24).join("\n");
    assert!(
        text.contains("q stop recording") && text.contains("the program runs on"),
        "{text}"
    );
    let keys = cells(&state, 80, 24);
    assert!(
        keys[23 * 80..]
            .iter()
            .all(|cell| cell.modifier.contains(Modifier::REVERSED))
    );
}
