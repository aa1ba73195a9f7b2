//! Sizes as a user writes them.

/// `4096`, `64KiB`, `16M`, `1GiB`: bytes; K, M, G are powers of 1024.
pub fn parse(text: &str) -> Result<u64, String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" | "kb" => 10,
        "m" | "mib" | "mb" => 20,
        "g" | "gib" | "gb" => 30,
        _ => {
            return Err(format!(
                "unknown unit {unit:?}; write for example 64KiB, 16MiB or 1GiB"
            ));
        }
    };
    let number: u64 = number
        .parse()
        .map_err(|_| "a size begins with a number, for example 16MiB".to_owned())?;
    number
        .checked_mul(1 << shift)
        .ok_or_else(|| "too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn sizes() {
        assert_eq!(parse("4096"), Ok(4096));
        assert_eq!(parse("64KiB"), Ok(65_536));
        assert_eq!(parse("16m"), Ok(16 << 20));
        assert_eq!(parse("1GiB"), Ok(1 << 30));
        assert!(
            parse("x").is_err()
                && parse("1TB").is_err()
                && parse("99999999999G").is_err()
                && parse("").is_err()
        );
    }
}
