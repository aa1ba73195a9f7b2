//! Compiles the library that is preloaded, so that `undertick` carries it.

fn main() {
    let header = "include";
    let source = "src/undertick_functions.c";
    println!("cargo::rerun-if-changed={source}");
    println!("cargo::rerun-if-changed={header}/undertick.h");
    let out = std::env::var("OUT_DIR").expect("Cargo says where");
    let mut build = cc::Build::new();
    build
        .opt_level(2)
        .pic(true)
        .warnings(true)
        .include(header)
        .flag("-fvisibility=hidden")
        // Two instructions to a thread's data instead of a call.
        .flag("-ftls-model=initial-exec");
    // The programs are those of this system, also where `undertick` itself is static.
    let variable = |name| std::env::var(name).expect("Cargo says for what and on what");
    if variable("TARGET").ends_with("-musl") && !variable("HOST").ends_with("-musl") {
        build.target(&variable("TARGET").replace("-musl", "-gnu"));
    }
    let mut command = build.get_compiler().to_command();
    let library = format!("{out}/libundertick_functions.so");
    command
        .args(["-shared", "-Wl,-soname,libundertick_functions.so"])
        // Its constructor runs before those of the program's libraries, whose
        // constructors may be instrumented.
        .args(["-Wl,-z,initfirst", "-Wl,-z,defs", source, "-o", &library]);
    let status = command
        .status()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}
