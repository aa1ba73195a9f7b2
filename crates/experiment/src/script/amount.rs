//! Parses times and sizes as a user writes them.

/// Nanoseconds of `50us`, `2.5ms`, `1s`, `800ns`; values that are not above 0 are also accepted.
pub fn nanos(text: &str) -> Option<f64> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match &text[digits.len()..] {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    let ns = digits.trim().parse::<f64>().ok()? * scale;
    ns.is_finite().then_some(ns)
}

/// Bytes of `4096`, `33KB`, `4KiB`, `1MiB`, `1GiB`: powers of 1024.
pub(super) fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" | "kb" => 10,
        "m" | "mib" | "mb" => 20,
        "g" | "gib" | "gb" => 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests;
