//! Which event numbers names get.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use pyo3::prelude::*;

/// The first: a quarter of all numbers up, out of the way of those that native code
/// gives its own events. The last is before those of `undertick record --functions`.
pub const FIRST: u16 = 0x4000;
/// That of all names for which there is no number left.
pub const OTHERS: u16 = 0x7fff;

/// Names by number: entry `i` is [`FIRST`]` + i`.
#[derive(Default)]
struct Given {
    names: Vec<String>,
    numbers: HashMap<String, u16>,
}

static GIVEN: LazyLock<Mutex<Given>> = LazyLock::new(Mutex::default);

/// The number of a name; a new one is told to the trace.
pub fn named(name: &str) -> u16 {
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(number) = given.numbers.get(name) {
        return *number;
    }
    let number = FIRST as usize + given.names.len();
    if number >= usize::from(OTHERS) {
        if number == usize::from(OTHERS) {
            given.names.push("(other names)".to_owned());
            undertick::name(OTHERS, "(other names)");
        }
        return OTHERS;
    }
    let number = number as u16;
    given.names.push(name.to_owned());
    given.numbers.insert(name.to_owned(), number);
    undertick::name(number, name);
    number
}

/// Tells the names once more: they are a process's, and this is a new one.
#[pyfunction]
pub fn _after_fork() {
    // Whoever held it is not in this process: the lock of the interpreter was held by the
    // thread that forked, and with that one this.
    let given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    for (i, name) in given.names.iter().enumerate() {
        undertick::name(FIRST + i as u16, name);
    }
}
