//! Selects figures by name: `*` stands for any text and `?` for any character.

/// Whether a name matches the pattern.
#[must_use]
pub fn matches(form: &str, name: &str) -> bool {
    let (form, name): (Vec<char>, Vec<char>) = (form.chars().collect(), name.chars().collect());
    let (mut f, mut n) = (0, 0);
    // The position of the last star, and up to where the name has been matched by it.
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
mod tests;
