//! Which functions of an unmodified program are called, how often and for how long?
//!
//! A program compiled with `-finstrument-functions` calls a hook at the start and at the end of
//! each function. [`LIBRARY`] is a shared object with these hooks. When preloaded, it records the
//! calls through `undertick.h`, by address only. Names are read and filtered in the recorder's
//! process. [`symbols`] reads a file's symbols. [`table`] selects which of them to record, and
//! later lists which were called. [`answers`] gives tables to programs that ask for them.
//! [`before`] checks before a program starts whether anything can be recorded.
//!
//! Caveats: ELF, glibc, and the recorder's own processor only. Functions without a symbol (static
//! ones of a stripped file) have no name, so no filter can select them, and they are not recorded.

pub mod answers;
pub mod before;
mod error;
mod layout;
pub mod names;
pub mod symbols;
pub mod table;

pub use error::FunctionsError;
pub use layout::FIRST_FUNCTION;
pub use regex::Regex;

/// `libundertick_functions.so`, for the machine that this crate was built for.
pub static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libundertick_functions.so"));
/// C source of the library, which needs `undertick.h` beside it.
pub const SOURCE: &str = include_str!("undertick_functions.c");
/// The header that programs record with, of this version.
pub const HEADER: &str = include_str!("../include/undertick.h");
/// Text of `undertick_coroutine.hpp`, which includes it.
pub const COROUTINES: &str = include_str!("../include/undertick_coroutine.hpp");
/// File name of the library.
pub const LIBRARY_FILE: &str = "libundertick_functions.so";
/// File name of the library's source.
pub const SOURCE_FILE: &str = "undertick_functions.c";

/// The filter of `--functions`.
///
/// # Errors
/// The text is no regular expression.
pub fn filter(text: &str) -> Result<Regex, FunctionsError> {
    Regex::new(text).map_err(|error| FunctionsError::Filter {
        filter: text.to_owned(),
        error,
    })
}
