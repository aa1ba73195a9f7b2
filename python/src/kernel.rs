//! The analysis in shards, to spread it over machines. Each trace takes one [`Kernel`] where
//! results are merged, and one where each shard is analysed.

use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};
use undertick_analyze::{Analysis, Options, ShardResult, Table, Worker};
use undertick_format::groups::{RowGroup, groups};
use undertick_format::manifest::Manifest;

use crate::reports::Report;
use crate::{Error, InputError};

/// Prefix of a shard's result: one made by another version is refused.
const MARK: &str = concat!(
    "undertick part ",
    env!("CARGO_PKG_VERSION"),
    " ",
    env!("UNDERTICK_BUILD"),
    "\n"
);

/// One analysis of one trace, in shards.
#[pyclass(module = "undertick._native")]
pub struct Kernel {
    analysis: Option<Analysis>,
    worker: Option<Worker>,
}

fn input(error: impl std::fmt::Display) -> PyErr {
    InputError::new_err(error.to_string())
}

fn over() -> PyErr {
    Error::new_err("the report of this kernel has been made")
}

#[pymethods]
impl Kernel {
    /// Prepares the analysis of the trace with this manifest (its JSON text). `table` is the text
    /// of a table and the name of its file.
    #[new]
    fn new(
        manifest: &str,
        table: Option<(&str, &str)>,
        confidence: f64,
        cull: &str,
        compensate: &str,
    ) -> PyResult<Self> {
        let manifest: Manifest = serde_json::from_str(manifest)
            .map_err(|e| InputError::new_err(format!("not the manifest of a trace: {e}")))?;
        let table = table
            .map(|(text, file)| Table::parse(text, file).map_err(input))
            .transpose()?;
        let options = Options {
            table,
            confidence,
            cull: cull.parse().map_err(input)?,
            compensate: compensate.parse().map_err(input)?,
        };
        let analysis = Analysis::new(&manifest, options).map_err(input)?;
        Ok(Self {
            analysis: Some(analysis),
            worker: None,
        })
    }

    /// Returns how often the trace must be read.
    fn passes(&self) -> PyResult<usize> {
        Ok(self.analysis.as_ref().ok_or_else(over)?.passes())
    }

    /// Takes rows of the kernel; they come before all others.
    fn push_kernel(&mut self, py: Python<'_>, batches: &Bound<'_, PyAny>) -> PyResult<()> {
        let reader = reader(batches)?;
        let analysis = self.analysis.as_mut().ok_or_else(over)?;
        py.detach(|| {
            for batch in reader {
                analysis.push(&batch.map_err(input)?).map_err(input)?;
            }
            Ok(())
        })
    }

    /// Begins a shard: the next rows belong to it, and none of its rings is in another shard.
    /// `by_ring`: the rows of each ring come together.
    fn begin_part(&mut self, by_ring: bool) -> PyResult<()> {
        let analysis = self.analysis.as_mut().ok_or_else(over)?;
        self.worker = Some(analysis.worker(by_ring));
        Ok(())
    }

    /// Takes rows of the shard.
    fn push(&mut self, py: Python<'_>, batches: &Bound<'_, PyAny>) -> PyResult<()> {
        let reader = reader(batches)?;
        let worker = self.worker.as_mut();
        let worker = worker.ok_or_else(|| Error::new_err("no part was begun"))?;
        py.detach(|| {
            for batch in reader {
                worker.push(&batch.map_err(input)?).map_err(input)?;
            }
            Ok(())
        })
    }

    /// Returns the shard's result, as bytes for the machine that merges results.
    fn finish_part<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let worker = self.worker.take();
        let worker = worker.ok_or_else(|| Error::new_err("no part was begun"))?;
        let bytes = py.detach(|| {
            postcard::to_extend(&worker.finish(), MARK.as_bytes().to_vec())
                .map_err(|e| Error::new_err(format!("a part cannot be sent: {e}")))
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Merges the result of a shard. The same shards in the same order give the same report.
    fn absorb(&mut self, py: Python<'_>, part: &[u8]) -> PyResult<()> {
        let analysis = self.analysis.as_mut().ok_or_else(over)?;
        let body = part.strip_prefix(MARK.as_bytes()).ok_or_else(|| {
            let theirs = part.split(|&byte| byte == b'\n').next().unwrap_or(&[]);
            InputError::new_err(format!(
                "a part was made by {:?}, this is {:?}: install the same undertick everywhere",
                String::from_utf8_lossy(&theirs[..theirs.len().min(80)]),
                MARK.trim_end()
            ))
        })?;
        py.detach(|| {
            let part: ShardResult =
                postcard::from_bytes(body).map_err(|e| input(format!("not a part: {e}")))?;
            analysis.absorb(part);
            Ok(())
        })
    }

    /// Ends a pass, after all of its shards have been merged.
    fn finish_pass(&mut self, py: Python<'_>) -> PyResult<()> {
        let analysis = self.analysis.as_mut().ok_or_else(over)?;
        py.detach(|| analysis.finish_pass());
        Ok(())
    }

    /// Returns the report, once.
    fn report(&mut self, py: Python<'_>) -> PyResult<Report> {
        let analysis = self.analysis.take().ok_or_else(over)?;
        py.detach(|| analysis.finish())
            .map(Report::new)
            .map_err(input)
    }

    /// Returns the prefix of a shard's result: version and build.
    #[staticmethod]
    fn mark() -> &'static str {
        MARK.trim_end()
    }
}

/// Reads the record batches of any object with the Arrow PyCapsule interface.
fn reader(batches: &Bound<'_, PyAny>) -> PyResult<RecordBatchStreamReader> {
    let capsule = batches.call_method0("__arrow_c_stream__")?;
    let capsule = capsule.cast::<PyCapsule>()?;
    let stream = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
    // SAFETY: a capsule of that name holds a stream, which is taken out of it: what is
    // left behind says that it has been released.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr().cast()) };
    RecordBatchStreamReader::try_new(stream).map_err(input)
}

/// Row groups (part, place), rows, whether the rows of a ring lie together.
type Piece = (Vec<(usize, usize)>, u64, bool);

/// Returns the shards of a trace, which share no ring. Each part of `parts` states whether its rows
/// are in order, and its row groups.
#[pyfunction]
pub fn pieces(parts: Vec<(bool, Vec<RowGroup>)>) -> Vec<Piece> {
    (groups(&parts).into_iter())
        .map(|group| (group.row_groups, group.rows, group.by_ring))
        .collect()
}
