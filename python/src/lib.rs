//! The native module of the Python package `undertick`: the recorder's calls, opening traces, the
//! analysis, the estimators and the command line.
//!
//! It is a thin layer over the Rust crates, in Python's types. Users see `python/undertick`; of
//! this module they call only `points` directly.

mod estimates;
mod explanations;
mod kernel;
mod numbers;
mod points;
mod reports;
mod streams;
mod tasks;
mod traces;

use std::ffi::{OsString, c_int};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use undertick_cli::Own;

pyo3::create_exception!(
    undertick,
    Error,
    PyRuntimeError,
    "A measurement that could not be made as asked."
);
pyo3::create_exception!(
    undertick,
    InputError,
    Error,
    "Wrong usage, or input that is not what it must be."
);

unsafe extern "C" {
    fn undertick_calibration_of_library(passes: u32, of_functions: c_int) -> u64;
}

/// Runs the workload of the calibration.
fn calibration(passes: u32, of_functions: bool) {
    // SAFETY: of its own process; touches nothing but its own memory.
    std::hint::black_box(unsafe {
        undertick_calibration_of_library(passes, c_int::from(of_functions))
    });
}

/// Runs a command line, whose first word is the program's name; returns its exit status.
///
/// `own` are the words that start this command line again.
#[pyfunction]
fn command_line(py: Python<'_>, words: Vec<OsString>, own: Vec<OsString>) -> u8 {
    let own = Own {
        words: own,
        calibration,
    };
    py.detach(|| undertick_cli::run(words, own))
}

/// Names an event number that native code in this process uses, 0 to 65535.
///
/// `span`, `event`, `next` and `pair` name their events themselves.
///
/// >>> import undertick
/// >>> undertick.name(7, "flush")
#[pyfunction]
fn name(event: u16, name: &str) {
    undertick::name(event, name);
}

/// Names the calling thread in the trace.
///
/// >>> import undertick
/// >>> undertick.thread_name("reader")
#[pyfunction]
fn thread_name(name: &str) {
    undertick::thread_name(name);
}

/// Returns whether events of this process are being recorded now.
///
/// >>> import undertick
/// >>> undertick.enabled() in (True, False)
/// True
#[pyfunction]
fn enabled() -> bool {
    undertick::enabled()
}

#[pymodule(gil_used = true)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    points::add(module)?;
    for function in [
        wrap_pyfunction!(command_line, module)?,
        wrap_pyfunction!(name, module)?,
        wrap_pyfunction!(thread_name, module)?,
        wrap_pyfunction!(enabled, module)?,
        wrap_pyfunction!(points::_set_decorate, module)?,
        wrap_pyfunction!(numbers::_after_fork, module)?,
        wrap_pyfunction!(estimates::estimate, module)?,
        wrap_pyfunction!(estimates::compare, module)?,
        wrap_pyfunction!(reports::compare_documents, module)?,
        wrap_pyfunction!(kernel::pieces, module)?,
        wrap_pyfunction!(traces::read_table, module)?,
        wrap_pyfunction!(traces::read_document, module)?,
        wrap_pyfunction!(traces::shown, module)?,
        wrap_pyfunction!(traces::shown_lines, module)?,
        wrap_pyfunction!(traces::csv_cell, module)?,
    ] {
        module.add_function(function)?;
    }
    module.add_class::<traces::Trace>()?;
    module.add_class::<kernel::Kernel>()?;
    module.add_class::<reports::Report>()?;
    module.add_class::<streams::Batches>()?;
    module.add_class::<tasks::TaskCoroutine>()?;
    module.add_class::<tasks::CallSoon>()?;
    module.add("Error", py.get_type::<Error>())?;
    module.add("InputError", py.get_type::<InputError>())?;
    module.add("FIRST_EVENT", numbers::FIRST)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
