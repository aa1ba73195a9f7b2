//! Compiles the calibration workload as the native parts of Python programs are: as part of
//! a library.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

/// What parts of an analysis are made and put together by: those of another build are
/// refused.
const KERNEL: [&str; 3] = [
    "../crates/analyze/src",
    "../crates/estimate/src",
    "../Cargo.lock",
];

fn take_in(path: &Path, hasher: &mut DefaultHasher) {
    println!("cargo::rerun-if-changed={}", path.display());
    let Ok(entries) = std::fs::read_dir(path) else {
        std::fs::read(path).unwrap_or_default().hash(hasher);
        return;
    };
    let mut entries: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    entries.iter().for_each(|entry| take_in(entry, hasher));
}

fn main() {
    let mut hasher = DefaultHasher::new();
    KERNEL
        .iter()
        .for_each(|path| take_in(Path::new(path), &mut hasher));
    println!("cargo::rustc-env=UNDERTICK_BUILD={:016x}", hasher.finish());
    let source = "../crates/calibrate/src/calibration.c";
    println!("cargo::rerun-if-changed={source}");
    for part in ["calibration_functions.h", "dose.h"] {
        println!("cargo::rerun-if-changed=../crates/calibrate/src/{part}");
    }
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
        // What a point costs is not where it pushes the next loop to.
        .flag_if_supported("-falign-loops=64")
        .flag_if_supported("-falign-functions=64")
        .warnings(true)
        .compile("undertick_calibration_of_library");
}
