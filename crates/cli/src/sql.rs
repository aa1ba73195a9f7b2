//! `undertick sql`, performed by the Python package, which has DuckDB.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use clap::Args;

use crate::Failure;

/// Environment variable with the interpreter that has the package, if it is not `python3`.
const PYTHON: &str = "UNDERTICK_PYTHON";

/// Answer a question about a trace in SQL, by DuckDB in the Python package
#[derive(Args)]
#[command(
    override_usage = "undertick sql <NAME.ut> [QUERY] [--json|--csv]",
    after_help = "Example:\n  undertick sql run.ut \"select name, count(*), avg(took_ns) from spans group by name\"\n\n\
    Views: spans, points, events, intervals, kernel, names, threads, manifest; docs/book/sql.md has a cookbook. Needs the\n\
    Python package (pip install 'undertick[sql]') in python3, or in the interpreter that UNDERTICK_PYTHON names."
)]
pub struct Sql {
    /// Trace directory, query and options
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    words: Vec<OsString>,
}

pub fn run(sql: &Sql) -> Result<u8, Failure> {
    let python = std::env::var_os(PYTHON).unwrap_or_else(|| "python3".into());
    let shown = python.to_string_lossy().into_owned();
    let has_package = Command::new(&python)
        .args(["-c", "import undertick"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !has_package {
        return Err(Failure::machine(format!(
            "{shown} has no package undertick, which answers SQL: pip install 'undertick[sql]' \
                 (from a copy of the repository: pip install './python[sql]'), or name an interpreter \
                 that has it with {PYTHON}=/path/to/python"
        )));
    }
    let error = Command::new(&python)
        .args(["-m", "undertick", "sql"])
        .args(&sql.words)
        .exec();
    Err(Failure::machine(format!(
        "{shown} could not be started: {error}"
    )))
}
