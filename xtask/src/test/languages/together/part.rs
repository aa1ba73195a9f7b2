//! What the Python program calls; it calls the part in C.

unsafe extern "C" {
    fn c_part(n: u32) -> u32;
}

#[unsafe(no_mangle)]
pub extern "C" fn rust_part(n: u32) -> u32 {
    let _span = undertick::span!("in Rust");
    // SAFETY: a function of numbers.
    (0..2).fold(0, |sum: u32, i| sum.wrapping_add(unsafe { c_part(n + i) }))
}
