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
mod tests {
    use super::*;

    #[test]
    fn times_by_hand() {
        assert_eq!(nanos("2.5ms"), Some(2_500_000.0));
        assert_eq!(nanos("800 ns"), Some(800.0));
        assert_eq!(nanos("0us"), Some(0.0));
        assert_eq!(nanos("-1s"), Some(-1e9));
        for bad in ["", "5", "us", "1h", "1e999s", "nans", "infs", "1 e3s"] {
            assert_eq!(nanos(bad), None, "{bad}");
        }
    }

    #[test]
    fn sizes_by_hand() {
        assert_eq!(bytes("4096"), Some(4096));
        assert_eq!(bytes("33KB"), Some(33_792));
        assert_eq!(bytes("4 KiB"), Some(4096));
        assert_eq!(bytes("1MiB"), Some(1_048_576));
        assert_eq!(bytes("1GiB"), Some(1_073_741_824));
        for bad in [
            "",
            "KiB",
            "1.5MiB",
            "-1KiB",
            "1TiB",
            "99999999999GiB",
            "4xB",
        ] {
            assert_eq!(bytes(bad), None, "{bad}");
        }
    }
}
