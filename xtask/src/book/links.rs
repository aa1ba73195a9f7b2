//! Checks that every chapter is in the contents and that every link leads somewhere.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use super::markdown::Document;
use super::{documents, text_of};
use crate::exchange::Outcome;
use crate::run::root;

const CONTENTS: &str = "docs/SUMMARY.md";

/// Checks contents and links; the error lists all faults.
pub fn hold() -> Result<Outcome, String> {
    let mut all = BTreeMap::new();
    for file in documents()? {
        all.insert(file.clone(), Document::parse(&text_of(&file)?));
    }
    let mut wrong = not_in_the_contents(&all);
    let mut links = 0;
    for (file, document) in &all {
        for link in &document.links {
            links += 1;
            if let Err(why) = leads_somewhere(&all, file, &link.to) {
                wrong.push(format!("{file}:{}: {}: {why}", link.line, link.to));
            }
        }
    }
    match wrong.as_slice() {
        [] => Ok(Outcome::Said(format!(
            "{links} links in {} files",
            all.len()
        ))),
        _ => Err(format!("\n  {}", wrong.join("\n  "))),
    }
}

fn not_in_the_contents(all: &BTreeMap<String, Document>) -> Vec<String> {
    let Some(contents) = all.get(CONTENTS) else {
        return vec![format!("there is no {CONTENTS}")];
    };
    let named: Vec<String> = (contents.links.iter())
        .map(|link| format!("docs/{}", link.to))
        .collect();
    // Decisions are not chapters; a separate list holds them.
    let is_chapter =
        |file: &&String| file.starts_with("docs/") && !file.starts_with("docs/decisions/");
    let chapters = all.keys().filter(is_chapter);
    let mut wrong = Vec::new();
    for chapter in chapters.filter(|file| *file != CONTENTS) {
        match named.iter().filter(|name| *name == chapter).count() {
            1 => {}
            n => wrong.push(format!("{chapter} is {n} times in {CONTENTS}")),
        }
    }
    wrong
}

/// Whether a link of a file leads to a file of the repository, and to a heading in it.
fn leads_somewhere(
    all: &BTreeMap<String, Document>,
    from: &str,
    to: &str,
) -> Result<(), &'static str> {
    if to.starts_with("https://") || to.starts_with("http://") {
        return Ok(());
    }
    let (path, anchor) = to.split_once('#').unwrap_or((to, ""));
    let file = match path {
        "" => PathBuf::from(from),
        path => plain(&Path::new(from).with_file_name("").join(path)),
    };
    if !root().join(&file).exists() {
        return Err("there is no such file");
    }
    if anchor.is_empty() {
        return Ok(());
    }
    let document = all.get(file.to_string_lossy().as_ref());
    match document.is_some_and(|d| d.anchors.iter().any(|a| a == anchor)) {
        true => Ok(()),
        false => Err("that file has no such heading"),
    }
}

/// A path without `..`.
fn plain(path: &Path) -> PathBuf {
    path.components()
        .fold(PathBuf::new(), |mut plain, part| match part {
            Component::ParentDir => {
                plain.pop();
                plain
            }
            part => plain.join(part),
        })
}

#[cfg(test)]
mod tests;
