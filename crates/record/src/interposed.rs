//! What the program's threads wait for and allocate, recorded by libraries that it preloads.

use std::ffi::OsStr;

use undertick_format::TraceError;
use undertick_format::interposed::{FIRST_EVENT, name};
use undertick_format::manifest::{Manifest, Name};
use undertick_functions::before;
pub use undertick_interpose::Library;

use crate::functions::{Functions, Recorded};
use crate::preload::Preloads;
use crate::session::Session;
use crate::trace_dir::TraceDir;

/// Refuses a program that cannot preload a library.
///
/// # Errors
/// The reason, and the mend.
pub fn check(program: &OsStr) -> Result<(), TraceError> {
    before::can_preload(program).map_err(crate::functions::functions_error)
}

/// Names of the events of these libraries.
#[must_use]
pub fn names(libraries: &[Library]) -> Vec<Name> {
    let events = FIRST_EVENT..=u16::MAX;
    let named = events.filter_map(|event| {
        Some(Name {
            pid: None,
            event,
            name: name(event)?.to_owned(),
        })
    });
    match libraries.is_empty() {
        true => Vec::new(),
        false => named.collect(),
    }
}

/// Writes the libraries that the program preloads, for these functions too.
pub(crate) fn preload(
    (functions, libraries): (Option<&Functions>, &[Library]),
    session: &Session,
    trace: &TraceDir,
) -> Result<(Preloads, Option<Recorded>), TraceError> {
    let others = [session.dir(), trace.path()];
    let mut preloads = Preloads::default();
    let functions = functions
        .map(|functions| functions.start(others[0], others[1], &mut preloads))
        .transpose()?;
    for library in libraries {
        preloads.add(library.file(), library.bytes(), &others)?;
    }
    Ok((preloads, functions))
}

/// What is missing in a recording with these libraries.
pub(crate) fn missing(manifest: &Manifest) -> Option<String> {
    let has_some = manifest.rings.iter().any(|ring| ring.interposed);
    // A program may never wait for a lock.
    (manifest.is_with(Library::Malloc.name()) && !has_some).then(|| {
        "--with malloc: no allocation was recorded: does the loader of this program heed LD_PRELOAD, and \
         does the program allocate through the C library?"
            .to_owned()
    })
}
