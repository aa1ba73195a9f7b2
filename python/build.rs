//! Compiles the calibration workload as the native parts of Python programs are: as part of
//! a library.

fn main() {
    let source = "../crates/lab/src/calibration.c";
    println!("cargo::rerun-if-changed={source}");
    println!("cargo::rerun-if-changed=../crates/lab/src/dose.h");
    println!("cargo::rerun-if-changed=../include/undertick.h");
    cc::Build::new()
        .file(source)
        .include("../include")
        .opt_level(2)
        .pic(true)
        // Its own name, and no door: a process that imports the package has that of the
        // recorder for Rust.
        .define(
            "undertick_calibration_workload",
            "undertick_calibration_of_library",
        )
        .define("UNDERTICK_NO_ATTACH", None)
        .warnings(true)
        .compile("undertick_calibration_of_library");
}
