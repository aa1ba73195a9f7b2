//! Running commands.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What commands took.
static TOOK: Mutex<Vec<Took>> = Mutex::new(Vec::new());

/// The time of a command and its CPU time, s, with that of all its processes.
#[derive(Clone)]
struct Took {
    seconds: f64,
    cpu_seconds: Option<f64>,
    text: String,
}

/// A timer of a command, from its creation until it is dropped.
struct Stopwatch<'a> {
    started: Instant,
    cpu_seconds: Option<f64>,
    text: &'a str,
}

impl<'a> Stopwatch<'a> {
    fn start(text: &'a str) -> Self {
        Self {
            started: Instant::now(),
            cpu_seconds: None,
            text,
        }
    }

    /// Waits for the end of the command.
    fn wait(&mut self, mut child: Child) -> std::io::Result<ExitStatus> {
        while let Some(None) = cpu_seconds_of_ended(child.id()) {
            std::thread::sleep(Duration::from_millis(20));
        }
        self.cpu_seconds = cpu_seconds_of_ended(child.id()).flatten();
        child.wait()
    }
}

/// The CPU time of a process that has ended and was not waited for yet; `Some(None)` while it runs,
/// `None` if it is not known here.
fn cpu_seconds_of_ended(id: u32) -> Option<Option<f64>> {
    // Linux shows all systems this many ticks a second.
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name in parentheses may hold anything.
    let words: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| words.get(at)?.parse::<f64>().ok();
    let all = (11..15).map(ticks).sum::<Option<f64>>()?;
    Some((words[0] == "Z").then_some(all / TICKS_PER_SECOND))
}

impl Drop for Stopwatch<'_> {
    fn drop(&mut self) {
        let took = Took {
            seconds: self.started.elapsed().as_secs_f64(),
            cpu_seconds: self.cpu_seconds,
            text: self.text.to_owned(),
        };
        TOOK.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(took);
    }
}

/// The commands that took most so far, one a line, without those under ten seconds.
pub fn slowest(most: usize) -> Vec<String> {
    let mut all = TOOK.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let most_of = |took: &Took| took.cpu_seconds.unwrap_or(0.0).max(took.seconds);
    all.sort_by(|a, b| most_of(b).total_cmp(&most_of(a)));
    (all.iter().take(most))
        .filter(|took| most_of(took) >= 10.0)
        .map(|took| {
            let cpu = (took.cpu_seconds).map_or("?".to_owned(), |cpu| format!("{cpu:.0}"));
            let text = took.text.replace('"', "");
            // The surroundings of a command may be long, and come before it.
            let words: Vec<&str> = (text.split_whitespace())
                .filter(|word| !word.contains('='))
                .collect();
            let words: String = words.join(" ").chars().take(120).collect();
            format!("{:>6.0} s {cpu:>6} s CPU  {words}", took.seconds)
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
    let mut took = Stopwatch::start(&text);
    match command.spawn().and_then(|child| took.wait(child)) {
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
    let mut took = Stopwatch::start(&text);
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
    let status = took.wait(child).map_err(|e| e.to_string())?;
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
