//! Installs what the tests need and a fresh machine lacks.

use super::aarch64::AARCH64_CC;
use crate::run::command;
use crate::run::exists;
use crate::run::run;

/// Installs the tests' requirements from outside Cargo, where installing is allowed.
pub(super) fn packages_and_tools() {
    let mut missing: Vec<&str> = [
        ("cc", &["gcc"][..]),
        ("c++", &["g++"]),
        ("clang", &["clang"]),
        ("chromium", &["chromium"]),
        ("npm", &["nodejs", "npm", "libnode-dev"]),
        ("javac", &["default-jdk-headless"]),
        (
            AARCH64_CC,
            &["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"],
        ),
        ("qemu-aarch64", &["qemu-user"]),
        ("babeltrace2", &["babeltrace2"]),
        ("lttng", &["lttng-tools", "liblttng-ust-dev"]),
        ("perf", &["linux-perf"]),
        ("cmake", &["cmake"]),
        ("pkg-config", &["pkg-config"]),
        ("mmdebstrap", &["mmdebstrap"]),
        ("musl-gcc", &["musl-tools"]),
        ("dpkg-shlibdeps", &["dpkg-dev"]),
    ]
    .iter()
    .chain(&crate::card::PROGRAMS)
    .filter(|(program, _)| !exists(&[program, "--version"]))
    .flat_map(|&(_, packages)| packages)
    .copied()
    .collect();
    if !exists(&["berkeley-abc", "-c", "quit"]) {
        missing.push("berkeley-abc");
    }
    if !exists(&["tmux", "-V"]) {
        missing.push("tmux");
    }
    if !std::path::Path::new("/usr/share/benchmark/compare.py").exists() {
        missing.push("libbenchmark-tools");
    }
    if !exists(&["python3", "-c", "import ensurepip"]) {
        missing.extend(["python3", "python3-venv"]);
    }
    if !missing.is_empty() {
        install_packages(&missing);
    }
    // The package must match the installed version.
    if let Some(runtime) = missing_sanitizers() {
        install_packages(&[&runtime]);
    }
}

fn install_packages(packages: &[&str]) {
    println!("installing {}", packages.join(" "));
    let _ = run(command(&["apt-get", "update", "-qq"]));
    let mut install = command(&["apt-get", "install", "-y", "-qq", "--no-install-recommends"]);
    install.args(packages);
    install.env("DEBIAN_FRONTEND", "noninteractive");
    if let Err(text) = run(install) {
        println!("not installed ({text}); what needs it is skipped");
    }
}

/// The package of clang's ThreadSanitizer, if clang is installed without it.
pub(super) fn missing_sanitizers() -> Option<String> {
    let said = |question: &str| {
        let output = command(&["clang", question]).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let version = said("-dumpversion")?;
    let library = said(&format!(
        "-print-file-name=libclang_rt.tsan-{}.a",
        std::env::consts::ARCH
    ))?;
    // A library that clang does not find is printed without its directory.
    let is_there = std::path::Path::new(&library).is_absolute();
    (!is_there).then(|| {
        format!(
            "libclang-rt-{}-dev",
            version.split('.').next().unwrap_or("")
        )
    })
}
