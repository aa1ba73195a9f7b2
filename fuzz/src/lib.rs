//! Untrusted input, and what it must never cause: a panic, a loop without an end, memory without a
//! bound.
//!
//! libFuzzer runs these functions (`cargo xtask fuzz`, nightly), and an ordinary test runs them on
//! the seeds and on changed seeds (`crates/analyze/tests/fuzz.rs`).

mod imports;
mod raw;
mod ring;
mod text;

/// A target: its name, which is that of its seeds' directory, and its function of bytes.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 11] = [
    ("ring", ring::ring),
    ("block", raw::block),
    ("raw_file", raw::raw_file),
    ("manifest", text::manifest),
    ("table", text::table),
    ("names", text::names),
    ("chrome", imports::chrome),
    ("perfetto", imports::perfetto),
    ("otlp", imports::otlp),
    ("card", imports::card),
    ("text", imports::lines),
];

/// Runs a target by its name.
///
/// # Panics
/// There is no target of that name, or the target found something.
pub fn run(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|(known, _)| *known == name);
    target.expect("a target").1(bytes);
}
