//! Compiles the calibration workload, which is C so that it goes through
//! `undertick.h` like the programs it stands for.

fn main() {
    let header = "include";
    for source in ["calibration.c", "calibration_functions.h", "dose.h"] {
        println!("cargo::rerun-if-changed=src/{source}");
    }
    println!("cargo::rerun-if-changed={header}/undertick.h");
    cc::Build::new()
        .file("src/calibration.c")
        .include(header)
        .opt_level(2)
        // As the programs it stands for are built: position-independent code
        // of libraries reaches its thread's data by a longer way.
        .pic(false)
        .flag_if_supported("-fPIE")
        // What a point costs is not where it pushes the next loop to.
        .flag_if_supported("-falign-loops=64")
        .flag_if_supported("-falign-functions=64")
        .warnings(true)
        .compile("undertick_calibration");
}
