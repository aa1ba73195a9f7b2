//! One recording of a program in Python that calls Rust, which calls C, with programs in Go and Java beside it: the
//! spans of all five are in one report and on one page.

use serde_json::Value;

use super::super::{Count, Tier, ended};
use crate::run::{Scratch, command, exists, output, root};

const PYTHON: &str = include_str!("together/main.py");
const RUST: &str = include_str!("together/part.rs");
const C: &str = include_str!("together/part.c");
const GO: &str = include_str!("together/main.go");
const JAVA: &str = include_str!("together/Main.java");

/// Calls of each part: spans of threads, then tasks.
const SPANS: [(&str, u64); 4] = [
    ("in Python", 50),
    ("in Rust", 50),
    ("in C", 100),
    ("in Java", 40),
];
const TASKS: [(&str, u64); 1] = [("in Go", 30)];

/// Runs only this, with the Python package and the program as they are installed and built.
pub fn together_alone() -> Result<(), String> {
    let mut count = Count::default();
    match crate::python::interpreter() {
        Some(python) => all(&mut count, &python, Tier::All),
        None => count.skip("programs of five languages: no Python with the package"),
    }
    ended(&count)
}

pub(in crate::test) fn all(count: &mut Count, python: &str, tier: Tier) {
    if !tier.is_all() {
        return;
    }
    for tool in ["cc", "go", "javac", "java"] {
        let asks = if tool == "go" { "version" } else { "--version" };
        if !exists(&[tool, asks]) {
            return count.skip(&format!("programs of five languages: no {tool} here"));
        }
    }
    count.step(recorded(python));
}

fn recorded(python: &str) -> Result<(), String> {
    let scratch = Scratch::new("together")?;
    let write = |name: &str, text: &str| {
        let path = scratch.path(name);
        std::fs::write(&path, text).map_err(|e| format!("{path}: {e}"))?;
        Ok::<String, String>(path)
    };
    let library = rust_and_c(&scratch, &write)?;
    let go = go(&scratch, &write)?;
    let java = java(&scratch, &write)?;
    let program = write("main.py", PYTHON)?;
    let (trace, page) = (scratch.path("t.ut"), scratch.path("page.html"));
    let undertick = root().join("target/release/undertick");
    let undertick = undertick.to_string_lossy();
    let record = [
        "record",
        "--no-calibration",
        "--kernel",
        "off",
        "-o",
        &trace,
        "--",
    ];
    let program = [python, &program, &library, &go, &java];
    output(command(&[&[&*undertick][..], &record, &program].concat()))?;
    let json = output(command(&[
        &undertick, "report", &trace, "--cull", "none", "--html", &page, "--json",
    ]))?;
    let report: Value = serde_json::from_str(&json).map_err(|e| format!("report: {e}"))?;
    let page = std::fs::read_to_string(&page).map_err(|e| format!("{page}: {e}"))?;
    let rows = |place: &str| {
        report
            .pointer(place)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    let same =
        |what: &str, row: Option<&Value>, field: &str, n: u64| match row.map(|row| &row[field]) {
            Some(found) if *found == n => Ok(()),
            found => Err(format!("{what}: {found:?} and not {n}: {json}")),
        };
    for (name, n) in SPANS {
        same(
            name,
            rows("/intervals").find(|row| row["name"] == name),
            "count",
            n,
        )?;
    }
    for (name, n) in TASKS {
        same(
            name,
            rows("/tasks/rows").find(|row| row["name"] == name),
            "done",
            n,
        )?;
    }
    for (name, _) in SPANS.into_iter().chain(TASKS) {
        if !page.contains(name) {
            return Err(format!("{name} is not on the page"));
        }
    }
    Ok(())
}

/// A library in Rust with the part in C in it.
fn rust_and_c(
    scratch: &Scratch,
    write: &dyn Fn(&str, &str) -> Result<String, String>,
) -> Result<String, String> {
    let c = write("part.c", C)?;
    let object = scratch.path("part.o");
    output(command(&[
        "cc",
        "-O2",
        "-fPIC",
        "-Iinclude",
        "-c",
        &c,
        "-o",
        &object,
    ]))?;
    let (rust, library) = (write("part.rs", RUST)?, scratch.path("libpart.so"));
    // The recorder as the workspace has built it, with the one that its other crates were built with.
    let deps = root().join("target/release/deps");
    let newest = newest_rlib(&deps)?;
    let words = [
        "rustc",
        "--edition",
        "2024",
        "-O",
        "--crate-type",
        "cdylib",
        "--crate-name",
        "part",
        "-C",
        &format!("link-arg={object}"),
        "-L",
        &format!("dependency={}", deps.display()),
        "--extern",
        &format!("undertick={newest}"),
        &rust,
        "-o",
        &library,
    ];
    output(command(&words))?;
    Ok(library)
}

/// The recorder's library that was built last.
fn newest_rlib(deps: &std::path::Path) -> Result<String, String> {
    let files = std::fs::read_dir(deps).map_err(|e| format!("{}: {e}", deps.display()))?;
    let built = files.flatten().map(|file| file.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libundertick-") && name.ends_with(".rlib")
    });
    let newest = built.max_by_key(|path| std::fs::metadata(path).and_then(|of| of.modified()).ok());
    newest.map_or_else(
        || Err(format!("{}: no library of the recorder", deps.display())),
        |path| Ok(path.to_string_lossy().into_owned()),
    )
}

fn go(
    scratch: &Scratch,
    write: &dyn Fn(&str, &str) -> Result<String, String>,
) -> Result<String, String> {
    // Go would compile the file in C, too, if it lay beside.
    let dir = scratch.path("go");
    std::fs::create_dir_all(&dir).map_err(|e| format!("{dir}: {e}"))?;
    write("go/main.go", GO)?;
    let module = root().join("go");
    let version = output(command(&["go", "env", "GOVERSION"]))?;
    let version = version.trim().trim_start_matches("go");
    write(
        "go/go.mod",
        &format!(
            "module together\n\ngo {version}\n\nrequire github.com/undertick/undertick/go v0.0.0\n\n\
             replace github.com/undertick/undertick/go => {}\n",
            module.display()
        ),
    )?;
    let program = scratch.path("go-program");
    let mut build = command(&["go", "build", "-o", &program, "."]);
    build.current_dir(&dir);
    build.env("GOTOOLCHAIN", "local").env("GOFLAGS", "-mod=mod");
    output(build)?;
    Ok(program)
}

/// The command of the program in Java, its words with tabs between them.
fn java(
    scratch: &Scratch,
    write: &dyn Fn(&str, &str) -> Result<String, String>,
) -> Result<String, String> {
    let build = scratch.path("jar");
    output(command(&["sh", "java/build.sh", &build]))?;
    let (jar, source) = (format!("{build}/undertick.jar"), write("Main.java", JAVA)?);
    let classes = scratch.path("classes");
    output(command(&["javac", "-cp", &jar, "-d", &classes, &source]))?;
    Ok(["java", "-cp", &format!("{jar}:{classes}"), "Main"].join("\t"))
}
