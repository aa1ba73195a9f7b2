//! Finalizes a recording: its raw blocks become Parquet, or are checked and left in place if they
//! take 16 MiB or more.

mod check;
mod encode;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fs::File;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int32Type, Int64Type};
use arrow_array::{BooleanArray, RecordBatch};
use arrow_select::filter::filter_record_batch;
use parquet::errors::ParquetError;
use undertick_format::TraceError;
use undertick_format::files::{EVENTS_FILE, KERNEL_FILE, MANIFEST_FILE, RAW_FILE, STACKS_FILE};
use undertick_format::manifest::{Manifest, Part, State};
use undertick_format::raw_order::RawGroups;
use undertick_format::read::Trace;
use undertick_format::schema;

use crate::accounts::ACCOUNTS_FILE;
use crate::exited_threads::EXITED_THREADS_FILES;
use crate::kernel::finalize::NEW_KERNEL_FILE;
use crate::kernel::raw::RAW_KERNEL_FILE;
use crate::kernel::sampling::{NEW_STACKS_FILE, RAW_STACKS_FILE};
use crate::output::{checksum_in, set_manifest_aside, write_manifest};
use crate::trace_dir::TraceDir;

/// Most row groups encoded or checked at a time: bounds memory on a machine with many CPUs.
const MOST_GROUPS: usize = 4;
/// From this size on the raw blocks of a recording stay, bytes: 3 to 6 million events, which take
/// 0.2 s to encode.
const BLOCKS_STAY_FROM: u64 = 16 << 20;

/// Finalizes a recording: turns its raw blocks into Parquet and removes them, or checks them and
/// leaves them in place if there are many, which takes a twentieth of the time. `progress` receives
/// the share done, 0 to 1.
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
    let impossible = finish_within(trace, manifest, kernel, &possible, Form::BySize, progress)?;
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

/// As [`finish`], for events that were not recorded here: they become Parquet. `kernel` is the
/// finished file with the kernel's rows, if there is one; `progress` receives the share done, 0 to 1.
///
/// # Errors
/// The disk refuses.
pub fn finish_events(
    trace: &TraceDir,
    manifest: &mut Manifest,
    kernel: Option<Part>,
    progress: &mut dyn FnMut(f64),
) -> Result<(), TraceError> {
    let possible = i64::MIN..=i64::MAX;
    finish_within(trace, manifest, kernel, &possible, Form::Parquet, progress).map(drop)
}

/// Turns the raw blocks of a complete trace into Parquet; `progress` receives the share done, 0
/// to 1.
///
/// # Errors
/// The disk refuses, or the blocks are not those of the manifest; the trace is then unchanged.
pub fn encode(
    trace: &TraceDir,
    manifest: &mut Manifest,
    progress: &mut dyn FnMut(f64),
) -> Result<(), TraceError> {
    let names = || manifest.parts.iter().map(|part| part.file.as_str());
    if names().any(|name| name == EVENTS_FILE)
        || manifest
            .parts
            .iter()
            .filter(|part| part.has_raw_blocks())
            .count()
            != 1
        || !names().any(|name| name == RAW_FILE)
    {
        return Err(TraceError::damaged(
            &trace.join(MANIFEST_FILE),
            format!("names other files of events beside {RAW_FILE}; restore it from a copy"),
        ));
    }
    set_manifest_aside(trace, manifest, 0, 0);
    let encoded =
        encode_part(trace, manifest, progress).and_then(|()| write_manifest(trace, manifest));
    if encoded.is_err() {
        trace.remove(EVENTS_FILE);
        trace.release(MANIFEST_FILE);
    }
    encoded?;
    trace.remove(RAW_FILE);
    progress(1.0);
    Ok(())
}

/// Writes the Parquet file, and puts it into the manifest in place of the raw blocks.
fn encode_part(
    trace: &TraceDir,
    manifest: &mut Manifest,
    progress: &mut dyn FnMut(f64),
) -> Result<(), TraceError> {
    let written = write_parquet(trace, open_raw(trace)?, &(i64::MIN..=i64::MAX), progress)?;
    for part in manifest
        .parts
        .iter_mut()
        .filter(|part| part.has_raw_blocks())
    {
        if (written.rows, written.damaged) != (part.rows, false) {
            return Err(TraceError::damaged(
                &trace.join(&part.file),
                decoded(written.rows, part.rows),
            ));
        }
        *part = described(trace, EVENTS_FILE, &written)?;
    }
    Ok(())
}

/// Writes the events of a complete trace that has raw blocks as a new Parquet file, outside of the
/// trace, which stays as it is; `progress` receives the share done, 0 to 1.
///
/// # Errors
/// The blocks cannot be read, or the file cannot be written.
pub fn encode_into(
    trace: &Trace,
    file: &Path,
    progress: &mut dyn FnMut(f64),
) -> Result<(), TraceError> {
    let raw = trace.raw_files()?;
    let new = File::create_new(file).map_err(TraceError::io(file, "cannot create"))?;
    let written = encode::write_events(raw, new, file, &(i64::MIN..=i64::MAX), progress)?;
    let rows: u64 = (trace.manifest.parts.iter())
        .filter(|part| part.has_raw_blocks())
        .map(|part| part.rows)
        .sum();
    match (written.rows, written.damaged) == (rows, false) {
        true => Ok(()),
        false => Err(TraceError::damaged(
            &trace.dir().join(RAW_FILE),
            decoded(written.rows, rows),
        )),
    }
}

/// What is wrong with raw blocks that are not those of the manifest.
fn decoded(rows: u64, wanted: u64) -> String {
    format!(
        "{rows} rows of events can be decoded, the manifest says {wanted}; restore it from a copy"
    )
}

/// The form that finished events have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Raw blocks if there are many ([`BLOCKS_STAY_FROM`]), Parquet otherwise.
    BySize,
    Parquet,
}

/// Finishes with the events that have possible times; returns the number of the others.
fn finish_within(
    trace: &TraceDir,
    manifest: &mut Manifest,
    kernel: Option<Part>,
    possible: &RangeInclusive<i64>,
    form: Form,
    progress: &mut dyn FnMut(f64),
) -> Result<u64, TraceError> {
    set_manifest_aside(trace, manifest, manifest.rings.len() as u64, 0);
    let stored = store(trace, form, possible, progress).and_then(|(file, written)| {
        let part = described(trace, file, &written)?;
        Ok((written, part))
    });
    if stored.is_err() {
        trace.release(MANIFEST_FILE);
    }
    let (written, part) = stored?;
    let remark = written.remark(&manifest.rings);
    let Finalized {
        mut received,
        damaged,
        impossible,
        ..
    } = written;
    manifest.warnings.extend(remark);

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
            interposed: false,
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
    // The kernel's rows come first, so that a reader knows the disturbances before the events.
    manifest.parts = kernel.into_iter().collect();
    manifest.parts.push(part);
    manifest.state = State::Complete;
    manifest.session = None;
    manifest.session_identity = None;
    write_manifest(trace, manifest)?;
    let is_part = |raw: &&str| manifest.parts.iter().any(|part| part.file == **raw);
    for raw in RAW_FILES.iter().filter(|raw| !is_part(raw)) {
        trace.remove(raw);
    }
    crate::accounts::remove(trace);
    crate::kernel::finalize::remove_raw(trace);
    progress(1.0);
    Ok(impossible.values().sum())
}

/// Stores the events: returns the name of their file.
fn store(
    trace: &TraceDir,
    form: Form,
    possible: &RangeInclusive<i64>,
    progress: &mut dyn FnMut(f64),
) -> Result<(&'static str, Finalized), TraceError> {
    if let Some(checked) = blocks_that_stay(trace, form, possible, progress)? {
        return Ok((RAW_FILE, checked));
    }
    let written = write_parquet(trace, open_raw(trace)?, possible, progress)?;
    Ok((EVENTS_FILE, written))
}

/// Checks the blocks of a large recording; `None` if they must be encoded. After a power failure a
/// complete trace has its events, so they are synced to the disk.
fn blocks_that_stay(
    trace: &TraceDir,
    form: Form,
    possible: &RangeInclusive<i64>,
    progress: &mut dyn FnMut(f64),
) -> Result<Option<Finalized>, TraceError> {
    let raw = open_raw(trace)?;
    let [(path, file)] = &raw[..] else {
        return Ok(None); // ended threads of a flight recorder have files of their own
    };
    let bytes = (file.metadata())
        .map_err(TraceError::io(path, "cannot look at"))?
        .len();
    if form == Form::Parquet || bytes < BLOCKS_STAY_FROM {
        return Ok(None);
    }
    file.sync_all()
        .map_err(TraceError::io(path, "cannot write"))?;
    check::check_blocks(raw, possible, progress)
}

/// Encodes raw blocks as the trace's Parquet file.
fn write_parquet(
    trace: &TraceDir,
    raw: Vec<(PathBuf, File)>,
    possible: &RangeInclusive<i64>,
    progress: &mut dyn FnMut(f64),
) -> Result<Finalized, TraceError> {
    let target = trace.join(EVENTS_FILE);
    let written = trace
        .create(NEW_EVENTS_FILE)
        .map_err(TraceError::io(&target, "cannot create"))
        .and_then(|file| encode::write_events(raw, file, &target, possible, progress));
    if written.is_err() {
        trace.remove(NEW_EVENTS_FILE);
    }
    let written = written?;
    (trace.rename(NEW_EVENTS_FILE, EVENTS_FILE))
        .map_err(TraceError::io(&target, "cannot replace"))?;
    Ok(written)
}

/// The manifest's entry for a finished file.
fn described(trace: &TraceDir, file: &str, finalized: &Finalized) -> Result<Part, TraceError> {
    let (bytes, crc32) = checksum_in(trace, file)?;
    Ok(Part {
        file: file.to_owned(),
        rows: finalized.rows,
        bytes,
        crc32,
        by_ring: finalized.by_ring,
    })
}

/// Passes each row group through `work`, some of them at a time in threads, and what that returns to
/// `take`, in order and with the share of the file so far. Ends when `take` returns false: the groups
/// in work are then not looked at.
fn each_group<R: Send>(
    groups: &mut RawGroups,
    work: impl Fn(&[u8]) -> R + Sync,
    mut take: impl FnMut(R, f64) -> Result<bool, TraceError>,
) -> Result<(), TraceError> {
    let at_once = std::thread::available_parallelism().map_or(1, usize::from) + 1;
    let work = &work;
    std::thread::scope(|scope| {
        let mut working = VecDeque::new();
        loop {
            while working.len() < at_once.min(MOST_GROUPS) {
                let mut blocks = Vec::new();
                if !groups.next_group(&mut blocks)? {
                    break;
                }
                let share = groups.share();
                working.push_back((scope.spawn(move || work(&blocks)), share));
            }
            let Some((group, share)) = working.pop_front() else {
                return Ok(());
            };
            let done = (group.join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            if !take(done, share)? {
                return Ok(());
            }
        }
    })
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

/// What was found in raw blocks while they were encoded or checked.
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
    /// Adds what a row group has.
    fn add(&mut self, group: Self) {
        self.rows += group.rows;
        for (ring, events) in group.received {
            *self.received.entry(ring).or_default() += events;
        }
        for (ring, events) in group.impossible {
            *self.impossible.entry(ring).or_default() += events;
        }
        self.damaged = group.damaged;
    }

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

/// The files that are made before a trace is complete.
const OURS: [&str; 12] = [
    MANIFEST_FILE,
    "manifest.json.new",
    RAW_FILE,
    RAW_KERNEL_FILE,
    ACCOUNTS_FILE,
    EVENTS_FILE,
    NEW_EVENTS_FILE,
    KERNEL_FILE,
    NEW_KERNEL_FILE,
    RAW_STACKS_FILE,
    NEW_STACKS_FILE,
    STACKS_FILE,
];

/// Removes a trace that never began: only the files that we made.
pub fn remove_empty(trace: &Path) {
    for file in OURS {
        let _ = std::fs::remove_file(trace.join(file));
    }
    let _ = std::fs::remove_dir(trace);
}

/// Removes the files that we made in a directory.
pub(crate) fn remove_files(trace: &TraceDir) {
    for file in OURS {
        trace.remove(file);
    }
}
