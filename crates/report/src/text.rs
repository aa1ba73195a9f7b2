//! Text for a terminal: names made harmless, and text shortened and wrapped by its width on the
//! screen.

pub(crate) use undertick_text::is_unsafe_to_show;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Number of columns that a text occupies.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// The same as [`undertick_text::clean`].
pub(crate) fn clean(name: &str) -> String {
    undertick_text::clean(name).into_owned()
}

/// The text in at most `room` columns; `…` replaces what is cut out of the middle. Both ends of a
/// long name distinguish it from its neighbours.
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

/// The beginning of a line that is too long.
pub(crate) fn shorten_end(line: &str, width: usize) -> String {
    if columns(line) <= width {
        return line.to_owned();
    }
    let mut short = String::new();
    for c in line.chars() {
        if columns(&short) + 2 > width {
            break;
        }
        short.push(c);
    }
    short + "…"
}

/// The first characters, as many as fit in `room` columns.
fn prefix(characters: impl Iterator<Item = char>, room: usize) -> String {
    let mut taken = String::new();
    let mut width = 0;
    for c in characters {
        width += c.width().unwrap_or(0);
        if width > room {
            break;
        }
        taken.push(c);
    }
    // A few sequences are wider than the sum of their characters.
    while columns(&taken) > room {
        taken.pop();
    }
    taken
}

/// Breaks a text into lines of at most `room` columns; the second and later lines start with
/// `indent` spaces. Words longer than a line are broken.
pub(crate) fn wrap(text: &str, room: usize, indent: usize) -> String {
    let room = room.max(indent + 2);
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let mut word = word;
        loop {
            let is_fresh = line.trim().is_empty();
            let gap = usize::from(!is_fresh);
            // Look at no more of a long word than fits.
            let left = room.checked_sub(columns(&line) + gap);
            let part = left.map_or_else(String::new, |left| prefix(word.chars(), left));
            if part.len() == word.len() {
                if !is_fresh {
                    line.push(' ');
                }
                line.push_str(word);
                break;
            }
            if is_fresh {
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
mod tests;
