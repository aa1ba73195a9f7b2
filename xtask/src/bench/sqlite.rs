//! SQLite's own benchmark, compiled with hooks at its functions.

use crate::lint;
use crate::run::{Scratch, command, run};
use crate::sources::{self, SQLITE};

/// Compiles it with the SQLite that the demo has; returns its path.
pub fn benchmark(scratch: &Scratch) -> Result<String, String> {
    let metadata = lint::metadata()?;
    let manifest = (metadata["packages"].as_array().into_iter().flatten())
        .find(|package| package["name"] == "libsqlite3-sys")
        .and_then(|package| package["manifest_path"].as_str())
        .ok_or("no libsqlite3-sys among the packages")?;
    let library = manifest.replace("Cargo.toml", "sqlite3");
    let (source, program) = (sources::unpacked(&SQLITE)?, scratch.path("speedtest1"));
    let mut compile = command(&[
        "cc",
        "-O2",
        "-finstrument-functions",
        "-DSQLITE_THREADSAFE=0",
    ]);
    compile.args(["-DSQLITE_OMIT_LOAD_EXTENSION", "-I", &library]);
    compile.args([
        &format!("{source}/test/speedtest1.c"),
        &format!("{library}/sqlite3.c"),
    ]);
    compile.args(["-o", &program, "-lm"]);
    run(compile)?;
    Ok(program)
}
