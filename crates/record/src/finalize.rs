//! Finalizes a recording: raw blocks become Parquet.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fs::File;
use std::io::BufWriter;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int32Type, Int64Type};
use arrow_array::{BooleanArray, RecordBatch};
use arrow_select::filter::filter_record_batch;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves,
};
use parquet::errors::ParquetError;
use undertick_format::block::Next;
use undertick_format::files::{EVENTS_FILE, MANIFEST_FILE, RAW_FILE};
use undertick_format::manifest::{Manifest, Part, State};
use undertick_format::raw_order::RawGroups;
use undertick_format::rows::Rows;
use undertick_format::schema::{self, event_schema};
use undertick_format::{TraceError, parquet_error};

use crate::accounts::ACCOUNTS_FILE;
use crate::exited_threads::EXITED_THREADS_FILES;
use crate::kernel::raw::RAW_KERNEL_FILE;
use crate::output::{checksum_in, properties, set_manifest_aside, write_manifest};
use crate::trace_dir::TraceDir;

/// Rows passed to the Parquet writer at a time.
const BATCH_ROWS: usize = 1 << 15;
/// Most row groups encoded at a time: bounds memory on a machine with many CPUs.
const MOST_GROUPS: usize = 4;

/// Turns the raw blocks of a trace into Parquet and removes them. `progress`
/// receives the share done, 0 to 1.
///
/// # Errors
/// The disk refuses; the raw blocks are still there and it can be tried again.
pub fn finish(
    trace: &TraceDir,
    manifest: &mut Manifest,
    progress: &mut dyn FnMut(f64),
) -> Result<(), TraceError> {
    let kernel = crate::kernel::finalize::finish(trace, manifest)?;
    let possible = possible_times(manifest);
    let impossible = finish_within(trace, manifest, kernel, &possible, progress)?;
    if manifest.events == 0 && impossible > 0 {
        return Err(TraceError::Recording(format!(
            "{}: no event has {IMPOSSIBLE}",
            trace.path().display()
        )));
    }
    Ok(())
}

/// The end of the warning about events with times of another clock than the recorder's.
const IMPOSSIBLE: &str = "a time within the recording: the program reads another clock than its recorder \
    (is it emulated, as by qemu-user? then set UNDERTICK_CLOCK=monotonic_raw when recording it)";
/// An event may lie this far before the first anchor of the clocks or after the last one. Anchors
/// are taken before and after, but the process may have to wait for a CPU.
const NEAR_AN_ANCHOR_S: f64 = 10.0;

/// The range of ticks that an event of this recording can have.
fn possible_times(manifest: &Manifest) -> RangeInclusive<i64> {
    let clock = &manifest.clock;
    let slack = (NEAR_AN_ANCHOR_S * 1e9 / clock.ns_per_tick()) as i64;
    let first = clock.anchors.first();
    let last = clock.anchors.last().filter(|_| clock.anchors.len() > 1);
    let from = first.map_or(i64::MIN, |anchor| anchor.ticks.saturating_sub(slack));
    let to = last.map_or(i64::MAX, |anchor| anchor.ticks.saturating_add(slack));
    from..=to
}

/// As [`finish`], for events that were not recorded here. `kernel` is the finished file with the
/// kernel's rows, if there is one; `progress` receives the share done, 0 to 1.
///
/// # Errors
/// The disk refuses.
pub fn finish_events(
    trace: &TraceDir,
    manifest: &mut Manifest,
    kernel: Option<Part>,
    progress: &mut dyn FnMut(f64),
) -> Result<(), TraceError> {
    finish_within(trace, manifest, kernel, &(i64::MIN..=i64::MAX), progress).map(drop)
}

/// Writes the events with possible times; returns the number of the others.
fn finish_within(
    trace: &TraceDir,
    manifest: &mut Manifest,
    kernel: Option<Part>,
    possible: &RangeInclusive<i64>,
    progress: &mut dyn FnMut(f64),
) -> Result<u64, TraceError> {
    let target = trace.join(EVENTS_FILE);
    set_manifest_aside(trace, manifest, manifest.rings.len() as u64, 0);
    let written = trace
        .create(NEW_EVENTS_FILE)
        .map_err(TraceError::io(&target, "cannot create"))
        .and_then(|file| write_events(open_raw(trace)?, file, &target, possible, progress));
    if written.is_err() {
        trace.remove(NEW_EVENTS_FILE);
        trace.release(MANIFEST_FILE);
    }
    let written = written?;
    let remark = written.remark(&manifest.rings);
    let Finalized {
        rows,
        mut received,
        damaged,
        by_ring,
        impossible,
    } = written;
    manifest.warnings.extend(remark);
    (trace.rename(NEW_EVENTS_FILE, EVENTS_FILE))
        .map_err(TraceError::io(&target, "cannot replace"))?;

    // The rings' accounts follow what is in the file.
    for ring in &mut manifest.rings {
        ring.received = received.remove(&ring.ring).unwrap_or(0);
        ring.dropped = ring
            .written
            .saturating_sub(ring.received)
            .saturating_sub(ring.overwritten);
    }
    for (ring, received) in received {
        // A collector that was killed left no account of this ring.
        let dropped = impossible.get(&ring).copied().unwrap_or(0);
        manifest.rings.push(undertick_format::manifest::Ring {
            ring,
            pid: -1,
            tid: -1,
            written: received + dropped,
            received,
            dropped,
            overwritten: 0,
            spans_wait: None,
            read_cost: None,
        });
    }
    manifest.rings.sort_by_key(|ring| ring.ring);
    manifest.events = manifest.rings.iter().map(|ring| ring.received).sum();
    manifest.lost = manifest
        .rings
        .iter()
        .map(|r| r.dropped.saturating_add(r.overwritten))
        .fold(manifest.lost, u64::saturating_add);
    if damaged {
        manifest.warnings.push(
            "the raw data was damaged in the middle; what came after is not in the trace"
                .to_owned(),
        );
    }
    let (bytes, crc32) = checksum_in(trace, EVENTS_FILE)?;
    // The kernel's rows come first, so that a reader knows the disturbances before the events.
    manifest.parts = kernel.into_iter().collect();
    manifest.parts.push(Part {
        file: EVENTS_FILE.to_owned(),
        rows,
        bytes,
        crc32,
        by_ring,
    });
    manifest.state = State::Complete;
    manifest.session = None;
    manifest.session_identity = None;
    write_manifest(trace, manifest)?;
    for raw in RAW_FILES {
        trace.remove(raw);
    }
    crate::accounts::remove(trace);
    crate::kernel::finalize::remove_raw(trace);
    progress(1.0);
    Ok(impossible.values().sum())
}

/// The files of raw blocks. That of the recording comes last, because the lock goes with it.
const RAW_FILES: [&str; 3] = [EXITED_THREADS_FILES[0], EXITED_THREADS_FILES[1], RAW_FILE];
/// Name of the events' file while it is written.
const NEW_EVENTS_FILE: &str = "events.parquet.new";

/// Opens the files of raw blocks; that of the recording must be there.
fn open_raw(trace: &TraceDir) -> Result<Vec<(PathBuf, File)>, TraceError> {
    let mut files = Vec::new();
    for name in RAW_FILES {
        let path = trace.join(name);
        match trace.read_if_there(name)? {
            Some(file) => files.push((path, file)),
            None if name == RAW_FILE => {
                let missing = std::io::ErrorKind::NotFound.into();
                return Err(TraceError::io(&path, "cannot open")(missing));
            }
            None => {}
        }
    }
    Ok(files)
}

/// The result of finalizing raw blocks.
#[derive(Default)]
struct Finalized {
    rows: u64,
    /// Events by ring.
    received: HashMap<i32, u64>,
    /// Events by ring that are dropped because their times are impossible.
    impossible: BTreeMap<i32, u64>,
    /// There were bytes that are not a block; what follows them is left out.
    damaged: bool,
    by_ring: bool,
}

impl Finalized {
    /// Returns the rows with possible times.
    fn only_possible(
        &mut self,
        batch: RecordBatch,
        possible: &RangeInclusive<i64>,
    ) -> Result<RecordBatch, ParquetError> {
        let times = batch.column(schema::TS).as_primitive::<Int64Type>();
        if times.values().iter().all(|ticks| possible.contains(ticks)) {
            return Ok(batch);
        }
        let rings = batch.column(schema::RING).as_primitive::<Int32Type>();
        let kinds = batch.column(schema::KIND).as_primitive::<Int8Type>();
        for (row, ticks) in times.values().iter().enumerate() {
            // The row of a gap is not an event.
            if !possible.contains(ticks) && kinds.value(row) != schema::Kind::Gap as i8 {
                let ring = rings.value(row);
                *self.impossible.entry(ring).or_default() += 1;
                if let Some(received) = self.received.get_mut(&ring) {
                    *received = received.saturating_sub(1);
                }
            }
        }
        let kept: BooleanArray = (times.values().iter())
            .map(|ticks| Some(possible.contains(ticks)))
            .collect();
        Ok(filter_record_batch(&batch, &kept)?)
    }

    /// Returns the warning about events with impossible times.
    fn remark(&self, rings: &[undertick_format::manifest::Ring]) -> Option<String> {
        let events: u64 = self.impossible.values().sum();
        let pid = |ring: &i32| rings.iter().find(|of| of.ring == *ring).map(|of| of.pid);
        let pids: BTreeSet<i32> = self.impossible.keys().filter_map(pid).take(5).collect();
        let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
        (events > 0).then(|| {
            format!(
                "{events} events of {} threads (process {}) are dropped: they do not have {IMPOSSIBLE}",
                self.impossible.len(),
                pids.join(", ")
            )
        })
    }
}

/// Writes the events of a raw file as Parquet, ring by ring. Row groups are independent: each is
/// made by a separate thread and appended in order. This is twice as fast on two CPUs.
fn write_events(
    raw: Vec<(PathBuf, File)>,
    file: File,
    target: &Path,
    possible: &RangeInclusive<i64>,
    progress: &mut dyn FnMut(f64),
) -> Result<Finalized, TraceError> {
    let bad = |e| parquet_error(target, "cannot write", e);
    let failed = || TraceError::io(target, "cannot write");
    let mut groups = RawGroups::from_files(raw)?;
    let (mut writer, columns) = ArrowWriter::try_new(
        BufWriter::with_capacity(1 << 20, file),
        event_schema(),
        Some(properties()),
    )
    .and_then(ArrowWriter::into_serialized_writer)
    .map_err(bad)?;
    let columns = &columns;
    let at_once = std::thread::available_parallelism().map_or(1, usize::from) + 1;
    let mut kept = Finalized::default();
    std::thread::scope(|scope| {
        let mut working = VecDeque::new();
        loop {
            while working.len() < at_once.min(MOST_GROUPS) {
                let mut blocks = Vec::new();
                if !groups.next_group(&mut blocks)? {
                    break;
                }
                let share = groups.share();
                let group = scope.spawn(move || encode_group(&blocks, columns, possible));
                working.push_back((group, share));
            }
            let Some((group, share)) = working.pop_front() else {
                break;
            };
            let (chunks, of_group) = match group.join() {
                Ok(made) => made.map_err(bad)?,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            if of_group.rows > 0 {
                let mut group = writer.next_row_group().map_err(bad)?;
                for chunk in chunks {
                    chunk.append_to_row_group(&mut group).map_err(bad)?;
                }
                group.close().map_err(bad)?;
            }
            kept.rows += of_group.rows;
            for (ring, events) in of_group.received {
                *kept.received.entry(ring).or_default() += events;
            }
            for (ring, events) in of_group.impossible {
                *kept.impossible.entry(ring).or_default() += events;
            }
            kept.damaged = of_group.damaged;
            if kept.damaged {
                break; // the groups in work are not looked at
            }
            progress(share);
        }
        kept.damaged |= groups.damaged;
        kept.by_ring = groups.is_by_ring();
        Ok::<(), TraceError>(())
    })?;
    let file = writer
        .into_inner()
        .map_err(bad)?
        .into_inner()
        .map_err(|e| failed()(e.into_error()))?;
    file.sync_all().map_err(failed())?;
    Ok(kept)
}

/// Decodes raw blocks and encodes them as the columns of a row group.
fn encode_group(
    mut blocks: &[u8],
    columns: &ArrowRowGroupWriterFactory,
    possible: &RangeInclusive<i64>,
) -> Result<(Vec<ArrowColumnChunk>, Finalized), ParquetError> {
    let mut writers = columns.create_column_writers(0)?;
    let mut write = |batch: RecordBatch, kept: &mut Finalized| {
        let batch = kept.only_possible(batch, possible)?;
        kept.rows += batch.num_rows() as u64;
        for ((writer, field), column) in writers
            .iter_mut()
            .zip(batch.schema_ref().fields())
            .zip(batch.columns())
        {
            for leaf in compute_leaves(field, column)? {
                writer.write(&leaf)?;
            }
        }
        Ok::<_, ParquetError>(())
    };
    let mut kept = Finalized::default();
    let mut rows = Rows::default();
    loop {
        let (next, events) = rows.push_block(blocks);
        match next {
            Next::Block(header, bytes) => {
                *kept.received.entry(header.ring as i32).or_default() += events;
                blocks = &blocks[bytes..];
            }
            Next::Damaged => {
                kept.damaged = true;
                break;
            }
            Next::End => break,
        }
        if rows.len() >= BATCH_ROWS {
            write(rows.take(), &mut kept)?;
        }
    }
    if !rows.is_empty() {
        write(rows.take(), &mut kept)?;
    }
    let chunks = writers.into_iter().map(ArrowColumnWriter::close);
    Ok((chunks.collect::<Result<_, _>>()?, kept))
}

/// Removes a trace that never began: only the files that we made.
pub fn remove_empty(trace: &Path) {
    for file in [
        MANIFEST_FILE,
        "manifest.json.new",
        RAW_FILE,
        RAW_KERNEL_FILE,
        ACCOUNTS_FILE,
    ] {
        let _ = std::fs::remove_file(trace.join(file));
    }
    let _ = std::fs::remove_dir(trace);
}
