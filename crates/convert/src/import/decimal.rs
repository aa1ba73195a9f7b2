//! Parses decimal numbers in text exactly.

/// A time in some unit, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ns {
    pub(super) ns: i64,
    /// There were digits below a nanosecond, which were cut off.
    pub(super) is_cut: bool,
}

/// Most digits of a number that are parsed.
const MOST_DIGITS: usize = 40;

/// A decimal number (`-12.5`, `1.5e3`), times 10 to the `exponent`, in whole units rounded down;
/// `None` if the text is not a number or the result does not fit.
pub(super) fn ns(text: &str, exponent: i32) -> Option<Ns> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, power) = match digits.find(['e', 'E']) {
        Some(at) => (&digits[..at], digits[at + 1..].parse::<i32>().ok()?),
        None => (digits, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.len() + fraction.len() > MOST_DIGITS || whole.len() + fraction.len() == 0 {
        return None;
    }
    let mut value = 0i128;
    for digit in whole.bytes().chain(fraction.bytes()) {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value
            .checked_mul(10)?
            .checked_add(i128::from(digit - b'0'))?;
    }
    let power = exponent
        .checked_add(power)?
        .checked_sub(fraction.len() as i32)?;
    if value == 0 {
        return Some(Ns {
            ns: 0,
            is_cut: false,
        });
    }
    let value = if negative { -value } else { value };
    let (value, rest) = if power >= 0 {
        (
            value.checked_mul(10i128.checked_pow(power.unsigned_abs())?)?,
            0,
        )
    } else {
        match 10i128.checked_pow(power.unsigned_abs()) {
            Some(unit) => (value.div_euclid(unit), value.rem_euclid(unit)),
            None => (if negative { -1 } else { 0 }, 1),
        }
    };
    Some(Ns {
        ns: i64::try_from(value).ok()?,
        is_cut: rest != 0,
    })
}

#[cfg(test)]
mod tests;
