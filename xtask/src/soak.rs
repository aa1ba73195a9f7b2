//! A long recording at a rate that a busy program has: does the recorder's memory grow,
//! and is anything lost?

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::run::{Scratch, build_workspace, c_program, command, output, root, run as run_command};
use crate::statistics::median;

/// Events in a second, and threads that write them.
const EVENTS: u64 = 5_000_000;
const THREADS: u64 = 2;
/// Room that an event needs on the disk meanwhile, bytes: what the raw blocks of two
/// threads take, and as much again for the Parquet file that is made of them.
const BYTES_AN_EVENT: u64 = 8;

/// `90s`, `20m`, `8h`, or seconds.
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

/// What a process holds, KiB: of its own, and of the rings that it has mapped.
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

/// Records for so long, and prints rate, memory and losses.
pub fn run(time: &str) -> Result<(), String> {
    let seconds =
        seconds(time).ok_or_else(|| format!("soak {time}: give a time as 90s, 20m or 8h"))?;
    build_workspace()?;
    let scratch = Scratch::new("soak")?;
    let (program, trace) = (scratch.path("soak"), scratch.path("s.ut"));
    let (free, needed) = (
        free_bytes(&scratch.path(""))?,
        EVENTS * BYTES_AN_EVENT * seconds,
    );
    if free < needed {
        return Err(format!(
            "soak {time}: {} GB are needed in {}, {} GB are free; give less time, or another TMPDIR",
            needed / 1_000_000_000,
            std::env::temp_dir().display(),
            free / 1_000_000_000
        ));
    }
    let mut compile = c_program("benches/recorder/soak.c", &program);
    compile.arg("-pthread");
    run_command(compile)?;
    let undertick = root().join("target/release/undertick");
    let mut child = Command::new(undertick)
        .args([
            "record",
            "--no-calibration",
            "--kernel",
            "off",
            "-o",
            &trace,
            "--",
        ])
        .args([
            &program,
            &THREADS.to_string(),
            &EVENTS.to_string(),
            &seconds.to_string(),
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("undertick: {e}"))?;
    let started = Instant::now();
    let mut seen = Vec::new();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
            break status;
        }
        // While it records: putting the trace together takes other memory.
        if started.elapsed().as_secs() < seconds {
            seen.extend(memory_kib(child.id()));
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
    told(&trace, written, seconds, &seen)
}

fn told(trace: &str, written: u64, seconds: u64, seen: &[(u64, u64)]) -> Result<(), String> {
    let text = fs::read_to_string(format!("{trace}/manifest.json"))
        .map_err(|e| format!("{trace}: {e}"))?;
    let manifest: serde_json::Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    let number = |name: &str| manifest[name].as_u64().unwrap_or(u64::MAX);
    let (events, lost) = (number("events"), number("lost"));
    // The first second is the start; a tenth of the others at each end.
    let steady = &seen[seen.len().min(1)..];
    let tenth = (steady.len() / 10).max(1).min(steady.len());
    let ends = |of: fn(&(u64, u64)) -> f64| {
        let (first, last) = (&steady[..tenth], &steady[steady.len() - tenth..]);
        (
            median(&first.iter().map(of).collect::<Vec<f64>>()),
            median(&last.iter().map(of).collect::<Vec<f64>>()),
        )
    };
    let (own, rings) = (ends(|m| m.0 as f64), ends(|m| m.1 as f64));
    println!(
        "soak: {seconds} s, {:.2} million events/s, {events} kept, {lost} lost, kept + lost = written: {}",
        written as f64 / seconds as f64 / 1e6,
        events + lost == written
    );
    println!(
        "  the recorder's own memory {} KiB at the start, {} KiB at the end ({} readings); its rings {} and {} KiB",
        own.0,
        own.1,
        seen.len(),
        rings.0,
        rings.1
    );
    if events + lost == written {
        Ok(())
    } else {
        Err(format!(
            "{written} were written, {events} kept and {lost} lost"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn times() {
        assert_eq!(seconds("90s"), Some(90));
        assert_eq!(seconds("20m"), Some(1200));
        assert_eq!(seconds("8h"), Some(28_800));
        assert_eq!(seconds("5"), Some(5));
        for bad in ["", "h", "0s", "1d", "-1s", "99999999999999999999h"] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
    }
}
