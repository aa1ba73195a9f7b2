//! How can text from a program or a file be shown, so that it cannot control a terminal or a
//! spreadsheet?
//!
//! Names, paths and contents of files are untrusted data. [`clean`] is for a name or a path in a
//! line, [`clean_lines`] for a message of several lines, and [`csv_cell`] for a cell of
//! comma-separated values. Harmless text is unchanged, and cleaning twice equals cleaning once.
//!
//! Caveats: JSON needs none of this, because its own escapes are enough.

use std::borrow::Cow;

/// Returns a name or a path for one line. Control characters and characters that reorder or hide
/// their neighbours are written as `\u{..}`, line breaks and tabs as spaces.
///
/// ```
/// assert_eq!(undertick_text::clean("a\x1b[31mb\n"), "a\\u{1b}[31mb ");
/// ```
#[must_use]
pub fn clean(name: &str) -> Cow<'_, str> {
    cleaned(name, |c| matches!(c, '\n' | '\r' | '\t').then_some(' '))
}

/// Returns a text of several lines, cleaned as by [`clean`] except that its line breaks stay.
#[must_use]
pub fn clean_lines(text: &str) -> Cow<'_, str> {
    cleaned(text, |c| match c {
        '\n' => Some('\n'),
        '\r' | '\t' => Some(' '),
        _ => None,
    })
}

/// Returns a text as a cell of comma-separated values (RFC 4180), cleaned as by [`clean`] and
/// quoted where necessary. A spreadsheet would take text that begins with `=`, `+`, `-` or `@` for
/// a formula, even after a tab or a line break. Such a text is prefixed with a single quote.
#[must_use]
pub fn csv_cell(text: &str) -> Cow<'_, str> {
    let shown = clean(text);
    let guarded: Cow<'_, str> = match text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']) {
        true => format!("'{shown}").into(),
        false => shown,
    };
    match guarded.contains([',', '"']) {
        true => format!("\"{}\"", guarded.replace('"', "\"\"")).into(),
        false => guarded,
    }
}

/// Whether a character controls the screen or affects its neighbours on it.
#[must_use]
pub fn is_unsafe_to_show(c: char) -> bool {
    c.is_control() || is_format_character(c)
}

/// Whether this is a character without a shape that changes how others are shown: zero-width
/// characters, direction marks and overrides, line separators, tags, the byte order mark.
const fn is_format_character(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

/// Cleans a text; `instead` returns the replacement of a character, if it has one.
fn cleaned(text: &str, instead: impl Fn(char) -> Option<char>) -> Cow<'_, str> {
    if !text.contains(is_unsafe_to_show) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match instead(c) {
            Some(other) => shown.push(other),
            None if is_unsafe_to_show(c) => shown.extend(c.escape_unicode()),
            None => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// Returns a word as a shell takes it: quoted where it is not plain.
#[must_use]
pub fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@".contains(c);
    match !word.is_empty() && !word.starts_with('-') && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests;
