//! What the commands share: printing a document, Ctrl-C, levels.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;

use crate::Failure;

/// Prints the document as JSON, or as `text` draws it.
pub fn document<T: Serialize>(
    json: bool,
    document: &T,
    text: impl FnOnce() -> String,
) -> Result<u8, Failure> {
    let page = if json {
        serde_json::to_string_pretty(document).map_err(Failure::usage)? + "\n"
    } else {
        // Names and contents of files may be in it.
        undertick_text::clean_lines(&text()).into_owned()
    };
    print(&page)
}

/// Prints; a reader that went away (`| head`) is no error.
pub fn print(text: &str) -> Result<u8, Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure {
            status: 1,
            text: format!("standard output: {e}"),
        }),
        _ => Ok(0),
    }
}

/// Most characters of an error's line.
const MOST_OF_A_LINE: usize = 2000;

/// An error's text without the middle of lines that are longer than anybody reads: a file's
/// content may be quoted in it.
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

/// Turns true at the first Ctrl-C or SIGTERM; the second one ends the program.
pub fn stop_on_signals() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // Without the handler Ctrl-C ends the program at once, which loses no
        // more than what was not yet measured.
        let _ = signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)));
    }
    stop
}

/// A level that intervals can have.
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
mod tests {
    use super::*;

    #[test]
    fn long_lines_of_errors_keep_both_ends() {
        assert_eq!(shortened("a\nb"), "a\nb");
        let long = format!("file: {}: mend", "x".repeat(1 << 20));
        let short = shortened(&format!("one\n{long}"));
        assert!(
            short.starts_with("one\nfile: x") && short.ends_with("x: mend"),
            "{short}"
        );
        assert!(short.chars().count() < MOST_OF_A_LINE + 10);
    }
}
