//! Which figures are wanted: names with `*` for any text and `?` for any character.

/// Whether a name is of that form.
pub(super) fn matches(form: &str, name: &str) -> bool {
    let (form, name): (Vec<char>, Vec<char>) = (form.chars().collect(), name.chars().collect());
    let (mut f, mut n) = (0, 0);
    // Where the last star was, and up to where it has taken the name.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match form.get(f) {
            Some('*') => {
                star = Some((f, n));
                f += 1;
            }
            Some(&c) if c == '?' || c == name[n] => (f, n) = (f + 1, n + 1),
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    (f, n) = (at + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    form[f..].iter().all(|&c| c == '*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn forms() {
        for (form, name) in [
            ("parse", "parse"),
            ("*", ""),
            ("*", "anything at all"),
            ("par*", "parse"),
            ("*rse", "parse"),
            ("p?r*e", "parse"),
            ("*a*b*c*", "xxaxxbxxbc"),
            ("a**b", "ab"),
            ("h\u{e9}*", "h\u{e9}llo"),
        ] {
            assert!(matches(form, name), "{form} {name}");
        }
        for (form, name) in [
            ("parse", "parser"),
            ("parse", "Parse"),
            ("", "x"),
            ("?", ""),
            ("*a*b", "ba"),
            ("a*b*c", "abcb"),
        ] {
            assert!(!matches(form, name), "{form} {name}");
        }
    }

    /// Many stars and a long name end soon.
    #[test]
    fn stars_do_not_explode() {
        assert!(!matches(&"*a".repeat(40), &("a".repeat(5000) + "b")));
    }
}
