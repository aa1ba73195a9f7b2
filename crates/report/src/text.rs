//! Text for a terminal: names made harmless, cut and wrapped by what they take
//! up on the screen.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns that a text takes up.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// A name from a program, made harmless to show: control characters and
/// characters that reorder or hide their neighbours are written as `\u{..}`,
/// line breaks and tabs as spaces. Everything else stays.
pub(crate) fn clean(name: &str) -> String {
    let mut shown = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '\n' | '\r' | '\t' => shown.push(' '),
            c if is_unsafe_to_show(c) => {
                shown.extend(c.escape_unicode());
            }
            c => shown.push(c),
        }
    }
    shown
}

/// Whether a character steers the screen, or its neighbours on it.
pub(crate) fn is_unsafe_to_show(c: char) -> bool {
    c.is_control() || is_format_character(c)
}

/// Characters without a shape that change how others are shown: zero-width
/// ones, direction marks and overrides, line separators, tags, the byte order mark.
const fn is_format_character(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

/// The text in at most `room` columns; what is cut out of the middle is shown as `…`.
/// Both ends of a long name tell it from its neighbours.
pub(crate) fn shorten(text: &str, room: usize) -> String {
    if columns(text) <= room {
        return text.to_owned();
    }
    let kept = room.saturating_sub(1);
    let head = prefix(text.chars(), kept.div_ceil(2));
    let tail = prefix(text.chars().rev(), kept - columns(&head));
    let tail: String = tail.chars().rev().collect();
    match room {
        0 => String::new(),
        _ => format!("{head}…{tail}"),
    }
}

/// As many characters as fit in `room` columns.
fn prefix(characters: impl Iterator<Item = char>, room: usize) -> String {
    let mut taken = String::new();
    for c in characters {
        if columns(&taken) + c.width().unwrap_or(0) > room {
            break;
        }
        taken.push(c);
    }
    taken
}

/// Breaks a text into lines of at most `room` columns; the second and later
/// ones start with `indent` spaces. Words longer than a line are broken.
pub(crate) fn wrap(text: &str, room: usize, indent: usize) -> String {
    let room = room.max(indent + 2);
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let mut word = word;
        loop {
            let is_fresh = line.trim().is_empty();
            let gap = usize::from(!is_fresh);
            if columns(&line) + gap + columns(word) <= room {
                if !is_fresh {
                    line.push(' ');
                }
                line.push_str(word);
                break;
            }
            if is_fresh {
                let part = prefix(word.chars(), room - columns(&line));
                line.push_str(&part);
                word = &word[part.len()..];
            }
            lines.push(core::mem::replace(&mut line, " ".repeat(indent)));
        }
    }
    if !line.trim().is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmful_characters_are_spelled_out() {
        assert_eq!(clean("a\x1b[31mb"), "a\\u{1b}[31mb");
        assert_eq!(
            clean("x\u{202e}y\u{200b}\u{7f}"),
            "x\\u{202e}y\\u{200b}\\u{7f}"
        );
        assert_eq!(clean("two\r\nlines\t"), "two  lines ");
        assert_eq!(clean("größe 測定 <b>"), "größe 測定 <b>");
    }

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(shorten("prepare", 7), "prepare");
        assert_eq!(shorten("prepare_statement", 9), "prep…ment");
        assert_eq!(shorten("abc", 1), "…");
        assert_eq!(shorten("abc", 0), "");
    }

    #[test]
    fn width_is_counted_in_columns_not_characters() {
        // Each of these takes two columns.
        let wide = "測定測定測定測定";
        for room in 0..20 {
            let short = shorten(wide, room);
            assert!(columns(&short) <= room, "{short} in {room}");
        }
        assert_eq!(shorten(wide, 9), "測定…測定");
    }

    #[test]
    fn wrapped_lines_fit_and_lose_no_word() {
        let text = "one two three four_is_a_long_word five";
        for room in 4..45 {
            let wrapped = wrap(text, room, 2);
            assert!(
                wrapped.lines().all(|l| columns(l) <= room),
                "{room}: {wrapped}"
            );
            let words: String = wrapped.split_whitespace().collect();
            assert_eq!(words, text.split_whitespace().collect::<String>());
        }
        assert_eq!(wrap("aa bb cc", 5, 1), "aa bb\n cc");
        assert_eq!(wrap("", 5, 1), "");
    }
}
