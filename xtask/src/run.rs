//! Running commands.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Durations of commands, s, with the commands.
static TOOK: Mutex<Vec<(f64, String)>> = Mutex::new(Vec::new());

/// A timer of a command, from its creation until it is dropped.
struct Stopwatch<'a> {
    started: Instant,
    text: &'a str,
}

impl<'a> Stopwatch<'a> {
    fn start(text: &'a str) -> Self {
        let started = Instant::now();
        Self { started, text }
    }
}

impl Drop for Stopwatch<'_> {
    fn drop(&mut self) {
        let took = (self.started.elapsed().as_secs_f64(), self.text.to_owned());
        TOOK.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(took);
    }
}

/// The commands that took longest so far, one a line, without those under ten seconds.
pub fn slowest(most: usize) -> Vec<String> {
    let mut all = TOOK.lock().unwrap_or_else(PoisonError::into_inner).clone();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    (all.iter().take(most))
        .filter(|(seconds, _)| *seconds >= 10.0)
        .map(|(seconds, text)| {
            let words: String = text.replace('"', "").chars().take(110).collect();
            format!("{seconds:>6.0} s  {words}")
        })
        .collect()
}

/// Root directory of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in the repository")
        .to_owned()
}

/// A command in the repository, from its words.
pub fn command(words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(root());
    command
}

/// A command in the repository, from a line of words; each `{}` in it stands for one of the values,
/// in their order.
pub fn line(words: &str, values: &[&str]) -> Command {
    let mut values = values.iter();
    let words: Vec<&str> = (words.split_whitespace())
        .map(|word| match word {
            "{}" => *values.next().expect("a value for each place"),
            word => word,
        })
        .collect();
    command(&words)
}

/// Runs a command to its end, with this process's output.
pub fn run(mut command: Command) -> Result<(), String> {
    let text = format!("{command:?}");
    println!("\n$ {text}");
    let _took = Stopwatch::start(&text);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("failed ({status}): {text}")),
        Err(error) => Err(format!("could not run {text}: {error}")),
    }
}

/// Builds the program and everything that the benchmarks call, as users build them.
pub fn build_workspace() -> Result<(), String> {
    let words = ["cargo", "build", "--release", "--locked", "--workspace"];
    run(command(&words))
}

/// Runs a command and passes each line of its standard output to a function, which says whether to
/// show it.
pub fn run_lines(
    mut command: Command,
    mut is_shown: impl FnMut(&str) -> bool,
) -> Result<(), String> {
    let text = format!("{command:?}");
    println!("\n$ {text}");
    let _took = Stopwatch::start(&text);
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("could not run {text}: {e}"))?;
    let out = child.stdout.take().expect("piped");
    for line in BufReader::new(out).lines() {
        let line = line.map_err(|e| e.to_string())?;
        if is_shown(&line) {
            println!("{line}");
        }
    }
    let status = child.wait().map_err(|e| e.to_string())?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("failed ({status}): {text}"))
    }
}

/// Runs a command quietly and returns its standard output.
pub fn output(mut command: Command) -> Result<String, String> {
    let text = format!("{command:?}");
    let _took = Stopwatch::start(&text);
    let output = command
        .output()
        .map_err(|e| format!("could not run {text}: {e}"))?;
    if !output.status.success() {
        return Err(format!(
            "failed ({}): {text}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    String::from_utf8(output.stdout).map_err(|e| e.to_string())
}

/// Whether a program can be run at all.
pub fn exists(words: &[&str]) -> bool {
    command(words)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// A fresh directory that is removed when dropped.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Result<Self, String> {
        let path =
            std::env::temp_dir().join(format!("undertick-xtask-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Self(path))
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Compiles a C program with points in it.
pub fn c_program(source: &str, program: &str) -> Command {
    command(&["cc", "-O2", "-Iinclude", source, "-o", program])
}
