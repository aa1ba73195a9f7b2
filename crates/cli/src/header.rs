//! `undertick header`.

use std::path::Path;

use undertick_functions::{COROUTINES, HEADER, LIBRARY, LIBRARY_FILE, SOURCE, SOURCE_FILE};

use crate::Failure;
use crate::options::Header;

pub fn run(arguments: &Header) -> Result<u8, Failure> {
    write(
        &arguments.dir,
        "undertick.h",
        HEADER.as_bytes(),
        b"UNDERTICK_H",
    )?;
    if arguments.coroutines {
        let mark = b"UNDERTICK_COROUTINE_HPP";
        write(
            &arguments.dir,
            "undertick_coroutine.hpp",
            COROUTINES.as_bytes(),
            mark,
        )?;
    }
    if arguments.functions {
        let mark = b"undertick_functions_version";
        write(&arguments.dir, SOURCE_FILE, SOURCE.as_bytes(), mark)?;
        write(&arguments.dir, LIBRARY_FILE, LIBRARY, mark)?;
    }
    Ok(0)
}

/// Writes a file, unless the name belongs to a file that lacks the mark.
fn write(dir: &Path, name: &str, bytes: &[u8], mark: &[u8]) -> Result<(), Failure> {
    let path = dir.join(name);
    let failed =
        |e: std::io::Error| Failure::machine(format!("{}: cannot write: {e}", path.display()));
    match std::fs::read(&path) {
        Ok(there) if there == bytes => {}
        Ok(there) if !there.windows(mark.len()).any(|part| part == mark) => {
            return Err(Failure::usage(format!(
                "{}: exists and is another file; give another --dir",
                path.display()
            )));
        }
        _ => {
            std::fs::create_dir_all(dir).map_err(failed)?;
            std::fs::write(&path, bytes).map_err(failed)?;
        }
    }
    say!("undertick: {}", path.display());
    Ok(())
}
