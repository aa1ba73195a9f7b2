//! Sizes and times in the form in which users write them.

use std::time::Duration;

/// Parses a size in bytes, e.g. `4096`, `64KiB`, `16M`, `1GiB`; K, M, G are powers of 1024.
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

/// Parses a time greater than zero, e.g. `500ms`, `10s`, `2m`, `1.5h`.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    match parse_moment(text)? {
        time if time.is_zero() => Err("longer than nothing".to_owned()),
        time => Ok(time),
    }
}

/// As [`parse_time`], but accepts `0s`, too.
pub fn parse_moment(text: &str) -> Result<Duration, String> {
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let digits = text.len() - text.trim_start_matches(is_number).len();
    let (number, unit) = text.split_at(digits);
    let seconds = match unit.trim().to_ascii_lowercase().as_str() {
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "" => return Err("a time has a unit: write for example 500ms, 10s or 2m".to_owned()),
        _ => {
            return Err(format!(
                "unknown unit {unit:?}; write for example 500ms, 10s or 2m"
            ));
        }
    };
    let number: f64 = number
        .parse()
        .map_err(|_| "a time begins with a number, for example 10s".to_owned())?;
    Duration::try_from_secs_f64(number * seconds).map_err(|_| "too long".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Duration, parse, parse_time};

    #[test]
    fn times() {
        assert_eq!(parse_time("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_time("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(parse_time("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(parse_time("1.5h"), Ok(Duration::from_secs(5400)));
        for wrong in [
            "",
            "10",
            "s",
            "0s",
            "-1s",
            "1d",
            "1.2.3s",
            "1e400h",
            "9999999999999999999h",
        ] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
    }

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
