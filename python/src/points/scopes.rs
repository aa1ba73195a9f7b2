//! Spans that may contain awaits: `undertick.asyncio.span`.
//!
//! **Method.** While a coroutine waits, others use its thread, so begin and end are matched by a number: they
//! are records of a task without polls (`docs/format.md`, section 14). Each `with` has its own object, which holds
//! that number. Looking up `__enter__` and `__exit__` gives the object itself, which tells its calls by the
//! number of their arguments: so a `with` makes one object and calls no code of Python.

use core::ffi::c_void;
use core::ptr::null_mut;

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

use super::known::{ARGUMENTS_OFFSET, STATE, Span, VectorCall, none, refuse, span_of};
use super::objects::make_type;
use crate::numbers;
use crate::tasks::next_number;

/// A span that begins and ends by number.
#[repr(C)]
struct Scope {
    head: PyObject,
    call: VectorCall,
    span: *mut Span,
    /// 0: it has not begun.
    number: u32,
}

/// `__enter__` or `__exit__` of the type.
#[repr(C)]
struct ScopeMethod {
    head: PyObject,
    call: VectorCall,
}

/// `asyncio.span(name)`.
pub(super) unsafe extern "C" fn scope(_: *mut PyObject, asked: *mut PyObject) -> *mut PyObject {
    // SAFETY: the lock is held, `asked` is an object; the type's objects are scopes.
    unsafe {
        let span = span_of(asked);
        if span.is_null() {
            return null_mut();
        }
        let scope = ffi::PyType_GenericAlloc((*STATE.get()).scope_type.cast(), 0).cast::<Scope>();
        if !scope.is_null() {
            (*scope).call = call;
            (*scope).span = span;
        }
        scope.cast()
    }
}

/// `__enter__()`, or `__exit__(type, value, traceback)`.
unsafe extern "C" fn call(
    this: *mut PyObject,
    _: *const *mut PyObject,
    count: usize,
    _: *mut PyObject,
) -> *mut PyObject {
    let scope = this.cast::<Scope>();
    // SAFETY: a scope: its type names this function.
    unsafe {
        match count & !ARGUMENTS_OFFSET {
            0 if (*scope).number != 0 => begun(),
            0 => {
                if undertick::enabled() {
                    let [new, _] = events((*scope).span);
                    (*scope).number = next_number();
                    undertick::event(new, (*scope).number);
                }
                ffi::Py_INCREF(this);
                this
            }
            3 => {
                if (*scope).number != 0 {
                    let [_, done] = events((*scope).span);
                    undertick::event(done, (*scope).number);
                    (*scope).number = 0;
                }
                none()
            }
            _ => refuse("a span is used by `with undertick.asyncio.span(name):`"),
        }
    }
}

#[cold]
fn begun() -> *mut PyObject {
    let why = "this span has not ended; make another one: undertick.asyncio.span(name)";
    Python::attach(|py| PyRuntimeError::new_err(why).restore(py));
    null_mut()
}

/// Numbers of the begin and the end of a name.
///
/// # Safety
/// The lock is held; `span` is one.
#[inline(always)]
unsafe fn events(span: *mut Span) -> [u16; 2] {
    // SAFETY: as promised.
    unsafe {
        match (*span).scope {
            [0, _] => ask(span),
            known => known,
        }
    }
}

/// As [`events`], at the first use of a name that is recorded.
#[cold]
#[inline(never)]
unsafe fn ask(span: *mut Span) -> [u16; 2] {
    // SAFETY: as `events`.
    unsafe {
        let name = Python::attach(|py| {
            let asked = Bound::from_borrowed_ptr(py, (*span).asked);
            asked.str().map_or_else(
                |_| String::new(),
                |name| name.to_string_lossy().into_owned(),
            )
        });
        let found = [" task new", " task done"].map(|end| numbers::named(&format!("{name}{end}")));
        if !found.contains(&numbers::OTHERS) {
            (*span).scope = found;
        }
        found
    }
}

/// `Scope.__enter__(scope)` and `Scope.__exit__(scope, ...)`, as `contextlib.ExitStack` calls them.
unsafe extern "C" fn unbound(
    _: *mut PyObject,
    arguments: *const *mut PyObject,
    count: usize,
    names: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: there are `count` arguments; the type of the first is looked at.
    unsafe {
        let count = count & !ARGUMENTS_OFFSET;
        if count == 0 || ffi::Py_TYPE(*arguments).cast() != (*STATE.get()).scope_type {
            return refuse("the first argument is a span of undertick.asyncio");
        }
        call(*arguments, arguments.add(1), count - 1, names)
    }
}

/// Looking a method up gives the scope itself.
unsafe extern "C" fn descr_get(
    this: *mut PyObject,
    object: *mut PyObject,
    _: *mut PyObject,
) -> *mut PyObject {
    let found = if object.is_null() { this } else { object };
    // SAFETY: an object.
    unsafe { ffi::Py_INCREF(found) };
    found
}

/// Makes the types.
///
/// # Safety
/// The lock is held.
pub(super) unsafe fn add(py: Python<'_>) -> PyResult<()> {
    // SAFETY: each object is as large as its type says.
    unsafe {
        let doc = c"What `undertick.asyncio.span` gives: a context manager for one use at a time.";
        let scope_type = make_type::<Scope>(py, c"undertick.asyncio.Scope", doc, &[])?;
        let get = [(ffi::Py_tp_descr_get, descr_get as *mut c_void)];
        let method_type = make_type::<ScopeMethod>(py, c"undertick._ScopeMethod", c"", &get)?;
        let method = ffi::PyType_GenericAlloc(method_type.cast(), 0).cast::<ScopeMethod>();
        if method.is_null() {
            return Err(PyErr::fetch(py));
        }
        (*method).call = unbound;
        for name in [c"__enter__", c"__exit__"] {
            if ffi::PyObject_SetAttrString(scope_type, name.as_ptr(), method.cast()) != 0 {
                return Err(PyErr::fetch(py));
            }
        }
        (*STATE.get()).scope_type = scope_type;
    }
    Ok(())
}
