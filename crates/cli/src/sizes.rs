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
        "us" => 1e-6,
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

const A_DAY: Duration = Duration::from_secs(24 * 3600);

/// Parses two times of a day at most, either of which may be zero: `2s..0.5s`.
pub fn parse_before_and_after(text: &str) -> Result<(Duration, Duration), String> {
    let (before, after) = text
        .split_once("..")
        .ok_or("two times, the first for what came before: write for example 2s..0.5s")?;
    let times = (parse_moment(before.trim())?, parse_moment(after.trim())?);
    match times.0.max(times.1) > A_DAY {
        true => Err("at most 24h".to_owned()),
        false => Ok(times),
    }
}

/// Parses a number in a time: `10/min`, `1/s`, `100/24h`.
pub fn parse_at_most(text: &str) -> Result<(u32, Duration), String> {
    let form = "a number and a time: write for example 10/min, 1/s or 100/24h";
    let (number, time) = text.split_once('/').ok_or(form)?;
    let number: u32 = number.trim().parse().map_err(|_| form)?;
    let time = time.trim();
    let time = match time.starts_with(|c: char| c.is_ascii_digit()) {
        true => parse_time(time)?,
        false => parse_time(&format!("1{time}"))?,
    };
    match number {
        0 => Err("at least 1".to_owned()),
        number => Ok((number, time)),
    }
}

/// Parses a share or a chance that is neither 0 nor 1, e.g. `0.01`.
pub fn parse_fraction(text: &str) -> Result<f64, String> {
    let fraction: f64 = text
        .parse()
        .map_err(|_| "a number, for example 0.01 for 1 %".to_owned())?;
    match fraction > 0.0 && fraction < 1.0 {
        true => Ok(fraction),
        false => Err("a number between 0 and 1; 0.01 is 1 %".to_owned()),
    }
}

#[cfg(test)]
mod tests;
