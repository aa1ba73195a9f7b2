//! Opening a trace.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Int8Array, Int16Array, Int32Array, RecordBatch};
use arrow_schema::DataType;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;
use parquet::file::statistics::Statistics;
use rustix::fs::{FlockOperation, Mode, OFlags};

use crate::TraceError;
use crate::block_batches::{BATCH_ROWS, BlockBatches, undecodable};
use crate::files::RAW_FILE;
use crate::groups::{self, Group};
use crate::manifest::{Manifest, State};
pub use crate::manifest_file::read as read_manifest;
use crate::raw_order::RawIndex;
use crate::schema::merged_schema;
use crate::schema::{self, event_schema};
use crate::{input, part_file};

/// A trace that is complete.
#[derive(Debug)]
pub struct Trace {
    dir: PathBuf,
    /// Everything about the trace that is not an event.
    pub manifest: Manifest,
    /// The blocks of each part, if it is of raw blocks.
    blocks: Vec<Option<RawIndex>>,
}

impl Trace {
    /// Opens a trace and writes nothing. A recording that was cut short is finished by
    /// `undertick_record::finish::finish`, which must be called separately.
    ///
    /// # Errors
    /// It is not there, not a trace, of another version, damaged, still being recorded, or
    /// not finished.
    pub fn open(dir: &Path) -> Result<Self, TraceError> {
        let mut manifest = read_manifest(dir)?;
        if manifest.state == State::Recording {
            // The recorder may have finished it since the manifest was read.
            let lives = recorder_lives(dir);
            manifest = read_manifest(dir)?;
            if manifest.state == State::Recording {
                return Err(unfinished(dir, lives));
            }
        }
        match Self::open_parts(dir, manifest.clone()) {
            // Raw blocks may have become Parquet since the manifest was read.
            Err(TraceError::Io { source, .. })
                if source.kind() == std::io::ErrorKind::NotFound
                    && read_manifest(dir)? != manifest =>
            {
                Self::open_parts(dir, read_manifest(dir)?)
            }
            opened => opened,
        }
    }

    /// Opens and checks the files of a complete trace.
    fn open_parts(dir: &Path, manifest: Manifest) -> Result<Self, TraceError> {
        let mut trace = Self {
            dir: dir.to_owned(),
            manifest,
            blocks: Vec::new(),
        };
        for part in &trace.manifest.parts {
            let path = trace.part_path(&part.file);
            // Before anything else: otherwise a changed byte in a column would not be noticed.
            part_file::check(&path, part)?;
            let (index, rows) = match part.has_raw_blocks() {
                true => {
                    let index = RawIndex::open(&path)?;
                    // A record may be a row, or belong to one.
                    let records: u64 = index.groups().map(|(_, records)| records).sum();
                    (Some(index), records.min(part.rows))
                }
                false => {
                    let (_, events) = open_events(&path)?;
                    let rows = events.metadata().file_metadata().num_rows();
                    (None, u64::try_from(rows).unwrap_or(0))
                }
            };
            if rows != part.rows {
                return Err(TraceError::damaged(
                    &path,
                    format!(
                        "{rows} rows, the manifest says {}; restore it from a copy",
                        part.rows
                    ),
                ));
            }
            trace.blocks.push(index);
        }
        Ok(trace)
    }

    /// The trace's directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// All event batches, in the order of recording: ascending within a ring.
    pub fn batches(&self) -> impl Iterator<Item = Result<RecordBatch, TraceError>> + '_ {
        (0..self.manifest.parts.len()).flat_map(|part| self.part_batches(part, None))
    }

    /// Returns the trace in shards for parallel analysis; no two share a ring. The rows of the
    /// kernel, which concern all of them, are in none. The division depends on the trace alone. A
    /// trace whose rings are interleaved is one shard.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn groups(&self) -> Result<Vec<Group>, TraceError> {
        let mut parts = Vec::new();
        for (part, blocks) in self.manifest.parts.iter().zip(&self.blocks) {
            if let Some(blocks) = blocks {
                parts.push((part.by_ring, blocks.groups().collect()));
                continue;
            }
            let (_, metadata) = open_events(&self.part_path(&part.file))?;
            let row_groups = metadata.metadata().row_groups().iter().map(|group| {
                let rings = rings_of(group.column(schema::RING).statistics());
                (rings, u64::try_from(group.num_rows()).unwrap_or(0))
            });
            parts.push((part.by_ring, row_groups.collect()));
        }
        Ok(groups::groups(&parts))
    }

    /// The batches of one of [`Self::groups`], in order.
    pub fn group_batches<'a>(
        &'a self,
        group: &'a Group,
    ) -> impl Iterator<Item = Result<RecordBatch, TraceError>> + 'a {
        self.row_groups(&group.row_groups)
    }

    /// Whether all rows of a group are in raw blocks, which [`Self::read_blocks`] reads.
    #[must_use]
    pub fn is_of_blocks(&self, group: &Group) -> bool {
        let of_blocks = |part: usize| self.blocks.get(part).is_some_and(Option::is_some);
        group.row_groups.iter().all(|&(part, _)| of_blocks(part))
    }

    /// Puts the raw blocks of a row group into `blocks`, replacing its content. The row group is
    /// one of a group for which [`Self::is_of_blocks`] is true.
    ///
    /// # Errors
    /// The file cannot be read.
    ///
    /// # Panics
    /// It is not such a row group.
    pub fn read_blocks(
        &self,
        (part, group): (usize, usize),
        blocks: &mut Vec<u8>,
    ) -> Result<(), TraceError> {
        let index = self.blocks[part].as_ref().expect("a part of raw blocks");
        index.read(group, blocks)
    }

    /// The files of raw blocks, as they were opened and checked.
    ///
    /// # Errors
    /// There is no room for another descriptor.
    pub fn raw_files(&self) -> Result<Vec<(PathBuf, File)>, TraceError> {
        let mut files = Vec::new();
        for index in self.blocks.iter().flatten() {
            files.extend(index.files()?);
        }
        Ok(files)
    }

    /// The error of a row group of blocks that cannot be decoded.
    #[must_use]
    pub fn damaged_blocks(&self, (part, _): (usize, usize)) -> TraceError {
        undecodable(&self.part_path(&self.manifest.parts[part].file))
    }

    /// The rows of the kernel, in order.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn kernel_batches(
        &self,
    ) -> Result<impl Iterator<Item = Result<RecordBatch, TraceError>> + '_, TraceError> {
        let mut of_kernel = Vec::new();
        for (part, about) in self.manifest.parts.iter().enumerate() {
            if self.blocks[part].is_some() {
                continue; // the kernel's rows never are blocks
            }
            let (_, metadata) = open_events(&self.part_path(&about.file))?;
            for (index, group) in metadata.metadata().row_groups().iter().enumerate() {
                if rings_of(group.column(schema::RING).statistics()) == Some((-1, -1)) {
                    of_kernel.push((part, index));
                }
            }
        }
        Ok(self.row_groups(&of_kernel))
    }

    /// Batches of row groups, which are given by part and position in it.
    fn row_groups<'a>(
        &'a self,
        groups: &[(usize, usize)],
    ) -> impl Iterator<Item = Result<RecordBatch, TraceError>> + use<'a> {
        let mut by_part: Vec<(usize, Vec<usize>)> = Vec::new();
        for &(part, index) in groups {
            match by_part.last_mut() {
                Some((last, indices)) if *last == part => indices.push(index),
                _ => by_part.push((part, vec![index])),
            }
        }
        by_part
            .into_iter()
            .flat_map(|(part, indices)| self.part_batches(part, Some(indices)))
    }

    /// Batches of these row groups of a part, or of all.
    fn part_batches(&self, part: usize, only: Option<Vec<usize>>) -> Either<'_> {
        if let Some(index) = &self.blocks[part] {
            let groups = only.unwrap_or_else(|| (0..index.groups().count()).collect());
            return Either::Blocks(Box::new(BlockBatches::new(index, groups)));
        }
        match Batches::open(&self.part_path(&self.manifest.parts[part].file)) {
            Ok(batches) => Either::Batches(Box::new(match only {
                Some(indices) => batches.only(indices),
                None => batches,
            })),
            Err(error) => Either::Error(Some(error)),
        }
    }

    fn part_path(&self, file: &str) -> PathBuf {
        self.dir.join(file)
    }
}

enum Either<'a> {
    Batches(Box<Batches>),
    Blocks(Box<BlockBatches<'a>>),
    Error(Option<TraceError>),
}

impl Iterator for Either<'_> {
    type Item = Result<RecordBatch, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Batches(batches) => batches.next(),
            Self::Blocks(batches) => batches.next(),
            Self::Error(error) => error.take().map(Err),
        }
    }
}

struct Batches {
    path: PathBuf,
    file: File,
    metadata: ArrowReaderMetadata,
    /// Row groups still to be read.
    groups: std::vec::IntoIter<usize>,
    group: Option<RowGroup>,
    failed: bool,
}

/// What is read of a row group. A column of one value (`mode`, `host`, often `pid` and more) is
/// known from its statistics and not decoded, which saves 2 ns of about 9 ns a row.
struct RowGroup {
    reader: ParquetRecordBatchReader,
    /// [`BATCH_ROWS`] times the one value, for the columns that have one.
    constant: Vec<Option<ArrayRef>>,
}

impl Batches {
    fn open(path: &Path) -> Result<Self, TraceError> {
        let (file, metadata) = open_events(path)?;
        let all: Vec<usize> = (0..metadata.metadata().num_row_groups()).collect();
        Ok(Self {
            path: path.to_owned(),
            file,
            metadata,
            groups: all.into_iter(),
            group: None,
            failed: false,
        })
    }

    /// Restricts it to these row groups.
    fn only(self, groups: Vec<usize>) -> Self {
        Self {
            groups: groups.into_iter(),
            ..self
        }
    }

    fn group(&self, index: usize) -> Result<RowGroup, ParquetError> {
        let columns = self.metadata.metadata().row_group(index).columns();
        let schema = event_schema(); // what a file has beside is not read
        let fields = schema.fields();
        let constant: Vec<_> = columns
            .iter()
            .zip(fields)
            .map(|(column, field)| constant(column.statistics()?, field.data_type()))
            .collect();
        let varying = (0..constant.len()).filter(|&column| constant[column].is_none());
        let mask = ProjectionMask::leaves(self.metadata.parquet_schema(), varying);
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(
            self.file.try_clone()?,
            self.metadata.clone(),
        )
        .with_row_groups(vec![index])
        .with_projection(mask)
        .with_batch_size(BATCH_ROWS)
        .build()?;
        Ok(RowGroup { reader, constant })
    }

    fn read(&mut self) -> Result<Option<RecordBatch>, ParquetError> {
        loop {
            if let Some(group) = &mut self.group
                && let Some(batch) = group.reader.next()
            {
                let batch = batch?;
                let mut read = batch.columns().iter();
                let columns = group
                    .constant
                    .iter()
                    .filter_map(|constant| match constant {
                        Some(values) => Some(values.slice(0, batch.num_rows())),
                        None => read.next().cloned(),
                    })
                    .collect();
                return Ok(Some(RecordBatch::try_new(event_schema(), columns)?));
            }
            let Some(next) = self.groups.next() else {
                return Ok(None);
            };
            self.group = Some(self.group(next)?);
        }
    }
}

/// The smallest and the largest ring of a row group.
fn rings_of(statistics: Option<&Statistics>) -> Option<(i32, i32)> {
    match statistics {
        Some(Statistics::Int32(rings)) => Some((*rings.min_opt()?, *rings.max_opt()?)),
        _ => None,
    }
}

/// The values of a column chunk, if its statistics say that all are equal.
fn constant(statistics: &Statistics, data_type: &DataType) -> Option<ArrayRef> {
    let Statistics::Int32(statistics) = statistics else {
        return None;
    };
    let value = *statistics.min_opt()?;
    if statistics.max_opt() != Some(&value) {
        return None;
    }
    Some(match data_type {
        DataType::Int8 => Arc::new(Int8Array::from_value(value.try_into().ok()?, BATCH_ROWS)),
        DataType::Int16 => Arc::new(Int16Array::from_value(value.try_into().ok()?, BATCH_ROWS)),
        DataType::Int32 => Arc::new(Int32Array::from_value(value, BATCH_ROWS)),
        _ => return None,
    })
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let batch = self.read().transpose()?;
        Some(batch.map_err(|error| {
            self.failed = true;
            TraceError::damaged(
                &self.path,
                format!("cannot read: {error}; restore it from a copy"),
            )
        }))
    }
}

fn open_events(path: &Path) -> Result<(File, ArrowReaderMetadata), TraceError> {
    let file = input::open(path)?;
    let metadata =
        ArrowReaderMetadata::load(&file, ArrowReaderOptions::default()).map_err(|e| {
            TraceError::damaged(
                path,
                format!("not readable as Parquet: {e}; restore it from a copy"),
            )
        })?;
    let fields = metadata.schema().fields();
    if fields[..] != event_schema().fields()[..] && fields != merged_schema().fields() {
        return Err(TraceError::damaged(
            path,
            "its columns are not those of an event file (docs/format.md)",
        ));
    }
    Ok((file, metadata))
}

/// Whether a process holds the lock of a trace, which recording and finishing hold. The check
/// takes a shared lock and disturbs no other process.
fn recorder_lives(dir: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let raw = rustix::fs::open(dir.join(RAW_FILE), flags, Mode::empty());
    raw.is_ok_and(|raw| {
        let share = rustix::fs::flock(&raw, FlockOperation::NonBlockingLockShared);
        share == Err(rustix::io::Errno::WOULDBLOCK)
    })
}

fn unfinished(dir: &Path, lives: bool) -> TraceError {
    let name = dir.display();
    if lives {
        return TraceError::Recording(format!(
            "{name}: still being recorded; wait for its end, or stop the recorder with Ctrl-C"
        ));
    }
    TraceError::Recording(format!(
        "{name}: not finished, its recorder was killed or had no room on the disk; \
         `undertick record --finish {name}` keeps what there is, `undertick record --resume {name}` goes on while the program runs"
    ))
}
