//! The output of `perf script`: a line for each sample or tracepoint, call chains below it.

use std::io::BufRead;
use std::path::Path;

use undertick_format::TraceError;
use undertick_format::schema::Kind;

use super::SourceInfo;
use super::decimal;
use super::edges::Edge;
use super::intake::{At, Id, Intake};
use super::kernel_rows::{KernelRows, Switch, could_run};
use super::lines::for_each_line;

pub(super) fn read(
    file: &Path,
    reader: impl BufRead,
    intake: &mut Intake,
) -> Result<SourceInfo, TraceError> {
    let mut lines = Lines::default();
    for_each_line(file, reader, |line| lines.take(line, intake))?;
    let mut notes = Vec::new();
    if lines.without_process > 0 {
        notes.push(format!(
            "{} lines have one number for process and thread, taken for both: perf script -F +pid,+tid tells them apart",
            lines.without_process
        ));
    }
    Ok(SourceInfo {
        clock: "perf script",
        notes,
        ..SourceInfo::default()
    })
}

/// The content of a sample's line.
#[derive(Debug, PartialEq, Eq)]
struct Sample<'a> {
    comm: &'a str,
    pid: i32,
    tid: i32,
    /// One number stands for both process and thread.
    is_one_number: bool,
    cpu: Option<u32>,
    ns: i64,
    event: &'a str,
    /// What follows the event.
    rest: &'a str,
}

#[derive(Default)]
struct Lines {
    rows: KernelRows,
    without_process: u64,
}

impl Lines {
    fn take(&mut self, line: &str, intake: &mut Intake) -> Result<(), TraceError> {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            return Ok(());
        }
        let Some(sample) = sample(line) else {
            if !is_of_call_chain(line) {
                intake.left_out("line that is no event");
            }
            return Ok(());
        };
        if let Some(lost) = lost(&sample) {
            intake.lost = intake.lost.saturating_add(lost);
            return Ok(());
        }
        if sample.event.starts_with("PERF_RECORD_") {
            intake.left_out(sample.event);
            return Ok(());
        }
        self.without_process += u64::from(sample.is_one_number);
        if self.of_kernel(&sample, intake)? {
            return Ok(());
        }
        event(&sample, intake)
    }

    /// Takes switches of threads and interrupts; false if the sample is neither.
    fn of_kernel(&mut self, sample: &Sample<'_>, intake: &mut Intake) -> Result<bool, TraceError> {
        let (ns, cpu) = (sample.ns, sample.cpu);
        let hit = match sample.event {
            "sched:sched_switch" => {
                let Some(switch) = switch(sample.rest) else {
                    return Ok(false);
                };
                KernelRows::switch(intake, ns, cpu, switch)?;
                return Ok(true);
            }
            "sched:sched_waking" => {
                let Some(tid) = field(sample.rest, "pid=").and_then(|t| t.parse().ok()) else {
                    return Ok(false);
                };
                KernelRows::waking(intake, ns, cpu, tid, sample.tid)?;
                return Ok(true);
            }
            "irq:irq_handler_entry" | "irq:irq_handler_exit" => Kind::Interrupt,
            "irq:softirq_entry" | "irq:softirq_exit" => Kind::SoftInterrupt,
            _ => return Ok(false),
        };
        let Some(cpu) = cpu else { return Ok(false) };
        if sample.event.ends_with("_entry") {
            let number = field(sample.rest, "irq=").or_else(|| field(sample.rest, "vec="));
            let number = number.and_then(|n| n.parse().ok()).unwrap_or(0);
            self.rows.enter(intake, ns, cpu, (hit, number));
        } else {
            self.rows.exit(intake, ns, cpu, sample.tid, hit)?;
        }
        Ok(true)
    }
}

fn event(sample: &Sample<'_>, intake: &mut Intake) -> Result<(), TraceError> {
    let (pid, tid) = (Id::Number(sample.pid.into()), Id::Number(sample.tid.into()));
    let Some(track) = intake.thread(&pid, &tid) else {
        return Ok(());
    };
    if !sample.comm.is_empty() {
        intake.name_thread_once(track, sample.comm);
    }
    let at = At {
        track,
        ns: sample.ns,
        cpu: sample.cpu,
    };
    match Edge::from_name(sample.event) {
        Edge::Begin(name) => {
            let number = intake.event(&name);
            intake.begin(at, number)
        }
        Edge::End(name) => {
            let number = intake.event(&name);
            intake.end(at, Some(number))
        }
        Edge::Neither => {
            let number = intake.event(sample.event);
            intake.instant(at, number, 0)
        }
    }
}

/// Whether a line of these bytes is a sample of perf.
pub(super) fn has_sample(start: &[u8]) -> bool {
    let text = String::from_utf8_lossy(start);
    text.lines().any(|line| sample(line).is_some())
}

/// Parses `comm pid/tid [cpu] time: period event: rest`, of which much may be missing.
fn sample(line: &str) -> Option<Sample<'_>> {
    let words = Words::new(line);
    // The time is the first word that is a decimal number with a colon.
    let (time_at, time) = words.clone().enumerate().find_map(|(at, word)| {
        let time = word.text.strip_suffix(':')?;
        let (seconds, fraction) = time.split_once('.')?;
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        (digits(seconds) && digits(fraction)).then_some((at, word))
    })?;
    let ns = decimal::ns(time.text.strip_suffix(':')?, 9)?.ns;
    let mut before: Vec<Word<'_>> = words.take(time_at).collect();
    let cpu = before.last().and_then(|word| {
        let inner = word.text.strip_prefix('[')?.strip_suffix(']')?;
        inner.parse().ok()
    });
    if cpu.is_some() {
        before.pop();
    }
    let ids = before.pop()?;
    let (pid, tid, is_one_number) = match ids.text.split_once('/') {
        Some((pid, tid)) => (pid.parse().ok()?, tid.parse().ok()?, false),
        None => {
            let both = ids.text.parse().ok()?;
            (both, both, true)
        }
    };
    let comm = line[..ids.at].trim();
    let after = line[time.at + time.text.len()..].trim_start();
    let (first, rest) = first_word(after);
    let is_period = !first.is_empty() && first.bytes().all(|b| b.is_ascii_digit());
    let (event, rest) = if is_period {
        first_word(rest)
    } else {
        (first, rest)
    };
    let event = event.strip_suffix(':').unwrap_or(event);
    (!event.is_empty()).then_some(Sample {
        comm,
        pid,
        tid,
        is_one_number,
        cpu,
        ns,
        event,
        rest,
    })
}

fn first_word(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim_start())
}

/// A word and its position in the line.
#[derive(Clone, Copy)]
struct Word<'a> {
    at: usize,
    text: &'a str,
}

#[derive(Clone)]
struct Words<'a> {
    line: &'a str,
    at: usize,
}

impl<'a> Words<'a> {
    const fn new(line: &'a str) -> Self {
        Self { line, at: 0 }
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = Word<'a>;

    fn next(&mut self) -> Option<Word<'a>> {
        let rest = &self.line[self.at..];
        let skipped = rest.find(|c: char| !c.is_whitespace())?;
        let at = self.at + skipped;
        let length = self.line[at..].find(char::is_whitespace);
        let end = length.map_or(self.line.len(), |length| at + length);
        self.at = end;
        Some(Word {
            at,
            text: &self.line[at..end],
        })
    }
}

/// Whether a line is like `ffffffff813a2413 finish_task_switch+0x93 ([kernel.kallsyms])`.
fn is_of_call_chain(line: &str) -> bool {
    let (first, _) = first_word(line.trim());
    line.starts_with(char::is_whitespace) && first.bytes().all(|b| b.is_ascii_hexdigit())
}

/// The number of lost records, if the line reports them.
fn lost(sample: &Sample<'_>) -> Option<u64> {
    if !sample.event.starts_with("PERF_RECORD_LOST") {
        return None;
    }
    let words = sample.rest.split_whitespace();
    Some(words.rev().find_map(|word| word.parse().ok()).unwrap_or(1))
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let found = text
        .split_whitespace()
        .find_map(|word| word.strip_prefix(name))?;
    Some(found.trim_end_matches(','))
}

/// Parses both forms: `prev_pid=1 prev_prio=120 prev_state=S ==> next_pid=2 ...`, and
/// `sh:1 [120] S ==> ls:2 [120]`.
fn switch(rest: &str) -> Option<Switch> {
    let (before, after) = rest.split_once("==>")?;
    if let Some(out) = field(before, "prev_pid=") {
        return Some(Switch {
            out: out.parse().ok()?,
            is_preempted: could_run(field(before, "prev_state=")?),
            into: field(after, "next_pid=")?.parse().ok()?,
        });
    }
    let thread = |text: &str| {
        text.rsplit_once(" [")?
            .0
            .trim()
            .rsplit_once(':')?
            .1
            .parse()
            .ok()
    };
    Some(Switch {
        out: thread(before)?,
        is_preempted: could_run(before.trim().rsplit(' ').next()?),
        into: thread(after)?,
    })
}

#[cfg(test)]
mod tests;
