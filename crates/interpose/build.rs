//! Compiles the libraries that are preloaded, so that `undertick` carries them.

fn main() {
    println!("cargo::rerun-if-changed=include/undertick.h");
    for library in ["locks", "malloc"] {
        let source = format!("src/undertick_{library}.c");
        println!("cargo::rerun-if-changed={source}");
        compile(&source, &format!("libundertick_{library}.so"));
    }
}

fn compile(source: &str, file: &str) {
    let out = std::env::var("OUT_DIR").expect("Cargo says where");
    let mut build = cc::Build::new();
    build
        .opt_level(2)
        .pic(true)
        .warnings(true)
        .include("include")
        .flag("-fvisibility=hidden")
        // Two instructions to a thread's data instead of a call, which might allocate.
        .flag("-ftls-model=initial-exec");
    // The programs are those of this system, also where `undertick` itself is static.
    let variable = |name| std::env::var(name).expect("Cargo says for what and on what");
    if variable("TARGET").ends_with("-musl") && !variable("HOST").ends_with("-musl") {
        build.target(&variable("TARGET").replace("-musl", "-gnu"));
    }
    let mut command = build.get_compiler().to_command();
    let status = command
        .args(["-shared", &format!("-Wl,-soname,{file}"), "-Wl,-z,defs"])
        .args([source, "-o", &format!("{out}/{file}"), "-pthread", "-ldl"])
        .status()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}
