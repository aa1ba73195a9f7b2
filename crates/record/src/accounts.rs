//! The accounts of finished rings, in a separate file while the recording runs, so that they
//! survive a recorder that is killed.
//!
//! Each account is a line of JSON. It is added when the ring's events are in their file and
//! before the ring is taken away. So a ring without a line is still in the session directory; one
//! that has both was being finished, and is finished again.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};
use undertick_format::TraceError;
use undertick_format::manifest::{Ring, Sampled};

use crate::trace_dir::TraceDir;

/// Name of the file in the trace directory.
pub(crate) const ACCOUNTS_FILE: &str = "rings.jsonl";

/// Most bytes of it that are read back: a line has some 150 bytes, and there are not numbers for
/// more than a million rings.
const MOST_BYTES: u64 = 256 << 20;

/// A ring that is finished.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ended {
    pub(crate) ring: Ring,
    /// Executions of its sampled spans.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) sampled: Vec<Sampled>,
}

/// Rings of which no events are stored any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GivenUp {
    pub(crate) rings: u64,
    pub(crate) events: u64,
}

/// The recorded program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Program {
    pub(crate) pid: i32,
    /// When it began ([`started`]).
    pub(crate) started: u64,
    /// It was running before the recorder attached.
    pub(crate) attached: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Program(Program),
    Ended(Ended),
    GivenUp(GivenUp),
}

/// The content of the file.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) program: Option<Program>,
    /// Accounts by ring number.
    pub(crate) ended: BTreeMap<i32, Ended>,
    pub(crate) given_up: GivenUp,
}

/// The file, open for writing.
#[derive(Debug)]
pub(crate) struct Accounts {
    trace: TraceDir,
    file: File,
    program: Option<Program>,
}

impl Accounts {
    /// Opens the file of a trace, or makes it; also returns its content.
    pub(crate) fn open(trace: &TraceDir) -> Result<(Self, Contents), TraceError> {
        let contents = read(trace);
        let mut file = (trace.append(ACCOUNTS_FILE))
            .map_err(TraceError::io(&trace.join(ACCOUNTS_FILE), "cannot write"))?;
        // A recorder may have been killed in the middle of a line.
        let _ = file.write_all(b"\n");
        let program = contents.program;
        let accounts = Self {
            trace: trace.clone(),
            file,
            program,
        };
        Ok((accounts, contents))
    }

    pub(crate) fn is_of(&mut self, program: Program) {
        self.program = Some(program);
        self.add(&[Line::Program(program)]);
    }

    /// Adds rings that are finished.
    pub(crate) fn ended(&mut self, ended: &[Ended]) {
        let lines: Vec<Line> = ended.iter().cloned().map(Line::Ended).collect();
        self.add(&lines);
    }

    fn add(&mut self, lines: &[Line]) {
        // A disk that refuses this refuses the events too, and that is reported.
        let _ = self.file.write_all(&text(lines));
    }

    /// Rewrites the file with only these accounts.
    pub(crate) fn replace(&mut self, ended: &[Ended], given_up: GivenUp) -> io::Result<()> {
        let mut lines: Vec<Line> = self.program.map(Line::Program).into_iter().collect();
        lines.push(Line::GivenUp(given_up));
        lines.extend(ended.iter().cloned().map(Line::Ended));
        self.trace.replace(ACCOUNTS_FILE, &text(&lines))?;
        self.file = self.trace.append(ACCOUNTS_FILE)?;
        Ok(())
    }
}

fn text(lines: &[Line]) -> Vec<u8> {
    let mut text = Vec::new();
    for line in lines {
        let _ = serde_json::to_writer(&mut text, line);
        text.push(b'\n');
    }
    text
}

/// Returns the content of a trace's file; torn lines are left out.
pub(crate) fn read(trace: &TraceDir) -> Contents {
    let mut text = Vec::new();
    if let Ok(file) = trace.read(ACCOUNTS_FILE) {
        let _ = file.take(MOST_BYTES).read_to_end(&mut text);
    }
    let mut contents = Contents::default();
    for line in text.split(|byte| *byte == b'\n') {
        match serde_json::from_slice(line) {
            Ok(Line::Program(program)) => contents.program = Some(program),
            Ok(Line::Ended(ended)) => {
                contents.ended.insert(ended.ring.ring, ended);
            }
            Ok(Line::GivenUp(given_up)) => contents.given_up = given_up,
            Err(_) => {}
        }
    }
    contents
}

/// Removes the file, once the manifest has its content.
pub(crate) fn remove(trace: &TraceDir) {
    trace.remove(ACCOUNTS_FILE);
}

/// Returns the start of a process, clock ticks since boot (field 22 of /proc/PID/stat); `None` if there
/// is no such process. With its id it identifies the process.
pub(crate) fn started(pid: i32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(") ")?;
    after_name.split(' ').nth(19)?.parse().ok()
}
