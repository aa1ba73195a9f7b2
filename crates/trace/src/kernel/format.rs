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
mod tests {
    use super::*;

    pub(crate) const PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

    #[test]
    fn a_page_and_an_event() {
        let page = PageLayout::parse(PAGE).unwrap();
        assert_eq!((page.data, page.bytes), (16, 4096));
        let format = Format::parse(
            "name: x\nID: 372\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
             \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
             \tfield:pid_t prev_pid;\toffset:2;\tsize:4;\tsigned:1;\n\
             \tfield:__data_loc char[] name;\toffset:6;\tsize:4;\tsigned:0;\n\
             \tfield:u32 state;\toffset:2;\tsize:4;\tsigned:0;\n\nprint fmt: \"a\", REC->b\n",
        )
        .unwrap();
        assert_eq!(format.id, 372);
        let bytes = [1, 2, 0xfe, 0xff, 0xff, 0xff, 7, 8];
        assert_eq!(format.field("common_type").unwrap().get(&bytes), 0x201);
        assert_eq!(format.field("prev_pid").unwrap().get(&bytes), -2);
        assert_eq!(format.field("state").unwrap().get(&bytes), 0xffff_fffe);
        assert_eq!(format.field("prev_comm").unwrap().get(&bytes), 0);
        assert!(format.field("name").is_some() && format.field("nothing").is_none());
        assert_eq!(Format::parse("name: x\n"), None);
        assert_eq!(PageLayout::parse("field: u64 timestamp;\n"), None);
    }
}
