//! Names of functions in readable form.

use cpp_demangle::{DemangleOptions, Symbol as Mangled};

/// Maximum length of a name before the deepest contents of its angle brackets are left out.
const LONG: usize = 80;
/// Maximum length of a name, after which it is cut, whatever is lost.
const MOST: usize = 300;
/// The type behind `std::string`, demangled.
const STRING: &str =
    "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";

/// A C++ name in readable form, in full but without the return type; any other symbol
/// unchanged.
#[must_use]
pub fn demangled(symbol: &str) -> String {
    let options = DemangleOptions::new().no_return_type();
    (symbol.starts_with("_Z").then(|| Mangled::new(symbol).ok()))
        .flatten()
        .and_then(|mangled| mangled.demangle_with_options(&options).ok())
        .unwrap_or_else(|| symbol.to_owned())
}

/// The form of a demangled name for a report: `std::string` for the template behind it. Long names
/// lose the template arguments inside other arguments, or all arguments.
#[must_use]
pub fn shown(full: &str) -> String {
    let mut name = full.replace(STRING, "std::string");
    for deepest in [1, 0] {
        if name.len() > LONG {
            name = without_arguments(&name, deepest).unwrap_or(name);
        }
    }
    if name.len() > MOST {
        let end = (0..=MOST).rev().find(|&at| name.is_char_boundary(at));
        name.truncate(end.unwrap_or(0));
        name.push('\u{2026}');
    }
    name
}

/// Leaves out template arguments that are nested deeper than `deepest`; `None` if the brackets are
/// unbalanced.
fn without_arguments(name: &str, deepest: usize) -> Option<String> {
    let (mut short, mut rest, mut depth) = (String::new(), name, 0);
    while let Some(c) = rest.chars().next() {
        // Skip the brackets of `operator<<` and similar operators.
        let operator = rest.strip_prefix("operator").map_or(0, |after| {
            let sign = after.find(|c| !"<>=-".contains(c)).unwrap_or(after.len());
            if sign > 0 { "operator".len() + sign } else { 0 }
        });
        let bytes = operator.max(c.len_utf8());
        let is_closing = operator == 0 && c == '>';
        if is_closing {
            depth = usize::checked_sub(depth, 1)?;
        }
        if depth <= deepest {
            short.push_str(&rest[..bytes]);
        }
        if operator == 0 && c == '<' {
            depth += 1;
            if depth == deepest + 1 {
                short.push('\u{2026}');
            }
        }
        rest = &rest[bytes..];
    }
    (depth == 0).then_some(short)
}

#[cfg(test)]
mod tests;
