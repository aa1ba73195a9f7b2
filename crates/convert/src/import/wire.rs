//! Parses protobuf from bytes, as the consecutive fields of a message. It accepts any bytes: the
//! fields end where the bytes are not valid.

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    pub(super) const fn number(self) -> u64 {
        match self {
            Self::Number(number) => number,
            Self::Bytes(_) => 0,
        }
    }

    pub(super) const fn bytes(self) -> &'a [u8] {
        match self {
            Self::Number(_) => &[],
            Self::Bytes(bytes) => bytes,
        }
    }

    pub(super) fn text(self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }

    /// Returns the numbers of a repeated field, packed or not.
    pub(super) fn varints(self) -> Vec<u64> {
        match self {
            Self::Number(number) => vec![number],
            Self::Bytes(mut bytes) => std::iter::from_fn(|| varint(&mut bytes)).collect(),
        }
    }

    /// As [`Self::varints`], for numbers of eight bytes each.
    pub(super) fn fixed(self) -> Vec<u64> {
        match self {
            Self::Number(number) => vec![number],
            Self::Bytes(bytes) => (bytes.chunks_exact(8))
                .map(|eight| u64::from_le_bytes(eight.try_into().expect("8 bytes")))
                .collect(),
        }
    }
}

/// The fields of a message: number and value.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, Value<'a>);

    fn next(&mut self) -> Option<(u64, Value<'a>)> {
        let key = varint(&mut self.0)?;
        let value = match key & 7 {
            0 => Value::Number(varint(&mut self.0)?),
            1 => Value::Number(u64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            2 => {
                let length = usize::try_from(varint(&mut self.0)?).ok()?;
                Value::Bytes(self.take(length)?)
            }
            5 => Value::Number(u64::from(u32::from_le_bytes(
                self.take(4)?.try_into().ok()?,
            ))),
            _ => {
                self.0 = &[];
                return None;
            }
        };
        Some((key >> 3, value))
    }
}

impl<'a> Fields<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        match self.0.split_at_checked(bytes) {
            Some((taken, rest)) => {
                self.0 = rest;
                Some(taken)
            }
            None => {
                self.0 = &[];
                None
            }
        }
    }

    /// Whether all bytes are valid fields.
    pub(super) fn is_whole(mut self) -> bool {
        while !self.0.is_empty() {
            if self.next().is_none() {
                return false;
            }
        }
        true
    }

    /// The value of the last field of that number, which is the valid one.
    pub(super) fn last(self, number: u64) -> Option<Value<'a>> {
        let of = self.filter(|&(found, _)| found == number);
        of.last().map(|(_, value)| value)
    }
}

pub(super) fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if shift < 64 {
            value |= u64::from(byte & 0x7f) << shift;
        }
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests;
