//! Functions that the commands share: printing a document, Ctrl-C, levels.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use clap::{Args, ValueEnum};
use serde::Serialize;
use tempfile::TempDir;

use crate::Failure;

/// Prints the document as JSON, or as the result of `text`.
pub fn document<T: Serialize>(
    json: bool,
    document: &T,
    text: impl FnOnce() -> String,
) -> Result<u8, Failure> {
    if json {
        return as_json(document);
    }
    // The text may contain names and contents of files.
    print(&undertick_text::clean_lines(&text()))
}

/// Prints the document as JSON.
pub fn as_json<T: Serialize>(document: &T) -> Result<u8, Failure> {
    print(&(serde_json::to_string_pretty(document).map_err(Failure::usage)? + "\n"))
}

/// Prints a text; a closed reader (`| head`) is not an error.
pub fn print(text: &str) -> Result<u8, Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::machine(format!("standard output: {e}")))
        }
        _ => Ok(0),
    }
}

/// How every command speaks.
#[derive(Args, Clone, Copy, Debug)]
pub struct Manners {
    /// No progress and no summary on standard error: errors, losses and warnings alone
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// When to use colours; auto: on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
}

/// When to write colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    Auto,
    Always,
    Never,
}

static MANNERS: OnceLock<Manners> = OnceLock::new();

/// Sets how this process speaks; the first call counts.
pub fn set_manners(manners: Manners) {
    let _ = MANNERS.set(manners);
}

/// Whether only errors and losses are to be said.
pub fn is_quiet() -> bool {
    MANNERS.get().is_some_and(|manners| manners.quiet)
}

/// Whether to write colours: as asked, or where standard output is a terminal whose user wants them
/// (<https://no-color.org>).
pub fn has_colours() -> bool {
    match MANNERS.get().map(|manners| manners.color) {
        Some(Color::Always) => return true,
        Some(Color::Never) => return false,
        _ => {}
    }
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    std::io::stdout().is_terminal() && !is_set("NO_COLOR") && !is_dumb
}

/// Exit status of a shell for a command that does not exist.
const NO_SUCH_COMMAND: i32 = 127;

/// Prints a text; where that is a terminal with fewer lines, through `$PAGER`, or `less`.
pub fn paged(text: &str) -> Result<u8, Failure> {
    let lines = (std::io::stdout().is_terminal())
        .then(crossterm::terminal::size)
        .and_then(Result::ok)
        .map_or(usize::MAX, |(_, lines)| usize::from(lines));
    let pager = std::env::var("PAGER").unwrap_or_else(|_| "less".to_owned());
    if text.lines().count() < lines || pager.trim().is_empty() {
        return print(text);
    }
    let mut command = Command::new("sh");
    command.args(["-c", &pager]).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        command.env("LESS", "FRX"); // as git does: the text stays on the screen
    }
    // While the pager runs, Ctrl-C is for the pager.
    let ignored = Arc::new(AtomicBool::new(false));
    let handler = signal_hook::flag::register(signal_hook::consts::SIGINT, ignored);
    let shown = command.spawn().and_then(|mut child| {
        if let Some(mut input) = child.stdin.take() {
            // It may end before it has read everything.
            let _ = input.write_all(text.as_bytes());
        }
        child.wait()
    });
    if let Ok(handler) = handler {
        signal_hook::low_level::unregister(handler);
    }
    match shown {
        Ok(status) if status.code() != Some(NO_SUCH_COMMAND) => Ok(0),
        _ => print(text),
    }
}

/// Columns of the terminal that standard output is, or 100 where it is none.
pub fn columns() -> usize {
    const USUAL: usize = 100;
    let is_terminal = std::io::stdout().is_terminal();
    (is_terminal.then(crossterm::terminal::size))
        .and_then(Result::ok)
        .map_or(USUAL, |(columns, _)| usize::from(columns))
}

/// Writes the page if it was requested.
pub fn page(file: Option<&Path>, text: impl FnOnce() -> String) -> Result<(), Failure> {
    file.map_or(Ok(()), |file| {
        std::fs::write(file, text())
            .map_err(|e| Failure::machine(format!("{}: cannot write: {e}", file.display())))
    })
}

/// Returns a new temporary directory, which is deleted with the value.
pub fn scratch() -> Result<TempDir, Failure> {
    tempfile::tempdir().map_err(|e| {
        let mend = "set TMPDIR to one that can be written";
        Failure::machine(format!("no temporary directory: {e}; {mend}"))
    })
}

/// Maximum number of characters of an error's line.
const MOST_OF_A_LINE: usize = 2000;

/// Returns an error's text without the middle of very long lines, which may quote a file's content.
pub fn shortened(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(shortened_line).collect();
    lines.join("\n")
}

fn shortened_line(line: &str) -> String {
    let count = line.chars().count();
    if count <= MOST_OF_A_LINE {
        return line.to_owned();
    }
    let head: String = line.chars().take(MOST_OF_A_LINE / 2).collect();
    let tail: String = line.chars().skip(count - MOST_OF_A_LINE / 2).collect();
    format!("{head} … {tail}")
}

/// Returns a flag that becomes true at the first Ctrl-C or SIGTERM; the second one ends the
/// program.
pub fn stop_on_signals() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // If there is no handler, Ctrl-C ends the program at once, which loses only figures that
        // were not yet measured.
        let _ = signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)));
    }
    stop
}

/// Returns the level if it lies between 0 and 1.
pub fn level(confidence: f64) -> Result<f64, Failure> {
    if confidence > 0.0 && confidence < 1.0 {
        Ok(confidence)
    } else {
        Err(Failure::usage(format!(
            "--confidence {confidence}: a level lies between 0 and 1, e.g. 0.95"
        )))
    }
}

#[cfg(test)]
mod tests;
