//! Compiles every sample in C and Rust.

use super::markdown::{Block, Document};
use super::{documents, text_of};
use crate::exchange::Outcome;
use crate::run::{Scratch, command, exists, line, output, root};

/// The blocks in these languages, each with its location.
fn blocks(languages: &[&str]) -> Result<Vec<(String, Block)>, String> {
    let mut found = Vec::new();
    for file in documents()? {
        for block in Document::parse(&text_of(&file)?).blocks {
            if languages.contains(&block.language.as_str()) {
                found.push((format!("{file}:{}", block.line), block));
            }
        }
    }
    match found.len() {
        0 => Err(format!("no sample in {languages:?} found")),
        _ => Ok(found),
    }
}

/// Compiles each block of C and C++ by itself, with `undertick.h`.
pub fn c() -> Result<Outcome, String> {
    if !exists(&["cc", "--version"]) {
        return Ok(Outcome::Skipped("no cc here".to_owned()));
    }
    let scratch = Scratch::new("samples")?;
    let blocks = blocks(&["c", "cpp"])?;
    for (place, block) in &blocks {
        let file = scratch.path(&format!("sample.{}", block.language));
        std::fs::write(&file, &block.text).map_err(|e| format!("{file}: {e}"))?;
        let warnings = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-result"];
        let mut words = vec!["cc", "-fsyntax-only", "-O2", "-Iinclude"];
        words.extend(warnings);
        words.push(&file);
        output(command(&words)).map_err(|e| format!("{place}: {e}"))?;
    }
    Ok(Outcome::Said(format!("{} compiled", blocks.len())))
}

/// Manifest with the crates that samples may use, in addition to their existing dependencies.
const MANIFEST: &str = "[package]\nname = \"samples\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
    [workspace]\n[dependencies]\nundertick = { path = \"../../crates/undertick\" }\n\
    undertick-tracing = { path = \"../../crates/tracing\" }\n\
    undertick-opentelemetry = { path = \"../../crates/opentelemetry\" }\n\
    opentelemetry_sdk = { version = \"0.33\", default-features = false, features = [\"trace\"] }\n\
    undertick-tokio = { path = \"../../crates/tokio\" }\n\
    tokio = { version = \"1\", default-features = false, features = [\"rt-multi-thread\"] }\n\
    tracing-subscriber = { version = \"0.3\", default-features = false, features = [\"registry\", \"std\"] }\n";

/// Compiles all blocks of Rust as one program in `target`, with the workspace's versions of all
/// other crates.
pub fn rust() -> Result<Outcome, String> {
    let blocks = blocks(&["rust"])?;
    let mut program = String::from("fn main() {}\n");
    for (n, (place, block)) in blocks.iter().enumerate() {
        let text = &block.text;
        program += &format!("// {place}\n#[allow(unused)]\nfn sample_{n}() {{\n{text}}}\n");
    }
    let dir = root().join("target/samples");
    let write = |file: &str, text: &str| {
        std::fs::write(dir.join(file), text).map_err(|e| format!("{file}: {e}"))
    };
    std::fs::create_dir_all(dir.join("src")).map_err(|e| format!("{}: {e}", dir.display()))?;
    write("Cargo.toml", MANIFEST)?;
    write("Cargo.lock", &text_of("Cargo.lock")?)?;
    write("src/main.rs", &program)?;
    let manifest = dir.join("Cargo.toml");
    let manifest = manifest.to_string_lossy();
    output(line(
        "cargo check --release --quiet --target-dir target/samples/target --manifest-path {}",
        &[&manifest],
    ))?;
    Ok(Outcome::Said(format!("{} compiled", blocks.len())))
}
