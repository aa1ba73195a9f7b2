//! The event numbers of names.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use pyo3::prelude::*;

/// First event number of names: a quarter of the range up, to leave room for the numbers that
/// native code chooses.
pub const FIRST: u16 = 0x4000;
/// Event number of all names for which there is no number left.
pub const OTHERS: u16 = 0x7fff;

static GIVEN: LazyLock<Mutex<HashMap<String, u16>>> = LazyLock::new(Mutex::default);

/// Returns the number of a name; a new name is written to the trace.
pub fn named(name: &str) -> u16 {
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(number) = given.get(name) {
        return *number;
    }
    let number = undertick::number(name);
    if number != OTHERS {
        given.insert(name.to_owned(), number);
    }
    number
}

/// Returns whether names got numbers, so that none is left; otherwise nothing is recorded.
pub fn are_used_up() -> bool {
    let given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    !given.is_empty()
}

/// Writes the names again: names belong to a process, and the child of a fork is a new one.
#[pyfunction]
pub fn _after_fork() {
    // No other thread can hold this lock: the thread that forked held the interpreter's lock, and
    // so this one too.
    let given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    for (name, number) in given.iter() {
        undertick::name(*number, name);
    }
}
