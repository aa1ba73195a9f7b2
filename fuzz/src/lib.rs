//! What nobody may trust, and what must not happen whatever it holds: a panic, a loop
//! without an end, memory without a bound.
//!
//! The same functions are run by libFuzzer (`cargo xtask fuzz`, nightly) and, on the
//! seeds and on changed seeds, by an ordinary test (`crates/analyze/tests/fuzz.rs`).

mod imports;
mod raw;
mod ring;
mod text;

/// A target: its name, which is that of its seeds' directory, and what it does with bytes.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: [Target; 10] = [
    ("ring", ring::ring),
    ("block", raw::block),
    ("raw_file", raw::raw_file),
    ("manifest", text::manifest),
    ("table", text::table),
    ("names", text::names),
    ("chrome", imports::chrome),
    ("perfetto", imports::perfetto),
    ("card", imports::card),
    ("text", imports::lines),
];

/// Runs a target by its name.
///
/// # Panics
/// There is none of that name, or it found something.
pub fn run(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|(known, _)| *known == name);
    target.expect("a target").1(bytes);
}
