//! Checks of the README and the book: first steps, links, samples.

mod first_steps;
mod links;
mod markdown;
mod samples;

use std::path::Path;

use crate::exchange::{Outcome, Step};
use crate::run::{command, exists, output, root};

/// Runs all checks on the existing build.
pub fn all() -> Vec<Step> {
    let step = |what, result| Step { what, result };
    vec![
        step("first steps of the README", first_steps::of_the_build()),
        step("the book's contents and links", links::hold()),
        step("C samples", samples::c()),
        step("Rust samples", samples::rust()),
        step("the book as pages", pages()),
    ]
}

/// The first steps, including `cargo install`, on a clean checkout; this takes minutes.
pub fn first_steps() -> Result<(), String> {
    first_steps::of_a_clean_checkout().map(|said| println!("{said}"))
}

/// Builds the book with mdBook, if it is installed.
fn pages() -> Result<Outcome, String> {
    if !exists(&["mdbook", "--version"]) {
        return Ok(Outcome::Skipped("no mdbook here".to_owned()));
    }
    output(command(&["mdbook", "build", "docs"]))?;
    let first = root().join("target/book/index.html");
    match first.exists() {
        true => Ok(Outcome::Said(format!("{}", first.display()))),
        false => Err(format!("mdbook made no {}", first.display())),
    }
}

/// The documents that are checked: README, design, format, all chapters.
fn documents() -> Result<Vec<String>, String> {
    let mut documents: Vec<String> = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "python/README.md",
    ]
    .map(str::to_owned)
    .to_vec();
    for dir in ["docs", "docs/book", "docs/decisions"] {
        let files = std::fs::read_dir(root().join(dir)).map_err(|e| format!("{dir}: {e}"))?;
        let names = files.flatten().map(|file| file.file_name());
        let names = names.map(|name| format!("{dir}/{}", name.to_string_lossy()));
        documents.extend(names.filter(|name| name.ends_with(".md")));
    }
    documents.sort();
    Ok(documents)
}

fn text_of(file: impl AsRef<Path>) -> Result<String, String> {
    let path = root().join(file.as_ref());
    std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
}
