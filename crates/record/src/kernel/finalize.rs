//! Finalizes the kernel's raw file as `kernel.parquet`.

use std::collections::HashMap;
use std::path::Path;

use undertick_format::TraceError;
use undertick_format::files::KERNEL_FILE;
use undertick_format::manifest::{Clock, Kernel, Manifest, Part, StackSampling};
use undertick_format::schema::Kind;
use undertick_format::stacks::{CUT, StackTable, UNKNOWN};

use super::order::Order;
use super::raw::{RAW_KERNEL_FILE, Reader, Record, RecordKind};
use super::rows::{Row, Sink};
use super::sampling::{self, RAW_STACKS_FILE};
use super::threads::{APART_NS, EARLY_NS, Sources, Threads};
use super::times::{Anchor, Times};
use crate::output::checksum_in;
use crate::trace_dir::TraceDir;

/// Its name while it is written.
pub(crate) const NEW_KERNEL_FILE: &str = "kernel.parquet.new";
/// Records may come this much after later ones: records in the making when the recorder read the
/// buffer, and interrupts, which are recorded at their end.
const SLACK_NS: i64 = 100_000_000;

/// Turns the raw file into rows; `None` if there are none to store. The raw file stays until the
/// manifest names the result ([`remove_raw`]).
///
/// # Errors
/// The disk refuses.
pub(crate) fn finish(
    trace: &TraceDir,
    manifest: &mut Manifest,
) -> Result<Option<Part>, TraceError> {
    let Some(mut kernel) = manifest.kernel.take() else {
        return Ok(None);
    };
    super::raw::join(trace)?;
    let part = match Survey::read(trace, manifest.clock.ns_per_tick())? {
        Some(survey) => {
            if survey.torn {
                manifest.warnings.push(
                    "the kernel's evidence was cut short: it ends before the recording does"
                        .to_owned(),
                );
            }
            let (part, nodes) = write(trace, &survey, &mut kernel, &manifest.clock)?;
            if let Some(stacks) = &mut kernel.stacks {
                state_stacks(stacks, &sampling::finish(trace)?, &nodes);
            }
            part
        }
        None => {
            if kernel.sources.iter().any(|source| source.used) {
                manifest.warnings.push(format!(
                    "the kernel's evidence is missing: {RAW_KERNEL_FILE} is not there"
                ));
            }
            None
        }
    };
    manifest.warnings.extend(remarks(&kernel));
    manifest.kernel = Some(kernel);
    Ok(part)
}

/// Removes the raw file, once the manifest names the file made from it.
pub(crate) fn remove_raw(trace: &TraceDir) {
    trace.remove(RAW_KERNEL_FILE);
    trace.remove(RAW_STACKS_FILE);
}

/// Warnings about the evidence.
fn remarks(kernel: &Kernel) -> Vec<String> {
    let mut out = Vec::new();
    if kernel.lost > 0 || kernel.losses_not_counted > 0 {
        out.push(format!(
            "{} records of the kernel were lost{}: some switches, interrupts or stack samples are not in the trace",
            kernel.lost,
            if kernel.losses_not_counted > 0 {
                ", and more that it did not count"
            } else {
                ""
            }
        ));
    }
    if let Some(balance) = &kernel.balance {
        let missing = balance.missing_in + balance.missing_out;
        let all = balance.switches_in + balance.switches_out + missing;
        if missing > 0 {
            out.push(format!(
                "of {all} switches of threads {missing} are missing in the kernel's records \
                 ({} onto a CPU, {} off it): such intervals carry no evidence",
                balance.missing_in, balance.missing_out
            ));
        }
    }
    out
}

/// The result of a first pass over the raw file.
struct Survey {
    sources: Sources,
    times: Times,
    last_mapped_ns: i64,
    torn: bool,
}

impl Survey {
    fn read(trace: &TraceDir, ns_per_tick: f64) -> Result<Option<Self>, TraceError> {
        let Some(mut reader) = Reader::of_trace(trace)? else {
            return Ok(None);
        };
        let mut sources = Sources::default();
        let mut anchors = Vec::new();
        let mut last_mapped_ns = i64::MIN;
        for record in reader.by_ref() {
            sources.perf |= matches!(record.kind, RecordKind::PerfIn | RecordKind::PerfOut);
            // Without the exec it is unknown which threads are the program's.
            sources.tracefs |= record.kind == RecordKind::Exec;
            if record.kind == RecordKind::Anchor {
                anchors.push(Anchor {
                    ticks: record.time as i64,
                    ns: record.payload,
                    error_ns: i64::from(record.a),
                });
            }
            if record.mapped {
                last_mapped_ns = last_mapped_ns.max(record.time as i64);
            }
        }
        Ok(Some(Self {
            sources,
            times: Times::new(&anchors, 1.0 / ns_per_tick),
            last_mapped_ns,
            torn: reader.torn,
        }))
    }

    fn error_ns(&self) -> f64 {
        if self.last_mapped_ns == i64::MIN {
            0.0
        } else {
            self.times.error_at_ns(self.last_mapped_ns)
        }
    }

    /// Returns a record's time, and the record with its duration, on the trace clock.
    fn on_trace_clock(&self, mut record: Record) -> (i64, Record) {
        let time = record.time as i64;
        if !record.mapped {
            return (time, record);
        }
        let ticks = self.times.ticks(time);
        if matches!(
            record.kind,
            RecordKind::Interrupt | RecordKind::SoftInterrupt
        ) {
            record.payload = self.times.ticks(time.saturating_add(record.payload)) - ticks;
        }
        (ticks, record)
    }
}

/// Numbers of samples by their stacks.
type StackCounts = HashMap<i64, u64>;

/// States how many samples there are, and what they lack.
fn state_stacks(stacks: &mut StackSampling, table: &StackTable, nodes: &StackCounts) {
    (stacks.samples, stacks.cut, stacks.unknown) = (0, 0, 0);
    for (&node, &n) in nodes {
        let (_, root) = table.stack(node);
        stacks.samples += n;
        stacks.cut += n * u64::from(root == CUT);
        stacks.unknown += n * u64::from(root == UNKNOWN);
    }
}

fn write(
    trace: &TraceDir,
    survey: &Survey,
    kernel: &mut Kernel,
    clock: &Clock,
) -> Result<(Option<Part>, StackCounts), TraceError> {
    let target = trace.join(KERNEL_FILE);
    let written = rows_to_file(trace, &target, survey, kernel, clock);
    if !matches!(written, Ok((rows, _)) if rows > 0) {
        trace.remove(NEW_KERNEL_FILE);
    }
    let (rows, nodes) = written?;
    kernel.rows = rows;
    if kernel.rows == 0 {
        return Ok((None, nodes));
    }
    (trace.rename(NEW_KERNEL_FILE, KERNEL_FILE))
        .map_err(TraceError::io(&target, "cannot replace"))?;
    let (bytes, crc32) = checksum_in(trace, KERNEL_FILE)?;
    let part = Part {
        file: KERNEL_FILE.to_owned(),
        rows: kernel.rows,
        bytes,
        crc32,
        by_ring: false,
    };
    Ok((Some(part), nodes))
}

fn rows_to_file(
    trace: &TraceDir,
    target: &Path,
    survey: &Survey,
    kernel: &mut Kernel,
    clock: &Clock,
) -> Result<(u64, StackCounts), TraceError> {
    let ns_per_tick = clock.ns_per_tick();
    let file = trace
        .create(NEW_KERNEL_FILE)
        .map_err(TraceError::io(target, "cannot create"))?;
    let mut sink = Sink::new(file, target)?;
    let in_ticks = |ns: i64| (ns as f64 / ns_per_tick) as i64;
    let mut order = Order::new(in_ticks(SLACK_NS));
    let mut threads = Threads::new(survey.sources, in_ticks(APART_NS), in_ticks(EARLY_NS));
    let mut counts = Counts::default();
    let mut nodes = StackCounts::new();
    let mut put = |sink: &mut Sink<'_>, row: Row| {
        if row.kind == Kind::Stack {
            *nodes.entry(row.payload).or_default() += 1;
        }
        sink.push(row);
    };
    for record in Reader::of_trace(trace)?.into_iter().flatten() {
        counts.add(&record);
        let (ticks, record) = survey.on_trace_clock(record);
        match record.kind {
            RecordKind::Anchor => {}
            RecordKind::Round => order.round(ticks, |ticks, record| {
                threads.take(ticks, &record, |row| put(&mut sink, row));
            }),
            _ if record.mapped && survey.times.is_empty() => {}
            _ => order.push(ticks, record),
        }
        sink.write_full()?;
    }
    order.rest(|ticks, record| threads.take(ticks, &record, |row| put(&mut sink, row)));
    let found = threads.finish(ns_per_tick, |row| put(&mut sink, row));
    kernel.comparison = found.comparison;
    kernel.others = found.others;
    say_what_tracefs_lacked(kernel);
    kernel.balance = (survey.sources.perf || survey.sources.tracefs).then_some(found.balance);
    counts.state(kernel, &clock.name, survey, order.too_late);
    Ok((sink.finish()?, nodes))
}

/// Adds what tracefs lacked to the source's remarks, in words; the comparison has the figures.
fn say_what_tracefs_lacked(kernel: &mut Kernel) {
    let Some(found) = kernel.comparison.as_ref().filter(|found| found.added > 0) else {
        return;
    };
    let lacked = format!(
        "{} switches were not in its buffers, {} of them onto a CPU (some kernels lose those where \
         the CPU was idle); perf told them, and they are in the rows",
        found.added, found.added_in
    );
    let tracefs = kernel.sources.iter_mut().find(|of| of.name == "tracefs");
    if let Some(source) = tracefs {
        if !source.why.is_empty() {
            source.why.push_str("; ");
        }
        source.why.push_str(&lacked);
    }
}

/// Records by source.
#[derive(Default)]
struct Counts {
    perf: u64,
    perf_lost: u64,
    tracefs: u64,
    tracefs_lost: u64,
    not_counted: u64,
    steal: u64,
}

impl Counts {
    fn add(&mut self, record: &Record) {
        match record.kind {
            RecordKind::PerfLost => self.perf_lost += record.payload.max(0) as u64,
            RecordKind::TracefsLost if record.payload < 0 => self.not_counted += 1,
            RecordKind::TracefsLost => self.tracefs_lost += record.payload as u64,
            RecordKind::Steal => self.steal += 1,
            RecordKind::Name => {}
            kind if kind.is_perf() => self.perf += 1,
            kind if kind.is_tracefs() => self.tracefs += 1,
            _ => {}
        }
    }

    fn state(&self, kernel: &mut Kernel, trace_clock: &str, survey: &Survey, too_late: u64) {
        for source in &mut kernel.sources {
            (source.records, source.lost) = match source.name.as_str() {
                "perf" => (self.perf, self.perf_lost),
                "tracefs" => (self.tracefs, self.tracefs_lost),
                _ => (self.steal, 0),
            };
            if source.name == "tracefs" && source.used && !survey.sources.tracefs {
                // None of its records could be attributed to the program.
                source.used = false;
                source.why = "it told nothing of the program being executed".to_owned();
            }
            source.error_ns = if source.clock == trace_clock {
                0.0
            } else {
                survey.error_ns()
            };
        }
        // Where the rows come from tracefs, perf's losses leave nothing missing.
        let of_rows = if survey.sources.tracefs {
            self.tracefs_lost
        } else {
            self.perf_lost
        };
        kernel.lost = of_rows + too_late;
        kernel.losses_not_counted = self.not_counted;
        kernel.error_ns = (kernel.sources.iter())
            .filter(|source| source.used)
            .map(|source| source.error_ns)
            .fold(0.0, f64::max);
    }
}
