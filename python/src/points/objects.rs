//! The methods of a span's objects, and their types.

use core::ffi::{CStr, c_char, c_int, c_long, c_ulong, c_void};
use core::ptr::null_mut;

use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

use super::known::{ARGUMENTS_OFFSET, BoundSpan, Method, STATE, Span, none, refuse};

/// As `ffi::Py_TPFLAGS_HAVE_VECTORCALL`, declared from 3.12 on; the bit is that of 3.8.
const HAVE_VECTORCALL: c_ulong = 1 << 11;

/// `__enter__()`.
pub(super) unsafe extern "C" fn enter(
    this: *mut PyObject,
    _: *const *mut PyObject,
    count: usize,
    _: *mut PyObject,
) -> *mut PyObject {
    if count & !ARGUMENTS_OFFSET != 0 {
        return refuse("__enter__ takes no arguments");
    }
    // SAFETY: called with an object of the type that names this function.
    unsafe {
        let span = (*this.cast::<BoundSpan>()).span;
        ffi::Py_INCREF(span.cast());
        undertick::begin((*span).event);
        span.cast()
    }
}

/// `__exit__(type, value, traceback)`.
pub(super) unsafe extern "C" fn exit(
    this: *mut PyObject,
    _: *const *mut PyObject,
    _: usize,
    _: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: as `enter`.
    unsafe {
        undertick::end((*(*this.cast::<BoundSpan>()).span).event);
        none()
    }
}

/// `span(function)`.
pub(super) unsafe extern "C" fn decorate(
    this: *mut PyObject,
    arguments: *const *mut PyObject,
    count: usize,
    names: *mut PyObject,
) -> *mut PyObject {
    if count & !ARGUMENTS_OFFSET != 1 || !names.is_null() {
        return refuse(
            "a span is called as a decorator, with one function; write `with undertick.span(name):` to time a block",
        );
    }
    // SAFETY: one argument; the lock is held.
    unsafe {
        let decorate = (*STATE.get()).decorate;
        if decorate.is_null() {
            return refuse("import undertick, not undertick._native");
        }
        ffi::PyObject_CallFunctionObjArgs(decorate, this, *arguments, null_mut::<PyObject>())
    }
}

/// `Span.__enter__(span)` and `Span.__exit__(span, ...)`, as `contextlib.ExitStack`
/// calls them.
pub(super) unsafe extern "C" fn unbound(
    this: *mut PyObject,
    arguments: *const *mut PyObject,
    count: usize,
    _: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: so many arguments; the type of the first is looked at.
    unsafe {
        let span_type = (*STATE.get()).span_type;
        if count & !ARGUMENTS_OFFSET == 0 || ffi::Py_TYPE(*arguments).cast() != span_type {
            return refuse("the first argument is a span");
        }
        let bound = descr_get(this, *arguments, null_mut());
        let result = ((*bound.cast::<BoundSpan>()).call)(bound, null_mut(), 0, null_mut());
        ffi::Py_DecRef(bound);
        result
    }
}

/// Looking up `__enter__` or `__exit__` gives an object that exists already.
pub(super) unsafe extern "C" fn descr_get(
    this: *mut PyObject,
    object: *mut PyObject,
    _: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: this method stands in the type of spans alone, so `object` is one.
    unsafe {
        let found = if object.is_null() {
            this
        } else if (*this.cast::<Method>()).is_exit {
            (*object.cast::<Span>()).exit
        } else {
            (*object.cast::<Span>()).enter
        };
        ffi::Py_INCREF(found);
        found
    }
}

/// `tp_call` of all three types, which uses their vectorcall.
pub(super) unsafe extern "C" fn call(
    this: *mut PyObject,
    arguments: *mut PyObject,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: a tuple of so many; all three types begin alike.
    unsafe {
        if !keywords.is_null() && ffi::PyDict_Size(keywords) > 0 {
            return refuse("no keyword arguments are taken");
        }
        let count = ffi::PyTuple_Size(arguments);
        let words: Vec<_> = (0..count)
            .map(|i| ffi::PyTuple_GetItem(arguments, i))
            .collect();
        ((*this.cast::<BoundSpan>()).call)(this, words.as_ptr(), words.len(), null_mut())
    }
}

pub(super) unsafe extern "C" fn repr(this: *mut PyObject) -> *mut PyObject {
    // SAFETY: a span.
    unsafe {
        ffi::PyUnicode_FromFormat(c"undertick.span(%R)".as_ptr(), (*this.cast::<Span>()).asked)
    }
}

pub(super) unsafe extern "C" fn get_event(this: *mut PyObject, _: *mut c_void) -> *mut PyObject {
    // SAFETY: a span.
    unsafe { ffi::PyLong_FromLong(c_long::from((*this.cast::<Span>()).event)) }
}

pub(super) unsafe extern "C" fn get_name(this: *mut PyObject, _: *mut c_void) -> *mut PyObject {
    // SAFETY: a span.
    unsafe { ffi::PyObject_Str((*this.cast::<Span>()).asked) }
}

/// Returns a table that lives as long as the process.
pub(super) fn forever<T, const N: usize>(table: [T; N]) -> *mut T {
    Box::leak(Box::new(table)).as_mut_ptr()
}

pub(super) fn attribute(
    name: &'static CStr,
    get: ffi::getter,
    doc: &'static CStr,
) -> ffi::PyGetSetDef {
    ffi::PyGetSetDef {
        name: name.as_ptr(),
        get: Some(get),
        set: None,
        doc: doc.as_ptr(),
        closure: null_mut(),
    }
}

/// Makes a type whose objects are `T`, called by their vectorcall.
pub(super) unsafe fn make_type<T>(
    py: Python<'_>,
    name: &'static CStr,
    doc: &'static CStr,
    more: &[(c_int, *mut c_void)],
) -> PyResult<*mut PyObject> {
    let members = forever([
        ffi::PyMemberDef {
            name: c"__vectorcalloffset__".as_ptr(),
            type_code: ffi::Py_T_PYSSIZET,
            offset: size_of::<PyObject>() as ffi::Py_ssize_t,
            flags: ffi::Py_READONLY,
            doc: core::ptr::null::<c_char>(),
        },
        ffi::PyMemberDef::default(),
    ]);
    let mut slots: Vec<ffi::PyType_Slot> = more
        .iter()
        .map(|&(slot, pfunc)| ffi::PyType_Slot { slot, pfunc })
        .collect();
    for (slot, pfunc) in [
        (ffi::Py_tp_call, call as *mut c_void),
        (ffi::Py_tp_members, members.cast()),
        (ffi::Py_tp_doc, doc.as_ptr().cast_mut().cast()),
        (0, null_mut()),
    ] {
        slots.push(ffi::PyType_Slot { slot, pfunc });
    }
    let mut spec = ffi::PyType_Spec {
        name: name.as_ptr(),
        basicsize: size_of::<T>() as c_int,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT | HAVE_VECTORCALL | ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION)
            as _,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: what the spec points at lives for ever, or is copied.
    let made = unsafe { ffi::PyType_FromSpec(&raw mut spec) };
    if made.is_null() {
        return Err(PyErr::fetch(py));
    }
    Ok(made)
}
