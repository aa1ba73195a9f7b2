//! `undertick header`.

use crate::Failure;
use crate::args::Header;

/// The header of this version, as the repository has it.
const TEXT: &str = include_str!("../../../include/undertick.h");

pub fn run(arguments: &Header) -> Result<u8, Failure> {
    let path = arguments.dir.join("undertick.h");
    let failed = |e: std::io::Error| Failure {
        status: 1,
        text: format!("{}: cannot write: {e}", path.display()),
    };
    match std::fs::read_to_string(&path) {
        Ok(there) if there == TEXT => {}
        Ok(there) if !there.contains("UNDERTICK_H") => {
            return Err(Failure::usage(format!(
                "{}: exists and is another file; give another --dir",
                path.display()
            )));
        }
        _ => {
            std::fs::create_dir_all(&arguments.dir).map_err(failed)?;
            std::fs::write(&path, TEXT).map_err(failed)?;
        }
    }
    eprintln!("undertick: {}", path.display());
    Ok(0)
}
