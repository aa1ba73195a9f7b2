//! Which event numbers names get.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use pyo3::prelude::*;

/// The first one: a quarter of all numbers up, out of the way of those that native code
/// gives its own events.
pub const FIRST: u16 = 0x4000;
/// That of all names for which there is no number left.
pub const OTHERS: u16 = 0x7fff;

static GIVEN: LazyLock<Mutex<HashMap<String, u16>>> = LazyLock::new(Mutex::default);

/// The number of a name; a new one is told to the trace.
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

/// Whether numbers were given, and there are no more; else nothing is recorded.
pub fn are_used_up() -> bool {
    let given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    !given.is_empty()
}

/// Tells the names once more: they are a process's, and this is a new one.
#[pyfunction]
pub fn _after_fork() {
    // Whoever held it is not in this process: the lock of the interpreter was held by the
    // thread that forked, and with that one this.
    let given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    for (name, number) in given.iter() {
        undertick::name(*number, name);
    }
}
