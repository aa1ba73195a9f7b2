//! The first steps of a new user, exactly as in the README. Each program is written to the file
//! that its first line names, and each command is run in order in one fresh directory.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::markdown::{Block, Document};
use super::text_of;
use crate::exchange::Outcome;
use crate::run::{Scratch, command, exists, root, run};

const HEADING: &str = "## First steps\n";
/// The command that installs `undertick`; the test of an existing build has that on its path
/// instead.
const INSTALL: &str = "cargo install --path crates/cli --locked --profile dist\n";
/// Intervals that the page and the comparison must name.
const INTERVALS: [&str; 3] = ["request", "read", "write"];

/// Runs the steps with the existing build.
pub fn of_the_build() -> Result<Outcome, String> {
    let bin = root().join("target/release");
    if !bin.join("undertick").exists() {
        return Err(format!("no undertick in {}", bin.display()));
    }
    follow(&steps(&text_of("README.md")?)?, &bin).map(Outcome::Said)
}

/// Runs the steps with the program that the first command installs from a clone of the last commit.
pub fn of_a_clean_checkout() -> Result<String, String> {
    let scratch = Scratch::new("checkout")?;
    let (clone, place) = (scratch.path("undertick"), scratch.path("installed"));
    run(command(&["git", "clone", "-q", "--no-local", ".", &clone]))?;
    let readme = Path::new(&clone).join("README.md");
    let readme = std::fs::read_to_string(&readme).map_err(|e| e.to_string())?;
    let steps = steps(&readme)?;
    let mut install = Command::new("sh");
    install.args(["-ec", INSTALL]).current_dir(&clone);
    install.env("CARGO_INSTALL_ROOT", &place);
    run(install)?;
    follow(&steps, &Path::new(&place).join("bin"))
}

/// The blocks after the block that installs.
fn steps(readme: &str) -> Result<Vec<Block>, String> {
    let section = (readme.split(HEADING).nth(1)).ok_or("README.md has no first steps")?;
    let section = section.split("\n## ").next().unwrap_or(section);
    let blocks = Document::parse(section).blocks;
    let mut steps = blocks
        .into_iter()
        .filter(|block| !block.language.is_empty());
    match steps.next() {
        Some(first) if first.text == INSTALL => Ok(steps.collect()),
        first => Err(format!("the first block is not {INSTALL:?}: {first:?}")),
    }
}

fn follow(steps: &[Block], bin: &Path) -> Result<String, String> {
    let scratch = Scratch::new("first-steps")?;
    let browser = browser(&scratch)?;
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{browser}:{path}", bin.display());
    let (mut commands, mut said) = (0, String::new());
    for step in steps {
        match step.language.as_str() {
            "sh" => {
                commands += step.text.lines().count();
                said += &shell(&scratch, &step.text, &path)?;
            }
            _ => write(&scratch, step)?,
        }
    }
    shown(&scratch, &said)?;
    Ok(format!("{commands} commands"))
}

/// Creates a substitute for `xdg-open`, which needs a desktop: a headless browser, or a plain read
/// of the file where there is none.
fn browser(scratch: &Scratch) -> Result<String, String> {
    let opens = match exists(&["chromium", "--version"]) {
        true => "chromium --headless --no-sandbox --disable-gpu --dump-dom \"file://$PWD/$1\"",
        false => "cat \"$1\"",
    };
    let dir = scratch.path("desktop");
    let file = format!("{dir}/xdg-open");
    let text = format!("#!/bin/sh\n{opens} > opened.html 2> browser.txt\n");
    std::fs::create_dir(&dir)
        .and_then(|()| std::fs::write(&file, text))
        .and_then(|()| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)))
        .map_err(|e| format!("{file}: {e}"))?;
    Ok(dir)
}

/// Writes a program to the file that the comment in its first line names.
fn write(scratch: &Scratch, step: &Block) -> Result<(), String> {
    let first = step.text.lines().next().unwrap_or("");
    let name = first.trim_matches(['/', '*', '#', ' ']);
    if name.is_empty() || name.contains([' ', '/']) {
        return Err(format!("no file's name in its first line: {first:?}"));
    }
    std::fs::write(scratch.path(name), &step.text).map_err(|e| format!("{name}: {e}"))
}

/// Runs each line as if typed into a shell in the scratch directory; a failed line ends it.
fn shell(scratch: &Scratch, text: &str, path: &str) -> Result<String, String> {
    let mut shell = Command::new("sh");
    shell.arg("-ex").current_dir(&scratch.0).env("PATH", path);
    shell.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut shell = shell.spawn().map_err(|e| format!("sh: {e}"))?;
    let mut typed = shell.stdin.take().ok_or("no standard input")?;
    typed
        .write_all(text.as_bytes())
        .map_err(|e| e.to_string())?;
    drop(typed);
    let done = shell.wait_with_output().map_err(|e| e.to_string())?;
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    match done.status.success() {
        true => Ok(said),
        false => Err(format!("{} of\n{text}{said}", done.status)),
    }
}

/// Checks that the page was opened, and that it and the comparison name every interval.
fn shown(scratch: &Scratch, said: &str) -> Result<(), String> {
    let page = std::fs::read_to_string(scratch.path("opened.html"))
        .map_err(|e| format!("no page was opened: {e}"))?;
    let (_, compared) = said.split_once("B/A").unwrap_or_default();
    for name in INTERVALS {
        if !page.contains(&format!(">{name}<")) {
            return Err(format!("the page does not name {name}"));
        }
        if !compared.lines().any(|line| line.starts_with(name)) {
            return Err(format!("the comparison does not name {name}:\n{said}"));
        }
    }
    Ok(())
}
