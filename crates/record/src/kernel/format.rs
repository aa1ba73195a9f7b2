//! The layout of the kernel's trace pages and events, from its own description
//! (`events/header_page`, `events/*/*/format`).

use std::collections::HashMap;

/// A field of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    offset: usize,
    size: usize,
    signed: bool,
}

impl Field {
    /// The field's bytes; none where the event is too short to hold them.
    pub(super) fn bytes(self, event: &[u8]) -> Option<&[u8]> {
        event.get(self.offset..self.offset.checked_add(self.size)?)
    }

    /// The field's value; 0 where the event is too short to hold it.
    pub(super) fn get(self, event: &[u8]) -> i64 {
        let Some(bytes) = event.get(self.offset..self.offset + self.size) else {
            return 0;
        };
        let mut whole = [0; 8];
        let n = bytes.len().min(8);
        whole[..n].copy_from_slice(&bytes[..n]);
        let value = u64::from_le_bytes(whole);
        let unused = 64 - 8 * n as u32;
        if unused == 64 {
            0
        } else if self.signed {
            ((value << unused) as i64) >> unused
        } else {
            value as i64
        }
    }
}

/// An event's number and fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Format {
    pub(super) id: u16,
    fields: HashMap<String, Field>,
}

impl Format {
    /// Parses the text of a `format` file; `None` if it has no number.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"))?;
        Some(Self {
            id: id.trim().parse().ok()?,
            fields: fields(text),
        })
    }

    pub(super) fn field(&self, name: &str) -> Option<Field> {
        self.fields.get(name).copied()
    }
}

/// Parses lines like `field:char comm[16]; offset:8; size:16; signed:0;`, with tabs.
fn fields(text: &str) -> HashMap<String, Field> {
    text.lines()
        .filter_map(|line| {
            let mut parts = line.trim().split(';').map(str::trim);
            let declared = parts.next()?.strip_prefix("field:")?;
            let name = declared.rsplit([' ', '\t', '*']).next()?;
            let name = name.split('[').next()?.to_owned();
            let mut number = |what: &str| parts.next()?.strip_prefix(what)?.parse::<usize>().ok();
            let field = Field {
                offset: number("offset:")?,
                size: number("size:")?,
                signed: number("signed:")? != 0,
            };
            Some((name, field))
        })
        .collect()
}

/// Layout of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageLayout {
    pub(super) timestamp: Field,
    pub(super) commit: Field,
    /// Offset of its first event.
    pub(super) data: usize,
    /// Bytes of a whole page.
    pub(super) bytes: usize,
}

impl PageLayout {
    /// Parses the text of `events/header_page`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let fields = fields(text);
        let data = fields.get("data")?;
        Some(Self {
            timestamp: *fields.get("timestamp")?,
            commit: *fields.get("commit")?,
            data: data.offset,
            bytes: data.offset + data.size,
        })
    }
}

#[cfg(test)]
mod tests;
