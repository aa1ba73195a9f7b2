//! Tasks of `asyncio`: coroutines whose polls are recorded, and what wakes them.
//!
//! **Method.** A [`TaskCoroutine`] stands for a coroutine and passes everything on to it; each `send` and `throw`
//! is a poll. A task is woken when its event loop is asked to call its next step soon: [`CallSoon`] stands for
//! that method of the loop, and finds the coroutines that wait in the task.
//!
//! **Caveats.** Coroutines that are recorded within others (`await`) are woken with the task. Where `call_soon`
//! cannot be replaced (uvloop), wakes are not known.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::{Mutex, OnceLock, PoisonError};

use pyo3::exceptions::PyStopIteration;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{PyTraverseError, PyVisit};
use undertick::{begin, enabled, end, event};

use crate::numbers;

/// Most coroutines that wait for each other in one task and are looked at.
const MOST_DEEP: usize = 64;

/// The events of tasks of one name (`docs/format.md`, section 14).
#[derive(Clone, Copy)]
struct Events {
    poll: u16,
    new: u16,
    polled: u16,
    woken: u16,
    done: u16,
    cancelled: u16,
}

impl Events {
    /// The events of a name; requested once.
    fn named(name: &str) -> Self {
        static KNOWN: Mutex<Option<HashMap<String, Events>>> = Mutex::new(None);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        if let Some(events) = known.get(name) {
            return *events;
        }
        let number = |end: &str| numbers::named(&format!("{name}{end}"));
        let events = Self {
            poll: number(""),
            new: number(" task new"),
            polled: number(" task polled"),
            woken: number(" task woken"),
            done: number(" task done"),
            cancelled: number(" task cancelled"),
        };
        if events.cancelled != numbers::OTHERS {
            known.insert(name.to_owned(), events);
        }
        events
    }
}

/// Returns a number that no other task of this process is likely to have; never 0.
pub(crate) fn next_number() -> u32 {
    static FIRST: OnceLock<u32> = OnceLock::new();
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Native parts count, too, so all begin at random.
    let first = *FIRST.get_or_init(|| RandomState::new().build_hasher().finish() as u32);
    loop {
        let number = first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        if number != 0 {
            return number;
        }
    }
}

/// A coroutine that is recorded as a task: its creation, each poll, what woke it, and its end.
///
/// `undertick.asyncio` makes it. It passes everything on to the coroutine that it was made of.
#[pyclass(frozen, module = "undertick.asyncio")]
pub struct TaskCoroutine {
    coroutine: Py<PyAny>,
    name: String,
    /// Requested when something is recorded.
    events: OnceLock<Events>,
    /// 0: nothing has been recorded.
    number: AtomicU32,
    /// It was woken since its last poll began; further wakes say nothing.
    is_woken: AtomicBool,
    has_ended: AtomicBool,
}

/// What a step of a coroutine gives.
enum Step {
    Yields(Py<PyAny>),
    Returns(Py<PyAny>),
}

#[pymethods]
impl TaskCoroutine {
    #[new]
    fn new(coroutine: Py<PyAny>, name: String) -> Self {
        let this = Self {
            coroutine,
            name,
            events: OnceLock::new(),
            number: AtomicU32::new(0),
            // Its first step is called soon, too.
            is_woken: AtomicBool::new(true),
            has_ended: AtomicBool::new(false),
        };
        if enabled() {
            let number = next_number();
            this.number.store(number, Ordering::Relaxed);
            event(this.events().new, number);
        }
        this
    }

    fn __await__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.polled(py, |coroutine| sent(py, coroutine, &py.None()))
    }

    /// Resumes the coroutine with a value.
    fn send(&self, py: Python<'_>, value: Py<PyAny>) -> PyResult<Py<PyAny>> {
        self.polled(py, |coroutine| sent(py, coroutine, &value))
    }

    /// Resumes the coroutine with an exception.
    #[pyo3(signature = (*exception))]
    fn throw(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        self.polled(py, |coroutine| {
            let result = coroutine.call_method1(py, "throw", exception.clone());
            match result {
                Ok(yielded) => Ok(Step::Yields(yielded)),
                Err(error) if error.is_instance_of::<PyStopIteration>(py) => {
                    let value = error.value(py).getattr("value")?;
                    Ok(Step::Returns(value.unbind()))
                }
                Err(error) => Err(error),
            }
        })
    }

    /// Ends the coroutine.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.coroutine.call_method0(py, "close")?;
        self.ended(true);
        Ok(())
    }

    /// What else a coroutine has: `cr_frame`, `cr_await`, `__qualname__` and so on.
    fn __getattr__(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        self.coroutine.getattr(py, name)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!(
            "<undertick task {:?} of {}>",
            self.name,
            self.coroutine.bind(py).repr()?
        ))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.coroutine)
    }
}

impl TaskCoroutine {
    fn events(&self) -> Events {
        *self.events.get_or_init(|| Events::named(&self.name))
    }

    /// Performs a step, which is a poll.
    fn polled(
        &self,
        py: Python<'_>,
        step: impl FnOnce(&Py<PyAny>) -> PyResult<Step>,
    ) -> PyResult<Py<PyAny>> {
        if !enabled() || self.has_ended.load(Ordering::Relaxed) {
            return returned(step(&self.coroutine));
        }
        let events = self.events();
        let mut number = self.number.load(Ordering::Relaxed);
        if number == 0 {
            // A recorder attached after its creation.
            number = next_number();
            self.number.store(number, Ordering::Relaxed);
        }
        self.is_woken.store(false, Ordering::Relaxed);
        event(events.polled, number);
        begin(events.poll);
        let result = step(&self.coroutine);
        end(events.poll);
        match &result {
            Ok(Step::Yields(_)) => {}
            Ok(Step::Returns(_)) => self.ended(false),
            Err(error) => self.ended(is_cancelled(py, error)),
        }
        returned(result)
    }

    fn ended(&self, is_cancelled: bool) {
        let number = self.number.load(Ordering::Relaxed);
        if self.has_ended.swap(true, Ordering::Relaxed) || number == 0 {
            return;
        }
        let events = self.events();
        match is_cancelled {
            true => event(events.cancelled, number),
            false => event(events.done, number),
        }
    }

    fn woken(&self) {
        let number = self.number.load(Ordering::Relaxed);
        if number != 0 && !self.is_woken.swap(true, Ordering::Relaxed) {
            event(self.events().woken, number);
        }
    }
}

impl Drop for TaskCoroutine {
    fn drop(&mut self) {
        self.ended(true);
    }
}

/// Resumes a coroutine.
fn sent(py: Python<'_>, coroutine: &Py<PyAny>, value: &Py<PyAny>) -> PyResult<Step> {
    let mut result = core::ptr::null_mut();
    // SAFETY: the lock is held; both are objects. A result is one whose reference is ours.
    unsafe {
        let sent = ffi::PyIter_Send(coroutine.as_ptr(), value.as_ptr(), &raw mut result);
        match sent {
            ffi::PySendResult::PYGEN_NEXT => {
                Ok(Step::Yields(Bound::from_owned_ptr(py, result).unbind()))
            }
            ffi::PySendResult::PYGEN_RETURN => {
                Ok(Step::Returns(Bound::from_owned_ptr(py, result).unbind()))
            }
            ffi::PySendResult::PYGEN_ERROR => Err(PyErr::fetch(py)),
        }
    }
}

/// A value that is returned is raised, as the iterator's protocol wants it.
fn returned(step: PyResult<Step>) -> PyResult<Py<PyAny>> {
    match step? {
        Step::Yields(value) => Ok(value),
        Step::Returns(value) => Err(PyStopIteration::new_err((value,))),
    }
}

fn is_cancelled(py: Python<'_>, error: &PyErr) -> bool {
    static CANCELLED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let kind = CANCELLED.get_or_try_init(py, || {
        let asyncio = py.import("asyncio")?;
        Ok::<_, PyErr>(asyncio.getattr("CancelledError")?.unbind())
    });
    kind.is_ok_and(|kind| error.is_instance(py, kind.bind(py)))
}

/// Stands for `call_soon` of an event loop, and records which tasks it wakes.
#[pyclass(frozen, module = "undertick.asyncio")]
pub struct CallSoon {
    call_soon: Py<PyAny>,
}

#[pymethods]
impl CallSoon {
    #[new]
    fn new(call_soon: Py<PyAny>) -> Self {
        Self { call_soon }
    }

    #[pyo3(signature = (*arguments, **options))]
    fn __call__(
        &self,
        py: Python<'_>,
        arguments: &Bound<'_, PyTuple>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        if enabled()
            && let Ok(callback) = arguments.get_item(0)
            && let Ok(task) = callback.getattr("__self__")
            && let Ok(coroutine) = task.call_method0("get_coro")
        {
            wake(coroutine);
        }
        self.call_soon.call(py, arguments.clone(), options)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.call_soon)
    }
}

/// Records the wake of the coroutines of a task that are recorded, from the outermost one in.
fn wake(mut coroutine: Bound<'_, PyAny>) {
    for _ in 0..MOST_DEEP {
        let next = match coroutine.cast::<TaskCoroutine>() {
            Ok(task) => {
                task.get().woken();
                Ok(task.get().coroutine.bind(coroutine.py()).clone())
            }
            Err(_) => coroutine.getattr("cr_await"),
        };
        match next {
            Ok(next) if !next.is_none() => coroutine = next,
            _ => return,
        }
    }
}
