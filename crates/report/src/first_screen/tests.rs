//! Screens of invented figures.

use super::{FirstScreen, Group, LINES, lines};

fn group(title: &str, figures: usize) -> Group {
    Group {
        title: title.to_owned(),
        figures: (0..figures)
            .map(|i| format!("figure number {i} 12.3\u{a0}us"))
            .collect(),
    }
}

fn screen(groups: Vec<Group>, notes: usize) -> String {
    let notes = (0..notes).map(|i| format!("note {i}"));
    FirstScreen {
        heading: vec!["A heading".to_owned()],
        table: String::new(),
        groups,
        notes: notes.collect(),
        more: "--full",
    }
    .text(100)
}

#[test]
fn what_fits_is_shown() {
    let text = screen(
        vec![
            group("one", 2),
            group("a title that is longer than a title", 1),
        ],
        1,
    );
    assert_eq!(
        text,
        "A heading\n\n\
         one                           figure number 0 12.3 us; figure number 1 12.3 us\n\
         a title that i… than a title  figure number 0 12.3 us\n\n\
         * note 0\n\n\
         more: --full\n"
    );
}

/// However much there is, each group has a figure, five notes are shown, and the rest is counted.
#[test]
fn a_screen_is_a_screen() {
    let groups = || (0..12).map(|i| group(&format!("group {i}"), 40)).collect();
    let text = screen(groups(), 9);
    assert!(lines(&text) <= LINES, "{}\n{text}", lines(&text));
    for i in 0..12 {
        assert!(text.contains(&format!("group {i} ")), "{text}");
    }
    assert!(text.contains("and 3") && text.contains("more"), "{text}");
    assert!(
        text.contains("* note 4") && !text.contains("* note 5"),
        "{text}"
    );
    assert!(text.ends_with("4 notes and more: --full\n"), "{text}");
    // It is not cut below what fits.
    assert!(lines(&text) > LINES - 13, "{}\n{text}", lines(&text));
}

/// Long notes leave room for the table; the first is always there.
#[test]
fn long_notes_give_way() {
    let text = FirstScreen {
        heading: vec!["A heading".to_owned()],
        table: "a row\n".repeat(30),
        groups: Vec::new(),
        notes: vec!["word ".repeat(40), "word ".repeat(60)],
        more: "--full",
    }
    .text(100);
    assert!(lines(&text) <= LINES, "{}\n{text}", lines(&text));
    assert!(text.ends_with("1 note and more: --full\n"), "{text}");
}
