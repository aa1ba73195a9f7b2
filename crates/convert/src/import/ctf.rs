//! The Common Trace Format, as LTTng writes it. `babeltrace2` reads it, and its text output is
//! parsed here.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use undertick_format::schema::Kind;
use undertick_format::{TraceError, input};

use super::SourceInfo;
use super::decimal;
use super::detect::any_metadata;
use super::edges::Edge;
use super::intake::{At, Id, Intake};
use super::kernel_rows::{KernelRows, Switch};
use super::lines::for_each_line;

/// Depth to which directories in a trace are searched.
const DEEPEST: usize = 16;
const READER: &str = "babeltrace2";
/// How the reader is asked for text.
const AS_TEXT: &str = "--clock-seconds --no-delta --names=all --fields=trace,trace:hostname,trace:domain,trace:procname,trace:vpid";
/// Most bytes kept of the reader's error stream.
const MOST_SAID: u64 = 1 << 20;

pub(super) fn read(dir: &Path, intake: &mut Intake) -> Result<SourceInfo, TraceError> {
    // The reader would wait at a FIFO.
    input::only_regular_in(dir, DEEPEST)?;
    let mut child = Command::new(READER)
        .args(AS_TEXT.split(' '))
        .arg(dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| {
            TraceError::Usage(format!(
                "{}: CTF is read by {READER}, which could not be run ({error}); install the package babeltrace2",
                dir.display()
            ))
        })?;
    let errors = child.stderr.take().expect("piped");
    // Read in parallel with its output: otherwise the reader would wait for room.
    let said = std::thread::spawn(move || {
        let mut text = Vec::new();
        let mut errors = errors;
        let _ = (&mut errors).take(MOST_SAID).read_to_end(&mut text);
        let _ = std::io::copy(&mut errors, &mut std::io::sink());
        String::from_utf8_lossy(&text).into_owned()
    });
    let mut events = Events::default();
    let text = BufReader::with_capacity(1 << 18, child.stdout.take().expect("piped"));
    let done = events.all(text, intake, dir);
    if done.is_err() {
        let _ = child.kill();
    }
    let status = child
        .wait()
        .map_err(TraceError::io(dir, "cannot wait for babeltrace2"))?;
    let said = said.join().unwrap_or_default();
    done?;
    let (discarded, packets) = losses(&said);
    intake.lost = intake.lost.saturating_add(discarded);
    if !status.success() {
        let version = reader_version();
        let is_old = version
            .as_deref()
            .is_none_or(|version| !reads_version_2(version));
        if is_old && is_version_2(dir, DEEPEST) {
            return Err(TraceError::Usage(too_old(dir, version.as_deref())));
        }
        let last = said.lines().rev().find(|line| !line.trim().is_empty());
        return Err(TraceError::damaged(
            dir,
            format!(
                "{READER} could not read it: {}",
                last.unwrap_or("no reason given")
            ),
        ));
    }
    Ok(events.info(packets))
}

/// Whether the directory holds a CTF 2 trace: its metadata is JSON objects, each after a record separator, the
/// first one after the header of a packet where there is one.
fn is_version_2(dir: &Path, depth: usize) -> bool {
    any_metadata(dir, depth, &|metadata| {
        let mut start = Vec::new();
        let file = input::open(metadata);
        let has_read = file.is_ok_and(|file| file.take(128).read_to_end(&mut start).is_ok());
        has_read && start.windows(2).any(|two| two == b"\x1e{")
    })
}

/// The version of the reader, as it says it; `None` if it says none.
fn reader_version() -> Option<String> {
    let said = Command::new(READER).arg("--version").output().ok()?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let is_number = |word: &&str| word.starts_with(|first: char| first.is_ascii_digit());
    said.split_whitespace().find(is_number).map(str::to_owned)
}

/// Whether a reader of that version reads CTF 2.
fn reads_version_2(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (2, 1)
}

/// Why a CTF 2 trace could not be read by a reader of that version, and what helps.
fn too_old(dir: &Path, version: Option<&str>) -> String {
    format!(
        "{}: a CTF 2 trace (the default of LTTng 2.15). {READER} reads CTF 2 from version 2.1 on; this machine has \
         {}. Install 2.1; or convert the trace to text on a machine that has it, {READER} {AS_TEXT} TRACE > TEXT, and \
         import that with --from ctf; or record again after lttng create --trace-format=ctf-1.8",
        dir.display(),
        version.unwrap_or("an unknown version")
    )
}

/// Parses what the reader prints.
pub(super) fn read_text(
    dir: &Path,
    text: impl BufRead,
    intake: &mut Intake,
) -> Result<SourceInfo, TraceError> {
    let mut events = Events::default();
    events.all(text, intake, dir)?;
    Ok(events.info(0))
}

/// Returns the events and packets that the tracer discarded, as the reader reports them.
fn losses(said: &str) -> (u64, u64) {
    let (mut events, mut packets) = (0u64, 0u64);
    for line in said.lines() {
        let Some((_, rest)) = line.split_once("racer discarded ") else {
            continue;
        };
        let mut words = rest.split_whitespace();
        let count = words
            .next()
            .and_then(|word| word.parse().ok())
            .unwrap_or(1u64);
        if words.next().is_some_and(|word| word.starts_with("packet")) {
            packets = packets.saturating_add(count);
        } else {
            events = events.saturating_add(count);
        }
    }
    (events, packets)
}

#[derive(Default)]
struct Events {
    rows: KernelRows,
    host: Option<String>,
    process: Option<String>,
    without_thread: u64,
}

impl Events {
    fn all(
        &mut self,
        lines: impl BufRead,
        intake: &mut Intake,
        dir: &Path,
    ) -> Result<(), TraceError> {
        for_each_line(dir, lines, |line| self.take(line, intake))
    }

    fn info(self, packets: u64) -> SourceInfo {
        let mut notes = Vec::new();
        if packets > 0 {
            notes.push(format!(
                "the tracer discarded {packets} packets; how many events were in them is not known"
            ));
        }
        if self.without_thread > 0 {
            notes.push(format!(
                "{} events do not say of which thread they are and stand in one of their CPU: `lttng add-context -u -t vpid -t vtid` before the next recording",
                self.without_thread
            ));
        }
        SourceInfo {
            clock: "ctf",
            is_unix: true,
            host: self.host,
            process: self.process,
            notes,
            ..SourceInfo::default()
        }
    }

    fn take(&mut self, line: &str, intake: &mut Intake) -> Result<(), TraceError> {
        if line.trim().is_empty() {
            return Ok(());
        }
        let Some(event) = Event::parse(line) else {
            intake.left_out("line that is no event");
            return Ok(());
        };
        let cpu = event
            .number("cpu_id")
            .and_then(|cpu| u32::try_from(cpu).ok());
        if self.host.is_none() {
            self.host = event.field("trace:hostname").map(unquoted);
            self.process = event.field("procname").map(unquoted);
        }
        let tid = ["vtid", "tid"].iter().find_map(|name| event.number(name));
        let pid = ["vpid", "pid", "trace:vpid"]
            .iter()
            .find_map(|name| event.number(name));
        if self.of_kernel(&event, cpu, tid.unwrap_or(0) as i32, intake)? {
            return Ok(());
        }
        let (pid, tid) = match (pid, tid) {
            (pid, Some(tid)) => (Id::Number(pid.unwrap_or(tid)), Id::Number(tid)),
            (pid, None) => {
                self.without_thread += 1;
                let of_cpu = format!("cpu {}", cpu.unwrap_or(0));
                (Id::Number(pid.unwrap_or(0)), Id::Text(of_cpu))
            }
        };
        let Some(track) = intake.thread(&pid, &tid) else {
            return Ok(());
        };
        if let Some(name) = event
            .field("procname")
            .or_else(|| event.field("pthread_id"))
        {
            intake.name_thread_once(track, &unquoted(name));
        }
        let at = At {
            track,
            ns: event.ns,
            cpu,
        };
        event.put(at, intake)
    }

    /// Takes the kernel tracer's records of switches and interrupts.
    fn of_kernel(
        &mut self,
        event: &Event<'_>,
        cpu: Option<u32>,
        tid: i32,
        intake: &mut Intake,
    ) -> Result<bool, TraceError> {
        let number = |name| event.number(name).and_then(|n| i32::try_from(n).ok());
        let kind = match event.name {
            "sched_switch" => {
                let (Some(out), Some(into)) = (number("prev_tid"), number("next_tid")) else {
                    return Ok(false);
                };
                let switch = Switch {
                    out,
                    is_preempted: number("prev_state") == Some(0),
                    into,
                };
                KernelRows::switch(intake, event.ns, cpu, switch)?;
                return Ok(true);
            }
            "irq_handler_entry" | "irq_handler_exit" => Kind::Interrupt,
            "irq_softirq_entry" | "irq_softirq_exit" => Kind::SoftInterrupt,
            _ => return Ok(false),
        };
        let Some(cpu) = cpu else { return Ok(false) };
        if event.name.ends_with("_entry") {
            let line = number("irq").or_else(|| number("vec")).unwrap_or(0);
            self.rows.enter(intake, event.ns, cpu, (kind, line as u16));
        } else {
            self.rows.exit(intake, event.ns, cpu, tid, kind)?;
        }
        Ok(true)
    }
}

/// A line of the reader: `timestamp = T, trace = P, ..., name = N, SCOPE = { F = V, ... },
/// ...`.
struct Event<'a> {
    ns: i64,
    name: &'a str,
    /// All fields but those of the event itself.
    around: Vec<(&'a str, &'a str)>,
    /// The fields of the event itself.
    own: Vec<(&'a str, &'a str)>,
}

impl<'a> Event<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut event = Self {
            ns: 0,
            name: "",
            around: Vec::new(),
            own: Vec::new(),
        };
        let mut has_time = false;
        for (name, value) in fields(line) {
            match name {
                "timestamp" => {
                    event.ns = decimal::ns(value, 9)?.ns;
                    has_time = true;
                }
                "name" if event.name.is_empty() => event.name = value,
                "event.fields" => event.own = fields(inner(value)).collect(),
                _ if value.starts_with('{') => event.around.extend(fields(inner(value))),
                _ => event.around.push((name, value)),
            }
        }
        (has_time && !event.name.is_empty()).then_some(event)
    }

    fn field(&self, name: &str) -> Option<&'a str> {
        let mut all = self.around.iter().chain(&self.own);
        all.find(|(known, _)| *known == name)
            .map(|&(_, value)| value)
    }

    fn number(&self, name: &str) -> Option<i64> {
        self.field(name).and_then(integer)
    }

    fn put(&self, at: At, intake: &mut Intake) -> Result<(), TraceError> {
        // Functions of a program built with -finstrument-functions; each is a span.
        let of_function = |name: String| match self.field("addr") {
            Some(addr) if self.name.contains("cyg_profile") => format!("function {addr}"),
            _ => name,
        };
        match Edge::from_name(self.name) {
            Edge::Begin(name) => {
                let number = intake.event(&of_function(name));
                intake.begin(at, number)
            }
            Edge::End(name) => {
                let number = intake.event(&of_function(name));
                intake.end(at, Some(number))
            }
            Edge::Neither => {
                let number = intake.event(self.name);
                let mut integers = self.own.iter().filter_map(|(_, value)| integer(value));
                let first = integers.next();
                let payload = first.filter(|_| integers.next().is_none());
                intake.instant(at, number, payload.unwrap_or(0))
            }
        }
    }
}

/// Parses a number: `-5`, `0x7F`, and with its name `( "RUNNING" : container = 0 )`.
fn integer(text: &str) -> Option<i64> {
    let text = text.strip_prefix('(').map_or(text, |inner| {
        inner
            .rsplit("container = ")
            .next()
            .unwrap_or("")
            .trim_end_matches([')', ' '])
    });
    match text.strip_prefix("0x") {
        Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16)
            .ok()
            .map(u64::cast_signed),
        None => text.parse().ok(),
    }
}

fn inner(group: &str) -> &str {
    let group = group.strip_prefix('{').unwrap_or(group);
    group.strip_suffix('}').unwrap_or(group).trim()
}

fn unquoted(value: &str) -> String {
    value.trim_matches('"').to_owned()
}

/// Splits `name = value` pairs at commas of the outermost level.
fn fields(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            rest = rest.trim_start_matches([',', ' ']);
            if rest.is_empty() {
                return None;
            }
            let (piece, after) = rest.split_at(end_of_piece(rest));
            rest = after;
            if let Some((name, value)) = piece.split_once(" = ") {
                return Some((name.trim(), value.trim()));
            }
        }
    })
}

/// Returns the position of the comma that ends the piece, outside of quotes and brackets.
fn end_of_piece(text: &str) -> usize {
    let (mut depth, mut in_text, mut escaped) = (0u32, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'{' | b'[' | b'(' => depth += 1,
            b'}' | b']' | b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => return at,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests;
