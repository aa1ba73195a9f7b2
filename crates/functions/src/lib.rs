//! Which functions of a program are called, how often and for how long, when
//! nobody edits it?
//!
//! A program compiled with `-finstrument-functions` calls a hook at the begin and
//! at the end of each function. [`LIBRARY`] is a shared object with these hooks;
//! preloaded, it records the calls through `undertick.h`. It knows addresses only.
//! Names are read and filtered here, in the recorder's process: [`symbols`] reads
//! a file's symbols, [`table`] says which of them are to be recorded and later
//! which were called, [`answers`] hands tables to programs that ask for them,
//! [`before`] says before a program starts whether anything can come of it, and
//! [`preload`] puts the library where the program can load it.
//!
//! Caveats: ELF, glibc, the recorder's own processor. Functions without a symbol
//! (static ones of a stripped file) have no name, so no filter can choose them, and
//! they are not recorded.

pub mod answers;
pub mod before;
mod error;
mod layout;
pub mod names;
pub mod preload;
pub mod symbols;
pub mod table;

pub use error::FunctionsError;
pub use layout::FIRST_EVENT;
pub use regex::Regex;

/// `libundertick_functions.so`, for the machine that this was built for.
pub static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libundertick_functions.so"));
/// Its C source, which needs `undertick.h` beside it.
pub const SOURCE: &str = include_str!("undertick_functions.c");
/// Its file name.
pub const LIBRARY_FILE: &str = "libundertick_functions.so";
/// File name of its source.
pub const SOURCE_FILE: &str = "undertick_functions.c";

/// The filter of `--functions`.
///
/// # Errors
/// It is no regular expression.
pub fn filter(text: &str) -> Result<Regex, FunctionsError> {
    Regex::new(text).map_err(|error| FunctionsError::Filter {
        filter: text.to_owned(),
        error,
    })
}
