//! Escaping of external text on its way into a page.

use core::fmt::{self, Write};

use crate::text::{clean, is_unsafe_to_show};

/// Text between tags or inside a quoted attribute: made harmless on screen
/// (control and direction characters spelled out), then escaped.
pub(crate) struct Text<'a>(pub &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escape(&clean(self.0), f)
    }
}

/// Text that is already harmless, and whose line breaks must be kept.
pub(super) struct Lines<'a>(pub &'a str);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escape(self.0, f)
    }
}

fn escape(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for c in text.chars() {
        match c {
            '&' => f.write_str("&amp;")?,
            '<' => f.write_str("&lt;")?,
            '>' => f.write_str("&gt;")?,
            '"' => f.write_str("&quot;")?,
            '\'' => f.write_str("&#39;")?,
            c => f.write_char(c)?,
        }
    }
    Ok(())
}

/// JSON inside a `<script>`. No `<` is left that could end or open an element, and no character
/// that reorders the source for its reader. These characters occur in JSON only inside strings,
/// where an escape is equivalent.
pub(super) fn json(document: &str) -> String {
    let mut escaped = String::with_capacity(document.len());
    for c in document.chars() {
        if matches!(c, '<' | '>' | '&') || is_unsafe_to_show(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(escaped, "\\u{unit:04x}").expect("writing to a string does not fail");
            }
        } else {
            escaped.push(c);
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
