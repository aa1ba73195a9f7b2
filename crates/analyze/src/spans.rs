//! Stores the intervals found in a trace as Parquet, so that further questions need no new
//! matching.
//!
//! They are stored beside the trace's events on request (`undertick report --spans`), and used
//! from there. Otherwise they are made for one use in a temporary directory: reading a trace
//! writes nothing into it.
//!
//! ```text
//! NAME.ut/spans/about.json          what they were made of, and how
//! NAME.ut/spans/part-00000.parquet  ...
//! ```

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;
use serde::{Deserialize, Serialize};

use undertick_format::input::{self, Kind};
use undertick_format::manifest::Part;
use undertick_format::{TraceError, parquet_error};

/// Directory of the spans inside a trace.
pub const SPANS_DIR: &str = "spans";
/// Name of the file that describes them.
pub const ABOUT_FILE: &str = "about.json";
/// Version of the format of these files.
pub const VERSION: u32 = 2;

/// The description of how the spans of a trace were made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpansDescription {
    /// [`VERSION`].
    pub version: u32,
    /// Version of Undertick that wrote them.
    pub undertick_version: String,
    /// The files of events from which they were made.
    pub events: Vec<Part>,
    /// How intervals were matched and samples dropped and compensated, in words.
    pub made: String,
}

/// The schema of the files: signed integers only, as in the events.
///
/// `name` of the interval; `kind` (`nested`, `stage`, `pair`, `period`, `key`,
/// `message`); `ring`, `pid`, `tid` of the thread in which it ended (-1 for a message);
/// `start` (ticks of the trace's clock), `start_ns` (since the recording's first
/// anchor), `ticks` (end less start, as read), `ns` (with the cost of recording and
/// the time of disturbances taken off), `depth` (spans open around it; 0 outermost),
/// `parent` (name of the innermost of them, null if none), `dropped` (why it counts in no
/// figure; null if it counts), `host`.
#[must_use]
pub fn span_schema() -> SchemaRef {
    let column = |name: &str, data_type: DataType| Field::new(name, data_type, false);
    let word = |name: &str, nullable: bool| {
        let words = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        Field::new(name, words, nullable)
    };
    Arc::new(Schema::new(vec![
        word("name", false),
        word("kind", false),
        column("ring", DataType::Int32),
        column("pid", DataType::Int32),
        column("tid", DataType::Int32),
        column("start", DataType::Int64),
        column("start_ns", DataType::Int64),
        column("ticks", DataType::Int64),
        column("ns", DataType::Float64),
        column("depth", DataType::Int32),
        word("parent", true),
        word("dropped", true),
        column("host", DataType::Int16),
    ]))
}

/// A directory of spans.
#[derive(Debug)]
pub struct Spans {
    dir: PathBuf,
    /// Removed when the value is dropped.
    _temporary: Option<tempfile::TempDir>,
}

impl Spans {
    /// The directory, which exists as long as the value lives.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

/// The spans that are stored in a trace, if they match `description`.
#[must_use]
pub fn find(trace: &Path, description: &SpansDescription) -> Option<Spans> {
    let dir = trace.join(SPANS_DIR);
    let text = input::text(&dir.join(ABOUT_FILE), Kind::ABOUT).ok()?;
    let found: SpansDescription = serde_json::from_str(&text).ok()?;
    (found == *description).then_some(Spans {
        dir,
        _temporary: None,
    })
}

/// Spans that are being written; [`Writing::finish`] moves them to their final place, all or
/// none.
#[derive(Debug)]
pub struct Writing {
    /// The trace in which to store them.
    trace: Option<PathBuf>,
    temporary: tempfile::TempDir,
}

impl Writing {
    /// Begins to write spans that are stored in their trace.
    ///
    /// # Errors
    /// The trace's directory cannot be written.
    pub fn kept(trace: &Path) -> Result<Self, TraceError> {
        let temporary = tempfile::Builder::new()
            .prefix("spans.new.")
            .tempdir_in(trace)
            .map_err(TraceError::io(trace, "cannot write spans into the trace"))?;
        Ok(Self {
            trace: Some(trace.to_owned()),
            temporary,
        })
    }

    /// Begins to write spans for one use, in the system's temporary directory.
    ///
    /// # Errors
    /// That directory cannot be written.
    pub fn for_one_use() -> Result<Self, TraceError> {
        let parent = std::env::temp_dir();
        let temporary = tempfile::Builder::new()
            .prefix("undertick-spans.")
            .tempdir_in(&parent)
            .map_err(|e| {
                TraceError::Recording(format!(
                    "{}: no room for spans: {e}; TMPDIR may name another directory",
                    parent.display()
                ))
            })?;
        Ok(Self {
            trace: None,
            temporary,
        })
    }

    /// Makes one of their files; several may be written in parallel.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn part(&self, number: usize) -> Result<SpanFile, TraceError> {
        let path = (self.temporary.path()).join(format!("part-{number:05}.parquet"));
        let file = File::create(&path).map_err(TraceError::io(&path, "cannot create"))?;
        let options = ArrowWriterOptions::new()
            .with_properties(properties())
            // With Arrow's metadata, readers that use our schema would see codes instead of
            // words.
            .with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(file, span_schema(), options)
            .map_err(|e| parquet_error(&path, "cannot write", e))?;
        Ok(SpanFile { path, writer })
    }

    /// Finishes the spans; all files must be closed.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn finish(self, description: &SpansDescription) -> Result<Spans, TraceError> {
        let written = self.temporary.path().to_owned();
        let failed = || TraceError::io(&written, "cannot write");
        let text = serde_json::to_string_pretty(description)
            .map_err(|e| TraceError::damaged(&written.join(ABOUT_FILE), e))?;
        fs::write(written.join(ABOUT_FILE), text).map_err(failed())?;
        let Some(trace) = self.trace else {
            return Ok(Spans {
                dir: written,
                _temporary: Some(self.temporary),
            });
        };
        let dir = trace.join(SPANS_DIR);
        if dir.exists() {
            // Other processes may be reading the old ones: their files stay open.
            fs::remove_dir_all(&dir).map_err(TraceError::io(&dir, "cannot replace"))?;
        }
        fs::rename(&written, &dir).map_err(TraceError::io(&dir, "cannot create"))?;
        #[cfg(unix)]
        {
            // Temporary directories are private; a trace has the permissions that its owner
            // chose.
            use std::os::unix::fs::PermissionsExt as _;
            if let Ok(of_trace) = fs::metadata(&trace) {
                let mode = of_trace.permissions().mode();
                let _ = fs::set_permissions(&dir, fs::Permissions::from_mode(mode));
            }
        }
        let _ = self.temporary.keep();
        Ok(Spans {
            dir,
            _temporary: None,
        })
    }
}

/// A file of spans.
#[derive(Debug)]
pub struct SpanFile {
    path: PathBuf,
    writer: ArrowWriter<File>,
}

impl SpanFile {
    /// Adds rows of [`span_schema`].
    ///
    /// # Errors
    /// They cannot be written.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), TraceError> {
        (self.writer.write(batch)).map_err(|e| parquet_error(&self.path, "cannot write", e))
    }

    /// Writes the rest and closes the file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn close(self) -> Result<(), TraceError> {
        (self.writer.close()).map_err(|e| parquet_error(&self.path, "cannot write", e))?;
        Ok(())
    }
}

fn properties() -> WriterProperties {
    let zstd = Compression::ZSTD(ZstdLevel::try_new(1).expect("level 1 exists"));
    let builder = WriterProperties::builder()
        .set_compression(zstd)
        .set_dictionary_enabled(true)
        .set_max_row_group_row_count(Some(1 << 19))
        .set_created_by(format!("undertick {}", env!("CARGO_PKG_VERSION")));
    let packed = [
        "ring", "pid", "tid", "start", "start_ns", "ticks", "depth", "host",
    ];
    (packed.into_iter().map(ColumnPath::from))
        .fold(builder, |builder, path| {
            builder
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED)
        })
        .set_column_dictionary_enabled(ColumnPath::from("ns"), false)
        .set_column_encoding(ColumnPath::from("ns"), Encoding::BYTE_STREAM_SPLIT)
        .build()
}
