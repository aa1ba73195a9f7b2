//! A long recording at the rate of a busy program: does the recorder's memory grow, and is anything
//! lost?

use std::fmt;
use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::exchange::{Outcome, Step};
use crate::run::{Scratch, build_workspace, c_program, command, output, root, run as run_command};
use crate::statistics::median;

/// Events per second, and the number of threads that write them.
const EVENTS: u64 = 5_000_000;
const THREADS: u64 = 2;
/// Disk space that an event needs during the recording, bytes: the raw blocks of two threads (2.5),
/// and more than a third in reserve.
const BYTES_AN_EVENT: u64 = 4;

/// Allowed growth of the recorder's memory: a share, and its four buffers for blocks. Their pages
/// are used only once many blocks come together.
const MOST_GROWTH: f64 = 0.1;
const BLOCKS_KIB: f64 = 4.0 * (1024.0 + 256.0);

/// Seconds in a text: `90s`, `20m`, `8h`, or a bare number of seconds.
fn seconds(text: &str) -> Option<u64> {
    let (number, unit) = match text.strip_suffix(['s', 'm', 'h']) {
        Some(number) => (number, &text[number.len()..]),
        None => (text, "s"),
    };
    let each = match unit {
        "h" => 3600,
        "m" => 60,
        _ => 1,
    };
    number
        .parse::<u64>()
        .ok()?
        .checked_mul(each)
        .filter(|&all| all > 0)
}

/// Memory of a process, KiB: private, and of the rings that it has mapped.
fn memory_kib(pid: u32) -> Option<(u64, u64)> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let of = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    Some((of("RssAnon:")?, of("RssShmem:")?))
}

fn free_bytes(dir: &str) -> Result<u64, String> {
    let said = output(command(&["df", "--output=avail", "-B1", dir]))?;
    let last = said.lines().last().unwrap_or_default().trim();
    last.parse().map_err(|_| format!("df of {dir}: {said}"))
}

/// Builds, records for the given time, and prints rate, memory and losses.
pub fn run(time: &str) -> Result<(), String> {
    let seconds =
        seconds(time).ok_or_else(|| format!("soak {time}: give a time as 90s, 20m or 8h"))?;
    build_workspace()?;
    let soaked = record(seconds)??;
    println!("{soaked}");
    soaked.check()
}

/// The short form for CI: half a minute, on the existing build.
pub fn short() -> Step {
    let result = record(30).and_then(|recorded| match recorded {
        Ok(soaked) => soaked.check().map(|()| Outcome::Said(soaked.to_string())),
        Err(no_room) => Ok(Outcome::Skipped(no_room)),
    });
    Step {
        what: "soak",
        result,
    }
}

/// Results of a recording.
struct Soaked {
    seconds: u64,
    written: u64,
    kept: u64,
    lost: u64,
    /// The recorder's memory at the start and at the end, KiB: private, and of its rings.
    own: (f64, f64),
    rings: (f64, f64),
    readings: usize,
}

/// Records for this many seconds; the inner error says that the disk space is not enough.
fn record(seconds: u64) -> Result<Result<Soaked, String>, String> {
    let scratch = Scratch::new("soak")?;
    let (program, trace) = (scratch.path("soak"), scratch.path("s.ut"));
    let (free, needed) = (
        free_bytes(&scratch.path(""))?,
        EVENTS * BYTES_AN_EVENT * seconds,
    );
    if free < needed {
        return Ok(Err(format!(
            "{seconds} s need {:.1} GB in {}, and {:.1} GB are free; give less time, or another TMPDIR",
            needed as f64 / 1e9,
            std::env::temp_dir().display(),
            free as f64 / 1e9
        )));
    }
    let mut compile = c_program("benches/recorder/soak.c", &program);
    compile.arg("-pthread");
    run_command(compile)?;
    let undertick = root().join("target/release/undertick");
    let mut child = Command::new(undertick)
        .args(["record", "--no-calibration", "--kernel", "off"])
        .args(["-o", &trace, "--", &program])
        .args([THREADS, EVENTS, seconds].map(|number| number.to_string()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("undertick: {e}"))?;
    let started = Instant::now();
    let mut seen = Vec::new();
    let mut minutes = 0;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
            break status;
        }
        // Only during the recording: writing the trace afterwards takes other memory.
        let elapsed_s = started.elapsed().as_secs();
        if elapsed_s < seconds {
            seen.extend(memory_kib(child.id()));
        }
        if elapsed_s / 60 > minutes {
            minutes = elapsed_s / 60;
            let (own, rings) = seen.last().copied().unwrap_or_default();
            eprintln!("soak: {minutes} min, {own} KiB of its own, {rings} KiB of rings");
        }
        std::thread::sleep(Duration::from_secs(1));
    };
    let mut said = String::new();
    let out = child.stdout.as_mut().ok_or("no output")?;
    out.read_to_string(&mut said).map_err(|e| e.to_string())?;
    let written: u64 = said
        .trim()
        .parse()
        .map_err(|_| format!("the program said {said:?} ({status})"))?;
    Soaked::from_trace(&trace, written, seconds, &seen).map(Ok)
}

impl Soaked {
    /// Results from the trace's figures and from the samples of the recorder's memory.
    fn from_trace(
        trace: &str,
        written: u64,
        seconds: u64,
        seen: &[(u64, u64)],
    ) -> Result<Self, String> {
        let text = fs::read_to_string(format!("{trace}/manifest.json"))
            .map_err(|e| format!("{trace}: {e}"))?;
        let manifest: serde_json::Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
        let number = |name: &str| manifest[name].as_u64().unwrap_or(u64::MAX);
        // Up to a second after the first ring is the start-up, which a busy machine may draw out; each
        // end is a tenth of the other seconds.
        let begun = seen.iter().position(|memory| memory.1 > 0);
        let steady = &seen[begun.map_or(seen.len(), |begun| begun + 1)..];
        let tenth = (steady.len() / 10).max(1).min(steady.len());
        let (first, last) = (&steady[..tenth], &steady[steady.len() - tenth..]);
        let ends = |of: fn(&(u64, u64)) -> f64| {
            let middle = |some: &[(u64, u64)]| median(&some.iter().map(of).collect::<Vec<f64>>());
            (middle(first), middle(last))
        };
        Ok(Self {
            seconds,
            written,
            kept: number("events"),
            lost: number("lost"),
            own: ends(|m| m.0 as f64),
            rings: ends(|m| m.1 as f64),
            readings: steady.len(),
        })
    }

    /// Checks that losses are counted, not how many there are, which the reader judges: on a shared
    /// machine the recorder cannot ensure that it gets a CPU in time.
    fn check(&self) -> Result<(), String> {
        if self.kept + self.lost != self.written {
            return Err(format!(
                "{} were written, {} kept and {} lost",
                self.written, self.kept, self.lost
            ));
        }
        if self.readings == 0 {
            return Err("the recorder's memory was not seen with rings in it".to_owned());
        }
        let most = self.own.0 * (1.0 + MOST_GROWTH) + BLOCKS_KIB;
        if self.own.1 > most {
            return Err(format!(
                "the recorder had {} KiB of its own at the start, {} KiB at the end",
                self.own.0, self.own.1
            ));
        }
        Ok(())
    }
}

impl fmt::Display for Soaked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} s, {:.2} million events/s, {} kept + {} lost = written: {}; the recorder's own memory {} KiB at \
             the start, {} KiB at the end ({} readings), its rings {} and {} KiB",
            self.seconds,
            self.written as f64 / self.seconds as f64 / 1e6,
            self.kept,
            self.lost,
            self.kept + self.lost == self.written,
            self.own.0,
            self.own.1,
            self.readings,
            self.rings.0,
            self.rings.1
        )
    }
}

#[cfg(test)]
mod tests;
