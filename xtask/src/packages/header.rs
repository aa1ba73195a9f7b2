//! Programs that find `undertick.h` as it is installed.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{dir, lacks, text};
use crate::exchange::Outcome;
use crate::python;
use crate::run::{Scratch, command, line, output, run};

/// Calls of the span of the program.
const CALLS: u64 = 1000;

/// Writes the program that all packages are tried with; returns its path.
pub fn program(scratch: &Scratch) -> Result<String, String> {
    let source = scratch.path("program.c");
    let text = format!(
        "#include <undertick.h>\nint main(void) {{ ut_name(1, \"work\");\n\
         for (int i = 0; i < {CALLS}; i++) {{ ut_begin(1); ut_end(1); }} return 0; }}\n"
    );
    std::fs::write(&source, text).map_err(|e| format!("{source}: {e}"))?;
    Ok(source)
}

/// Checks the report of a recording of that program.
pub fn is_recorded(report: &str) -> Result<(), String> {
    let report: Value = serde_json::from_str(report).map_err(|e| e.to_string())?;
    let calls = &report["paths"][0]["calls"];
    match calls.as_u64() {
        Some(CALLS) => Ok(()),
        _ => Err(format!("{CALLS} calls were made, and {calls} reported")),
    }
}

/// Builds the program against what is in `target/packages/installed`, in a project of CMake.
pub fn by_cmake() -> Result<Outcome, String> {
    let prefix = text(&dir().join("installed"));
    let scratch = Scratch::new("cmake")?;
    let program = cmake(&scratch, &format!("-DCMAKE_PREFIX_PATH={prefix}"))?;
    is_recorded(&recorded(&scratch, &program)?)?;
    Ok(Outcome::Said(
        "find_package(Undertick): the program records".to_owned(),
    ))
}

/// The same by pkg-config.
pub fn by_pkg_config() -> Result<Outcome, String> {
    if let Some(skipped) = lacks("pkg-config") {
        return Ok(skipped);
    }
    let prefix = text(&dir().join("installed"));
    let scratch = Scratch::new("pkg-config")?;
    let (source, built) = (program(&scratch)?, scratch.path("program"));
    let words = "cc -O2 $(pkg-config --cflags undertick) \"$0\" -o \"$1\"";
    let mut build = command(&["sh", "-ec", words, &source, &built]);
    build.env("PKG_CONFIG_PATH", format!("{prefix}/share/pkgconfig"));
    // Not the header of the repository.
    build.current_dir(&scratch.0);
    run(build)?;
    is_recorded(&recorded(&scratch, &built)?)?;
    Ok(Outcome::Said("the program records".to_owned()))
}

/// Builds the program in a project that asks CMake for the package; returns its path.
fn cmake(scratch: &Scratch, option: &str) -> Result<String, String> {
    let version = super::version()?;
    let (minor, _) = version.rsplit_once('.').unwrap_or((&version, ""));
    program(scratch)?;
    let project = format!(
        "cmake_minimum_required(VERSION 3.16)\nproject(user C)\nfind_package(Undertick {minor} REQUIRED)\n\
         add_executable(program program.c)\ntarget_link_libraries(program PRIVATE Undertick::Undertick)\n"
    );
    std::fs::write(scratch.path("CMakeLists.txt"), project).map_err(|e| e.to_string())?;
    let build = scratch.path("build");
    run(line(
        "cmake -S {} -B {} --log-level=WARNING -DCMAKE_BUILD_TYPE=Release {}",
        &[&scratch.path(""), &build, option],
    ))?;
    run(line("cmake --build {}", &[&build]))?;
    Ok(format!("{build}/program"))
}

/// The report of a recording of a program, as JSON.
fn recorded(scratch: &Scratch, program: &str) -> Result<String, String> {
    let (undertick, trace) = (super::undertick(), scratch.path("t.ut"));
    let _ = std::fs::remove_dir_all(&trace);
    run(line(
        "{} record --quiet -o {} -- {}",
        &[&undertick, &trace, program],
    ))?;
    output(line("{} report {} --json", &[&undertick, &trace]))
}

/// Makes the Conan package and builds the program with it.
pub fn by_conan() -> Result<Outcome, String> {
    let Some(python) = python::with("conan>=2.20,<3", "conan") else {
        return Ok(Outcome::Skipped("no Python package conan here".to_owned()));
    };
    let scratch = Scratch::new("conan")?;
    let conan = |mut command: Command| {
        // Without the user's profiles and packages.
        command.env("CONAN_HOME", scratch.path("home"));
        run(command)
    };
    let program = text(&Path::new(&python).with_file_name("conan"));
    conan(line("{} profile detect -v error", &[&program]))?;
    conan(line("{} create . -v error", &[&program]))?;
    let requires = format!("--requires=undertick/{}", super::version()?);
    let generated = scratch.path("generated");
    let folder = format!("--output-folder={generated}");
    let mut install = line(
        "{} install -v error {} --generator=CMakeDeps --generator=CMakeToolchain {}",
        &[&program, &requires, &folder],
    );
    // It writes into the current directory, too.
    install.current_dir(&scratch.0);
    conan(install)?;
    let toolchain = format!("-DCMAKE_TOOLCHAIN_FILE={generated}/conan_toolchain.cmake");
    is_recorded(&recorded(&scratch, &cmake(&scratch, &toolchain)?)?)?;
    Ok(Outcome::Said("a program built with it records".to_owned()))
}
