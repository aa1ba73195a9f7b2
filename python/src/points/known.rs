//! The span objects of names, and the cache that finds them.

use core::cell::UnsafeCell;
use core::ptr::null_mut;

use pyo3::exceptions::{PyRuntimeWarning, PyTypeError, PyValueError};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

use super::objects::{decorate, enter, exit};
use crate::numbers;

/// As `ffi::vectorcallfunc`, which is declared from Python 3.12 on; the convention is
/// that of 3.8 and later.
pub(super) type VectorCall = unsafe extern "C" fn(
    *mut PyObject,
    *const *mut PyObject,
    usize,
    *mut PyObject,
) -> *mut PyObject;

/// Flag in the count of arguments that is not part of the count.
pub(super) const ARGUMENTS_OFFSET: usize = 1 << (usize::BITS - 1);

/// The span of a name or number: never freed.
#[repr(C)]
pub(super) struct Span {
    pub(super) head: PyObject,
    pub(super) call: VectorCall,
    /// The name, a str, or the number, an int.
    pub(super) asked: *mut PyObject,
    pub(super) enter: *mut PyObject,
    pub(super) exit: *mut PyObject,
    pub(super) event: u16,
    /// Numbers of the begin and the end by number; 0: not asked for yet ([`super::scopes`]).
    pub(super) scope: [u16; 2],
}

/// `__enter__` or `__exit__` of one span.
#[repr(C)]
pub(super) struct BoundSpan {
    pub(super) head: PyObject,
    pub(super) call: VectorCall,
    pub(super) span: *mut Span,
}

/// Common head of the objects for `__enter__` and `__exit__`.
#[repr(C)]
pub(super) struct Method {
    pub(super) head: PyObject,
    pub(super) call: VectorCall,
    pub(super) is_exit: bool,
}

/// Number of entries of the cache; a power of two.
const CACHED: usize = 1024;

/// State of the module.
pub(super) struct State {
    pub(super) cache: [(*mut PyObject, *mut Span); CACHED],
    /// Maps a name or number to its [`Span`].
    pub(super) known: *mut PyObject,
    pub(super) span_type: *mut PyObject,
    pub(super) bound_type: *mut PyObject,
    pub(super) scope_type: *mut PyObject,
    /// Makes a decorated function of a span and a function.
    pub(super) decorate: *mut PyObject,
    pub(super) was_warned: bool,
}

pub(super) struct Guarded(UnsafeCell<State>);

impl Guarded {
    /// Returns the state.
    #[inline(always)]
    pub(super) const fn get(&self) -> *mut State {
        self.0.get()
    }
}

// SAFETY: only used by a thread that holds the interpreter's lock.
unsafe impl Sync for Guarded {}

pub(super) static STATE: Guarded = Guarded(UnsafeCell::new(State {
    cache: [(null_mut(), null_mut()); CACHED],
    known: null_mut(),
    span_type: null_mut(),
    bound_type: null_mut(),
    scope_type: null_mut(),
    decorate: null_mut(),
    was_warned: false,
}));

#[inline(always)]
fn place(asked: *mut PyObject) -> usize {
    // Objects lie at multiples of 16, and the strings of a module lie next to each other.
    let word = (asked as usize >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as usize);
    word >> (usize::BITS - CACHED.trailing_zeros())
}

/// Returns the span of a name or number; null with an exception set.
///
/// # Safety
/// The interpreter's lock is held; `asked` is an object.
#[inline(always)]
pub(super) unsafe fn span_of(asked: *mut PyObject) -> *mut Span {
    // SAFETY: the lock is held.
    let (known, span) = unsafe { (*STATE.get()).cache[place(asked)] };
    if known == asked {
        return span;
    }
    // SAFETY: as promised.
    unsafe { find(asked) }
}

/// As [`span_of`], for a name that is not in the cache.
#[cold]
#[inline(never)]
unsafe fn find(asked: *mut PyObject) -> *mut Span {
    // SAFETY: the lock is held, and not given up while the state is looked at: a str's or
    // an int's hash and comparison run no code of Python.
    unsafe {
        let state = STATE.get();
        let is_name = ffi::PyUnicode_CheckExact(asked) != 0;
        if !is_name && ffi::PyLong_CheckExact(asked) == 0 {
            if ffi::PyUnicode_Check(asked) != 0 {
                // A subclass may define any comparison: look up its plain text.
                let plain = ffi::PyUnicode_FromObject(asked);
                if plain.is_null() {
                    return null_mut();
                }
                let span = find(plain);
                ffi::Py_DecRef(plain);
                return span;
            }
            return refuse("a name is a str, or the int that native code uses for the event");
        }
        let mut span = ffi::PyDict_GetItemWithError((*state).known, asked).cast::<Span>();
        if span.is_null() {
            if !ffi::PyErr_Occurred().is_null() {
                return null_mut();
            }
            span = make(asked, is_name);
            if span.is_null() {
                return null_mut();
            }
        }
        ffi::Py_IncRef(asked);
        let entry = &mut (*state).cache[place(asked)];
        let before = entry.0;
        *entry = (asked, span);
        ffi::Py_DecRef(before);
        span
    }
}

/// Makes a new span and adds it to the known ones.
unsafe fn make(asked: *mut PyObject, is_name: bool) -> *mut Span {
    // SAFETY: as `find`; objects are as large as their types say.
    unsafe {
        let state = STATE.get();
        let event = if is_name {
            let Some(name) = text(asked) else {
                return null_mut();
            };
            if name.is_empty() {
                return refuse_value("an empty name");
            }
            numbers::named(&name)
        } else {
            match u16::try_from(ffi::PyLong_AsLong(asked)) {
                Ok(event) if ffi::PyErr_Occurred().is_null() => event,
                _ => {
                    ffi::PyErr_Clear();
                    return refuse_value("an event number lies between 0 and 65535");
                }
            }
        };
        if is_name && event == numbers::OTHERS && !(*state).was_warned && numbers::are_used_up() {
            (*state).was_warned = true;
            Python::attach(|py| {
                let category = py.get_type::<PyRuntimeWarning>();
                let _ = PyErr::warn(py, &category, c"undertick: more than 16383 names; further ones are recorded as \"(other names)\"", 1);
            });
        }
        let new = |kind: *mut PyObject| ffi::PyType_GenericAlloc(kind.cast(), 0);
        let span = new((*state).span_type).cast::<Span>();
        let bounds = [new((*state).bound_type), new((*state).bound_type)];
        if span.is_null() || bounds.iter().any(|bound| bound.is_null()) {
            return null_mut(); // no memory: an exception is set
        }
        for (bound, call) in bounds.into_iter().zip([enter as VectorCall, exit]) {
            let bound = bound.cast::<BoundSpan>();
            (*bound).call = call;
            (*bound).span = span;
        }
        ffi::Py_IncRef(asked);
        (*span).call = decorate;
        (*span).asked = asked;
        [(*span).enter, (*span).exit] = bounds;
        (*span).event = event;
        (*span).scope = [0; 2];
        // This reference is never given up, because the cache holds none.
        if ffi::PyDict_SetItem((*state).known, asked, span.cast()) != 0 {
            return null_mut();
        }
        span
    }
}

fn text(asked: *mut PyObject) -> Option<String> {
    let mut bytes = 0;
    // SAFETY: a str; what comes back lives as long as it does.
    unsafe {
        let start = ffi::PyUnicode_AsUTF8AndSize(asked, &raw mut bytes).cast::<u8>();
        if start.is_null() {
            return None; // lone surrogates: an exception is set
        }
        let bytes = core::slice::from_raw_parts(start, bytes as usize);
        Some(String::from_utf8_lossy(bytes).into_owned())
    }
}

#[cold]
pub(super) fn refuse<T>(why: &'static str) -> *mut T {
    Python::attach(|py| PyTypeError::new_err(why).restore(py));
    null_mut()
}

#[cold]
fn refuse_value<T>(why: &'static str) -> *mut T {
    Python::attach(|py| PyValueError::new_err(why).restore(py));
    null_mut()
}

/// Returns a new reference to None.
///
/// # Safety
/// The interpreter's lock is held.
#[inline(always)]
pub(super) unsafe fn none() -> *mut PyObject {
    // SAFETY: the lock is held.
    unsafe {
        let none = ffi::Py_None();
        ffi::Py_INCREF(none);
        none
    }
}
