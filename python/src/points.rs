//! The calls that a program makes while it is measured: `span`, `event`, `next`, `pair`.
//!
//! **Method.** These are C functions of Python's native kind, without argument parsing in between.
//! The span of a name is found by the address of the string. A string in a program's text is one
//! object for ever. A string in the cache is held, so that its address cannot become another's.
//! Spans are never freed, so `with` makes no object: looking up `__enter__` and `__exit__` gives
//! two callables that were made with the span.
//!
//! **Caveats.** The interpreter's lock guards all state; a free-threaded interpreter does not load
//! this module.

mod known;
mod objects;
mod scopes;

use core::ffi::{CStr, c_int, c_void};
use core::ptr::null_mut;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

use known::{BoundSpan, Method, STATE, Span, none, refuse, span_of};
use objects::{attribute, descr_get, forever, get_event, get_name, make_type, repr, unbound};

unsafe extern "C" fn span(_: *mut PyObject, asked: *mut PyObject) -> *mut PyObject {
    // SAFETY: the lock is held, `asked` is an object.
    unsafe {
        let span = span_of(asked).cast::<PyObject>();
        if !span.is_null() {
            ffi::Py_INCREF(span);
        }
        span
    }
}

unsafe extern "C" fn event(
    _: *mut PyObject,
    arguments: *const *mut PyObject,
    count: ffi::Py_ssize_t,
    names: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: so many arguments, then those that are named.
    unsafe {
        if count == 1 && names.is_null() {
            let span = span_of(*arguments);
            if span.is_null() {
                return null_mut();
            }
            undertick::event((*span).event, 0);
            return none();
        }
        event_with_payload(arguments, count, names)
    }
}

/// # Safety
/// As for [`event`].
#[inline(never)]
unsafe fn event_with_payload(
    arguments: *const *mut PyObject,
    count: ffi::Py_ssize_t,
    names: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: as promised.
    unsafe {
        let named = if names.is_null() {
            0
        } else {
            ffi::PyTuple_Size(names)
        };
        let is_payload = named == 0
            || named == 1
                && ffi::PyUnicode_CompareWithASCIIString(
                    ffi::PyTuple_GetItem(names, 0),
                    c"payload".as_ptr(),
                ) == 0;
        if count < 1 || count + named != 2 || !is_payload {
            return refuse("event(name, payload=0): a name, and a payload if there is one");
        }
        let span = span_of(*arguments);
        if span.is_null() {
            return null_mut();
        }
        let payload = ffi::PyLong_AsLongLong(*arguments.add(1));
        if payload == -1 && !ffi::PyErr_Occurred().is_null() {
            return null_mut();
        }
        match u32::try_from(payload) {
            Ok(payload) => undertick::event((*span).event, payload),
            Err(_) => undertick::event64((*span).event, payload as u64),
        }
        none()
    }
}

unsafe extern "C" fn next(
    _: *mut PyObject,
    arguments: *mut *mut PyObject,
    count: ffi::Py_ssize_t,
) -> *mut PyObject {
    if count != 2 {
        return refuse("next(from, to): the stage that ends and the one that starts");
    }
    // SAFETY: two arguments; the lock is held, and spans are never freed.
    unsafe {
        let from = span_of(*arguments);
        if from.is_null() {
            return null_mut();
        }
        let to = span_of(*arguments.add(1));
        if to.is_null() {
            return null_mut();
        }
        undertick::next((*from).event, (*to).event);
        none()
    }
}

unsafe extern "C" fn pair(_: *mut PyObject, asked: *mut PyObject) -> *mut PyObject {
    // SAFETY: as `span`.
    unsafe {
        let span = span_of(asked);
        if span.is_null() {
            return null_mut();
        }
        undertick::pair((*span).event);
        none()
    }
}

const SPAN_DOC: &CStr = c"span(name, /)
--

A section of the program: a context manager, and a decorator for functions.

`name` is a str, or the number that native code in this process uses for the event. The
same name gives the same object, in all threads; it may be nested in itself. Sections nest
within their thread.

>>> import undertick
>>> with undertick.span(\"parse\"):
...     pass
>>> @undertick.span(\"commit\")
... def commit(rows):
...     return len(rows)
>>> commit([1, 2, 3])
3
";

const SCOPE_DOC: &CStr = c"span(name, /)
--

A span that may contain awaits: a context manager, for one use at a time.

It is a task without polls: `undertick tasks` shows how long it lasted.

>>> import asyncio, undertick.asyncio
>>> async def fetch(n):
...     with undertick.asyncio.span(\"fetch\"):
...         await asyncio.sleep(0)
>>> asyncio.run(fetch(1))
";

const EVENT_DOC: &CStr = c"event(name, payload=0)
--

A point in time with a number of the program's own, -2**63 to 2**63 - 1.

A payload outside of 0 to 2**32 - 1 takes two records.

>>> import undertick
>>> undertick.event(\"commit\")
>>> undertick.event(\"queue\", 17)
";

const NEXT_DOC: &CStr = c"next(from_, to, /)
--

Stage `from_` ends and stage `to` starts here: one reading of the clock.

>>> import undertick
>>> undertick.next(\"read\", \"parse\")
>>> undertick.next(\"parse\", \"write\")
";

const PAIR_DOC: &CStr = c"pair(name, /)
--

Two readings of the clock with nothing between: what a reading costs, in place.

>>> import undertick
>>> undertick.pair(\"reading\")
";

/// Adds the functions and the type of spans to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let method = |name: &'static CStr, meth, flags: c_int, doc: &'static CStr| ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: meth,
        ml_flags: flags,
        ml_doc: doc.as_ptr(),
    };
    let functions = forever([
        method(
            c"span",
            ffi::PyMethodDefPointer { PyCFunction: span },
            ffi::METH_O,
            SPAN_DOC,
        ),
        method(
            c"scope",
            ffi::PyMethodDefPointer {
                PyCFunction: scopes::scope,
            },
            ffi::METH_O,
            SCOPE_DOC,
        ),
        method(
            c"event",
            ffi::PyMethodDefPointer {
                PyCFunctionFastWithKeywords: event,
            },
            ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
            EVENT_DOC,
        ),
        method(
            c"next",
            ffi::PyMethodDefPointer {
                PyCFunctionFast: next,
            },
            ffi::METH_FASTCALL,
            NEXT_DOC,
        ),
        method(
            c"pair",
            ffi::PyMethodDefPointer { PyCFunction: pair },
            ffi::METH_O,
            PAIR_DOC,
        ),
        ffi::PyMethodDef::zeroed(),
    ]);
    // SAFETY: the lock is held; the tables live for ever; each object is as large as
    // its type says.
    unsafe {
        let state = STATE.get();
        if !(*state).known.is_null() {
            return Err(PyTypeError::new_err(
                "undertick works in the first interpreter of a process only",
            ));
        }
        if ffi::PyModule_AddFunctions(module.as_ptr(), functions) != 0 {
            return Err(PyErr::fetch(py));
        }
        let attributes = forever([
            attribute(c"event", get_event, c"Number of the event in the trace."),
            attribute(c"name", get_name, c"The name."),
            ffi::PyGetSetDef::default(),
        ]);
        let span_type = make_type::<Span>(
            py,
            c"undertick.Span",
            c"What `span` gives: a context manager, and a decorator.",
            &[
                (ffi::Py_tp_repr, repr as *mut c_void),
                (ffi::Py_tp_getset, attributes.cast()),
            ],
        )?;
        let bound_type = make_type::<BoundSpan>(py, c"undertick._Bound", c"", &[])?;
        let method_type = make_type::<Method>(
            py,
            c"undertick._Method",
            c"",
            &[(ffi::Py_tp_descr_get, descr_get as *mut c_void)],
        )?;
        for (name, is_exit) in [(c"__enter__", false), (c"__exit__", true)] {
            let method = ffi::PyType_GenericAlloc(method_type.cast(), 0).cast::<Method>();
            if method.is_null() {
                return Err(PyErr::fetch(py));
            }
            (*method).call = unbound;
            (*method).is_exit = is_exit;
            if ffi::PyObject_SetAttrString(span_type, name.as_ptr(), method.cast()) != 0 {
                return Err(PyErr::fetch(py));
            }
        }
        scopes::add(py)?;
        (*state).known = ffi::PyDict_New();
        (*state).span_type = span_type;
        (*state).bound_type = bound_type;
        ffi::Py_IncRef(span_type);
        let scope_type = (*state).scope_type;
        module.add("Scope", Bound::from_borrowed_ptr(py, scope_type))?;
        module.add("Span", Bound::from_owned_ptr(py, span_type))
    }
}

/// Sets the function that makes a decorated function of a span and a function.
#[pyfunction]
pub fn _set_decorate(decorate: Py<PyAny>) {
    // SAFETY: a function of Python is called with the lock held.
    unsafe { (*STATE.get()).decorate = decorate.into_ptr() };
}
