//! The Python package: its wheel, and its tests in a virtual environment.

use std::path::PathBuf;
use std::process::Command;

use crate::run::{Scratch, command, exists, line, output, root, run};

/// Python packages that the tests of this package and of import and export need.
const NEEDED: [&str; 16] = [
    "maturin>=1.16,<2",
    "perfetto==0.59.1",
    "pyperf==2.10.0",
    "hdrhistogram==0.10.8",
    "viztracer==1.1.1",
    "scipy",
    "protobuf",
    "pytest",
    "mypy",
    "numpy",
    "pandas",
    "polars",
    "pyarrow",
    "duckdb",
    "opentelemetry-sdk",
    "pyspark",
];
/// A script that checks that they are installed and that the Python version is supported.
const IMPORTS: &str = "import sys; assert sys.version_info >= (3, 10); \
    import maturin, perfetto.protos, pyperf, hdrh, viztracer, scipy, pytest, mypy, numpy, pandas, polars, pyarrow, duckdb, opentelemetry.sdk, pyspark";

/// The interpreter of the one virtual environment of all tests, with the packages they need; `None`
/// if it cannot be created.
pub fn interpreter() -> Option<String> {
    let python = root().join("target/venv/bin/python");
    let python = python.to_string_lossy().into_owned();
    let is_there = || exists(&[&python, "-c", IMPORTS]);
    if is_there() {
        return Some(python);
    }
    if !exists(&[&python, "--version"]) && !exists(&["python3", "-m", "venv", "target/venv"]) {
        return None;
    }
    let mut install = vec![&python, "-m", "pip", "install", "-q", "--no-compile"];
    install.extend(NEEDED);
    println!("installing {} into target/venv", NEEDED.join(" "));
    let _ = run(command(&install));
    is_there().then_some(python)
}

/// The interpreter of the tests with one more package, which only one step needs; `None` if it cannot be
/// installed.
pub fn with(package: &str, module: &str) -> Option<String> {
    let python = root().join("target/venv/bin/python");
    let python = python.to_string_lossy().into_owned();
    let import = format!("import {module}");
    let is_there = || exists(&[&python, "-c", &import]);
    if !is_there() {
        let words = [
            &python,
            "-m",
            "pip",
            "install",
            "-q",
            "--no-compile",
            package,
        ];
        let _ = run(command(&words));
    }
    is_there().then_some(python)
}

/// Builds the wheel, checks that a clean environment can import it, and installs it into the
/// environment of the tests. `is_isolated`: as `pip install ./python` does, in an environment of its
/// own, for whose interpreter pyo3 and what needs it are compiled each time.
pub fn install(python: &str, is_isolated: bool) -> Result<(), String> {
    let scratch = Scratch::new("wheel")?;
    let (wheels, clean) = (scratch.path("wheels"), scratch.path("clean"));
    let mut build = line(
        "{} -m pip wheel -q --no-deps -w {} ./python",
        &[python, &wheels],
    );
    if !is_isolated {
        build.arg("--no-build-isolation");
        // The build backend calls its program by name.
        let others = std::env::var("PATH").unwrap_or_default();
        let programs = root().join("target/venv/bin");
        build.env("PATH", format!("{}:{others}", programs.display()));
    }
    run(build)?;
    let wheel = one_wheel(&wheels)?;
    run(command(&[python, "-m", "venv", &clean]))?;
    let bare = format!("{clean}/bin/python");
    run(line("{} -m pip install -q --no-index {}", &[&bare, &wheel]))?;
    let said = output(away(
        &bare,
        &["-c", "import undertick; print(undertick.__version__)"],
    ))?;
    println!(
        "the wheel in a clean environment: undertick {}",
        said.trim()
    );
    let reinstall = ["-m", "pip", "install", "-q", "--no-index", "--no-deps"];
    let mut words = vec![python];
    words.extend(reinstall);
    words.extend(["--force-reinstall", &wheel]);
    run(command(&words))
}

/// Makes the wheel for other systems in a directory; its name says from which C library and which version of
/// Python on it works, as maturin finds by the symbols that it needs.
pub fn portable_wheel(python: &str, dir: &str) -> Result<String, String> {
    let words = "{} -m maturin build --quiet --release --locked --strip -m python/Cargo.toml -o {}";
    run(line(words, &[python, dir]))?;
    one_wheel(dir)
}

fn one_wheel(dir: &str) -> Result<String, String> {
    let files = std::fs::read_dir(dir).map_err(|e| format!("{dir}: {e}"))?;
    let is_wheel = |path: &PathBuf| path.extension().is_some_and(|of| of == "whl");
    let wheels: Vec<PathBuf> = (files.flatten().map(|file| file.path()))
        .filter(is_wheel)
        .collect();
    match wheels.as_slice() {
        [wheel] => Ok(wheel.to_string_lossy().into_owned()),
        _ => Err(format!("{dir}: {} wheels instead of one", wheels.len())),
    }
}

/// The command of the package's tests, with those of Spark if asked for, for
/// [`crate::run::run_lines`].
pub fn tests(python: &str, with_spark: bool) -> Command {
    let project = root().join("python/pyproject.toml");
    let tests = root().join("python/tests");
    let mut command = away(
        python,
        &["-m", "pytest", "-q", "-p", "no:cacheprovider", "-c"],
    );
    command.arg(project).arg(&tests);
    if !with_spark {
        command.arg("--ignore").arg(tests.join("test_spark.py"));
    }
    command
}

/// A command in a directory from which the package's sources cannot be imported.
pub fn away(python: &str, words: &[&str]) -> Command {
    let mut command = Command::new(python);
    command.args(words).current_dir(root().join("target"));
    command
}

/// The number before a word in pytest's last line, `N passed, M failed, ...`.
pub fn counted(line: &str, word: &str) -> Option<u64> {
    let (before, _) = line.split_once(&format!(" {word}"))?;
    before.rsplit([' ', '=']).next()?.parse().ok()
}

#[cfg(test)]
mod tests;
