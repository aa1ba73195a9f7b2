//! Layout of the files that the recorder and the library share, as specified in `docs/format.md`,
//! section 9.

pub use undertick_ring::layout::FIRST_FUNCTION;

/// Entry of a table: the function was called, but there was no number left.
pub(crate) const BEYOND: u32 = 0x1_0000;

pub(crate) const CONTROL_FILE: &str = "functions";
pub(crate) const ASKED_FILE: &str = "functions-asked";
/// Prefix of a table's file name. Device and inode follow, 16 hexadecimal digits each, with a
/// hyphen.
pub(crate) const TABLE_PREFIX: &str = "functions-";

/// The control page.
pub(crate) mod control {
    pub(crate) const BYTES: usize = 4096;
    pub(crate) const MAGIC: u64 = 0x3130_4e46_5443_5455; // UTCTFN01
    pub(crate) const OFF_ALIVE: usize = 8;
    pub(crate) const OFF_NEXT_EVENT: usize = 12;
    pub(crate) const OFF_BEYOND: usize = 16;
    pub(crate) const OFF_BEYOND_CALLS: usize = 24;
    pub(crate) const OFF_UNANSWERED: usize = 32;
}

/// The table of a file.
pub(crate) mod file {
    pub(crate) const MAGIC: u64 = 0x3130_4e46_4254_5455; // UTTBFN01
    pub(crate) const HEADER_BYTES: usize = 32;
    pub(crate) const ENTRY_BYTES: usize = 24;
    /// Position of the name of the file itself: offset, then length.
    pub(crate) const OFF_NAME: usize = 16;
}

/// The question of a program for a table.
pub(crate) mod ask {
    pub(crate) const MAGIC: u32 = 0x4b53_4155; // UASK
    pub(crate) const HEADER_BYTES: usize = 32;
    pub(crate) const MOST_PATH_BYTES: usize = 1024;
}
