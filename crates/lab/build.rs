//! Compiles the calibration workload, which is C so that it goes through
//! `undertick.h` like the programs it stands for.

fn main() {
    let header = "../../include";
    println!("cargo::rerun-if-changed=src/calibration.c");
    println!("cargo::rerun-if-changed={header}/undertick.h");
    cc::Build::new()
        .file("src/calibration.c")
        .include(header)
        .opt_level(2)
        .warnings(true)
        .compile("undertick_calibration");
}
