//! `#[bench]` of Rust, which nightly compilers have.

use std::ffi::OsString;

use super::{How, Said, middles};

pub(super) const LIST: &[&str] = &["--bench", "--list", "--format=terse"];

pub(super) fn arguments(how: &How<'_>) -> Vec<OsString> {
    let mut arguments = vec![OsString::from("--bench")];
    if let Some(name) = how.only {
        arguments.extend(["--exact", name].map(OsString::from));
    }
    arguments
}

/// Reads lines like `test sort::eight ... bench:       1,234.50 ns/iter (+/- 12.00)`.
pub(super) fn read(text: &str) -> Result<Said, String> {
    let measured = text.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("test ")?.split_once(" ... bench:")?;
        let (time, _) = rest.trim().split_once(" ns/iter")?;
        let ns = time.trim().replace(',', "").parse().ok()?;
        Some((name.trim().to_owned(), ns, 1))
    });
    Ok(Said {
        benchmarks: middles(measured),
        ..Said::default()
    })
}
