//! Exports the functions of the calibration: a stripped program has only the names of what it
//! exports, and `record --functions` measures its cost by recording these.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-link-arg-bins=-Wl,--export-dynamic-symbol=undertick_calibrated_*");
}
