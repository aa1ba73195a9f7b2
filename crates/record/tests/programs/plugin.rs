//! plugin.c in Rust: a library that records, and is loaded and unloaded many times.

use std::ffi::{c_uint, c_void};
use std::ptr::{null, null_mut};

extern "C" fn points(n: *mut c_void) -> *mut c_void {
    for i in 0..n.addr() {
        undertick::event(1, i as u32);
        undertick::begin_sampled(2);
        undertick::end_sampled(2);
    }
    null_mut()
}

/// Passes a number of points, in this thread and in a new one. That is not one of the standard
/// library, whose thread-local variables keep a library from being unloaded.
#[unsafe(no_mangle)]
pub extern "C" fn work(n: c_uint) {
    let n = null_mut::<c_void>().wrapping_byte_add(n as usize);
    points(n);
    let mut other = 0;
    // SAFETY: the function has this type, and is not unloaded before it has returned.
    unsafe {
        if !n.is_null() && libc::pthread_create(&raw mut other, null(), points, n) == 0 {
            libc::pthread_join(other, null_mut());
        }
    }
}
