//! Files that are meant to hang, fill or fool their reader: each command ends soon, within bounded
//! memory, with an error that names the file, and without control sequences for the terminal.

use crate::support;

use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::said;
use undertick_convert::import::Source;

/// Address space of a command.
const MOST_BYTES: u64 = 4 << 30;
/// CPU time of a command; a busy machine may take much longer for it.
const MOST_CPU_SECONDS: libc::rlim_t = 20;
/// A command that takes longer waits for what never comes.
const MOST_WALL: Duration = Duration::from_secs(300);
/// Events of an imported trace.
const EVENTS: &str = r#"[{"ph":"X","name":"work","ts":1,"dur":5,"pid":1,"tid":1},
    {"ph":"X","name":"work","ts":10,"dur":5,"pid":1,"tid":1},
    {"ph":"i","name":"point","ts":20,"pid":1,"tid":1}]"#;

/// Runs the command with little memory and little time.
#[track_caller]
fn bounded(dir: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_undertick"));
    command.args(words).current_dir(dir);
    command.stdin(Stdio::null());
    let (out, err) = (dir.join("stdout"), dir.join("stderr"));
    command.stdout(File::create(&out).unwrap());
    command.stderr(File::create(&err).unwrap());
    // SAFETY: setrlimit is async-signal-safe, and its argument a live local.
    unsafe {
        command.pre_exec(|| {
            for (what, most) in [
                (libc::RLIMIT_AS, MOST_BYTES),
                (libc::RLIMIT_CPU, MOST_CPU_SECONDS),
            ] {
                let most = libc::rlimit {
                    rlim_cur: most,
                    rlim_max: most,
                };
                if libc::setrlimit(what, &raw const most) != 0 {
                    return Err(std::io::Error::last_os_error());
                }
            }
            Ok(())
        });
    }
    let mut child = command.spawn().unwrap();
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begin.elapsed() > MOST_WALL {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{words:?} was not done after {MOST_WALL:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    // At the hard limit the kernel kills.
    assert!(
        ![Some(libc::SIGXCPU), Some(libc::SIGKILL)].contains(&status.signal()),
        "{words:?} took {MOST_CPU_SECONDS} s of CPU time"
    );
    Output {
        status,
        stdout: fs::read(out).unwrap(),
        stderr: fs::read(err).unwrap(),
    }
}

/// Asserts that the command is refused with a message that names the file.
#[track_caller]
fn refused(dir: &Path, words: &[&str], named: &[&str]) {
    let output = bounded(dir, words);
    let (code, text) = said(&output);
    let shown: String = text.chars().take(3000).collect();
    assert!(code == 1 || code == 2, "{words:?}: {code}: {shown}");
    assert!(!text.contains("panicked"), "{words:?}: {shown}");
    assert!(!text.contains('\u{1b}'), "{words:?}: {shown:?}");
    assert!(
        text.len() < 10_000,
        "{words:?}: {} bytes: {shown}",
        text.len()
    );
    for word in named {
        assert!(
            text.contains(word),
            "{words:?}: {word:?} is not in: {shown}"
        );
    }
}

/// Asserts that the command succeeds, and prints no control sequence.
#[track_caller]
fn done(dir: &Path, words: &[&str]) -> String {
    let (code, text) = said(&bounded(dir, words));
    let shown: String = text.chars().take(3000).collect();
    assert_eq!(code, 0, "{words:?}: {shown}");
    assert!(!text.contains('\u{1b}'), "{words:?}: {shown:?}");
    text
}

/// Makes a directory with a sound trace `t.ut`.
fn scratch() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("events.json"), EVENTS).unwrap();
    done(dir.path(), &["import", "events.json", "-o", "t.ut"]);
    dir
}

fn fifo(path: &Path) {
    let _ = fs::remove_file(path);
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn link(to: &str, path: &Path) {
    let _ = fs::remove_file(path);
    std::os::unix::fs::symlink(to, path).unwrap();
}

/// A file of a terabyte that takes no room on disk.
fn sparse(path: &Path) {
    let _ = fs::remove_file(path);
    File::create(path).unwrap().set_len(1 << 40).unwrap();
}

/// Replaces a file.
type Make = fn(&Path);

/// Each kind of file without an end.
const ENDLESS: [(&str, Make); 3] = [
    ("fifo", fifo),
    ("zero", |path| link("/dev/zero", path)),
    ("sparse", sparse),
];

fn copy(dir: &Path, name: &str) -> PathBuf {
    let to = dir.join(name);
    fs::create_dir(&to).unwrap();
    for entry in fs::read_dir(dir.join("t.ut")).unwrap().flatten() {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
    to
}

/// Copies the trace with a changed manifest.
fn with_manifest(dir: &Path, name: &str, change: impl FnOnce(&mut Value)) {
    let trace = copy(dir, name);
    let path = trace.join("manifest.json");
    let mut manifest: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    change(&mut manifest);
    fs::write(path, manifest.to_string()).unwrap();
}

/// Asserts that each command that reads a trace refuses this one.
#[track_caller]
fn refused_by_all(dir: &Path, trace: &str, named: &[&str]) {
    let csv = format!("{trace}.csv");
    let parquet = format!("{trace}.parquet");
    let merged = format!("{trace}.merged");
    for words in [
        &["report", trace][..],
        &["explain", trace],
        &["export", trace, "--to", "csv", &csv],
        &["export", trace, "--to", "parquet", &parquet],
        &["export", trace, "--to", "hdrhistogram", &csv],
        &["compare", trace, "t.ut"],
        &["merge", trace, "t.ut", "-o", &merged],
    ] {
        refused(dir, words, named);
    }
}

#[test]
fn traces_that_do_not_end() {
    let scratch = scratch();
    let dir = scratch.path();
    for (what, make) in ENDLESS {
        for file in ["manifest.json", "events.parquet"] {
            let name = format!("{what}-{}.ut", &file[..6]);
            let trace = copy(dir, &name);
            make(&trace.join(file));
            refused_by_all(dir, &name, &[&name, file]);
        }
        let name = format!("{what}-blocks.ut");
        with_manifest(dir, &name, |manifest| {
            let parts = manifest["parts"].as_array_mut().unwrap();
            parts.last_mut().unwrap()["file"] = json!("raw.utb");
        });
        make(&dir.join(&name).join("raw.utb"));
        refused_by_all(dir, &name, &[&name, "raw.utb"]);
        let plain = dir.join(what);
        make(&plain);
        refused_by_all(dir, what, &[what]);
    }
}

#[test]
#[ignore = "long: cargo xtask test --all"]
fn manifests_that_hold_too_much() {
    let scratch = scratch();
    let dir = scratch.path();
    let long = "n".repeat(50 << 20);
    with_manifest(dir, "name.ut", |m| m["names"][0]["name"] = json!(long));
    refused_by_all(dir, "name.ut", &["name.ut", "manifest.json"]);
    let kilobytes = "n".repeat(2 << 10);
    with_manifest(dir, "event.ut", |m| {
        m["names"][0]["name"] = json!(kilobytes)
    });
    refused_by_all(dir, "event.ut", &["event.ut", "names[0]", "at most"]);
    with_manifest(dir, "thread.ut", |m| {
        m["threads"] = json!([{"pid": 1, "tid": 1, "name": kilobytes}]);
    });
    refused_by_all(dir, "thread.ut", &["thread.ut", "threads[0]", "at most"]);
    with_manifest(dir, "equal.ut", |m| {
        let part = m["parts"][0].clone();
        m["parts"] = vec![part; 5000].into();
    });
    refused_by_all(dir, "equal.ut", &["equal.ut", "5000 parts"]);
    with_manifest(dir, "twice.ut", |m| {
        let part = m["parts"][0].clone();
        m["parts"] = vec![part; 2].into();
    });
    refused_by_all(dir, "twice.ut", &["parts[1]", "a second time"]);
    let many = copy(dir, "texts.ut");
    let texts = format!(
        "{{\"schema_version\":1,\"warnings\":[{}\"\"]}}",
        "\"\",".repeat(80 << 20)
    );
    fs::write(many.join("manifest.json"), texts).unwrap();
    refused_by_all(dir, "texts.ut", &["texts.ut", "texts"]);
    let spaces = copy(dir, "spaces.ut");
    fs::write(spaces.join("manifest.json"), " ".repeat(300 << 20)).unwrap();
    refused_by_all(dir, "spaces.ut", &["spaces.ut", "at most 268435456"]);
}

/// As many names as one recording can have are no error, and take little time.
#[test]
fn three_hundred_thousand_names() {
    let scratch = scratch();
    let dir = scratch.path();
    with_manifest(dir, "many.ut", |m| {
        let name = |i: u64| json!({"pid": i, "event": i % 60_000, "name": format!("name {i}")});
        m["names"] = (0..300_000).map(name).collect();
        let thread = |i: u64| json!({"pid": i, "tid": i, "name": format!("thread {i}")});
        m["threads"] = (0..300_000).map(thread).collect();
    });
    let table = "[[interval]]\nname = \"a\"\nstart = \"name 77\"\nend = \"name 78\"\n";
    fs::write(dir.join("table.toml"), table).unwrap();
    done(dir, &["report", "many.ut"]);
    done(
        dir,
        &[
            "report",
            "many.ut",
            "--table",
            "table.toml",
            "--html",
            "page.html",
        ],
    );
    done(dir, &["export", "many.ut", "--to", "csv", "many.csv"]);
    fs::write(dir.join("table.toml"), table.replace("name 78", "nome 78")).unwrap();
    refused(
        dir,
        &["report", "many.ut", "--table", "table.toml"],
        &["table.toml:4", "did you mean"],
    );
}

#[test]
fn tables_scripts_and_lists_that_do_not_end() {
    let scratch = scratch();
    let dir = scratch.path();
    for (what, make) in ENDLESS {
        let path = dir.join(what);
        make(&path);
        let card = [
            "import",
            "--from",
            "card",
            "--events",
            what,
            "events.json",
            "-o",
            "x.ut",
        ];
        let merge = ["merge", "t.ut", "t.ut", "--table", what, "-o", "x.ut"];
        for words in [
            &["report", "t.ut", "--table", what][..],
            &["export", "t.ut", "--to", "perfetto", "--table", what, "out"],
            &["compare", "t.ut", "t.ut", "--table", what],
            &merge,
            &card,
            &["run", what],
            &["run", what, "--machine", "cmstar"],
            &["slow", "run", what, "--clock", "quantised:1ms"],
            &["compare", what, what],
            &["compare", what, "t.ut"],
        ] {
            refused(dir, words, &[what]);
        }
        fs::create_dir(dir.join(format!("{what}.d"))).unwrap();
        make(&dir.join(format!("{what}.d/survey.json")));
        let fleet = format!("{what}.d");
        refused(dir, &["survey", "--fleet", &fleet], &["survey.json"]);
        let _ = fs::remove_file(&path);
    }
    // Numbers are read as a stream: a file may be long, but must have an end.
    for (what, make) in ENDLESS {
        make(&dir.join(what));
        refused(dir, &["estimate", what], &[what]);
        refused(dir, &["estimate", "--sets", what], &[what]);
    }
}

#[test]
fn tables_that_hold_too_much() {
    let scratch = scratch();
    let dir = scratch.path();
    let interval =
        |name: &str| format!("[[interval]]\nname = \"{name}\"\nstart = \"work\"\nend = \"work\"\n");
    let many: String = (0..50_000).map(|i| interval(&i.to_string())).collect();
    let long = interval(&"n".repeat(1 << 20));
    let deep = format!("a = {}", "[".repeat(1 << 20));
    let near = interval("a").replace(
        "start = \"work\"",
        &format!("start = \"{}\"", "w".repeat(1 << 20)),
    );
    for (name, text) in [
        ("many", many),
        ("long", long),
        ("deep", deep),
        ("near", near),
    ] {
        fs::write(dir.join(name), text).unwrap();
        refused(dir, &["report", "t.ut", "--table", name], &[name]);
    }
}

#[test]
fn imports_that_do_not_end() {
    let scratch = scratch();
    let dir = scratch.path();
    for (what, make) in ENDLESS {
        make(&dir.join(what));
        refused(dir, &["import", what, "-o", "x.ut"], &[what]);
        // A CTF trace is a directory.
        for from in Source::ALL.iter().filter(|from| **from != Source::Ctf) {
            refused(
                dir,
                &["import", "--from", from.word(), what, "-o", "x.ut"],
                &[what],
            );
        }
        let ctf = dir.join(format!("{what}.ctf"));
        fs::create_dir(&ctf).unwrap();
        fs::write(ctf.join("metadata"), "/* CTF 1.8 */").unwrap();
        make(&ctf.join("stream"));
        let name = format!("{what}.ctf");
        refused(
            dir,
            &["import", "--from", "ctf", &name, "-o", "x.ut"],
            &[&name],
        );
    }
    assert!(!dir.join("x.ut").exists());
}

/// Names of programs and files contain no control sequence, and are no formula.
#[test]
fn names_steer_no_terminal() {
    let scratch = scratch();
    let dir = scratch.path();
    let steering = "\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}\u{2066}";
    with_manifest(dir, "steering.ut", |m| {
        m["names"][0]["name"] = json!(format!("=cmd{steering}"));
        m["names"][1]["name"] = json!(format!("\t@point{steering}"));
        m["threads"] = json!([{"pid": 1, "tid": 1, "name": steering}]);
        m["host"]["name"] = json!(steering);
        m["command"] = json!([steering]);
        m["warnings"] = json!([steering]);
    });
    done(dir, &["report", "steering.ut"]);
    refused(dir, &["explain", "steering.ut", "x"], &["no path"]);
    done(
        dir,
        &["export", "steering.ut", "--to", "csv", "steering.csv"],
    );
    done(
        dir,
        &[
            "export",
            "steering.ut",
            "--to",
            "hdrhistogram",
            "steering.hdr",
        ],
    );
    done(dir, &["compare", "steering.ut", "t.ut"]);
    for file in ["steering.csv", "steering.hdr"] {
        let text = fs::read_to_string(dir.join(file)).unwrap();
        let is_wrong = |c: char| c != '\n' && (c.is_control() || "\u{202e}\u{2066}".contains(c));
        assert!(!text.contains(is_wrong), "{text:?}");
        assert!(text.contains("\\u{1b}"), "{text:?}");
    }
    let csv = fs::read_to_string(dir.join("steering.csv")).unwrap();
    assert!(csv.contains(",'=cmd") && csv.contains(",' @point"), "{csv}");

    with_manifest(dir, "part.ut", |m| m["parts"][0]["file"] = json!(steering));
    refused_by_all(dir, "part.ut", &["part.ut"]);
    with_manifest(dir, "kind.ut", |m| m["state"] = json!(steering));
    refused_by_all(dir, "kind.ut", &["kind.ut", "manifest.json"]);
    let name = "\u{1b}[2Jx.ut";
    with_manifest(dir, name, |m| m["parts"] = json!([{"file": "a"}]));
    refused_by_all(dir, name, &["\\u{1b}[2Jx.ut"]);
    for text in [
        format!("[[interval]]\nname = \"{}\"\nx", "\\u001b[2J"),
        format!("[[{steering}"),
        format!("\"{}\" = 1", "\\u001b[2J"),
    ] {
        fs::write(dir.join("bad"), text).unwrap();
        refused(dir, &["report", "t.ut", "--table", "bad"], &["bad"]);
        refused(dir, &["run", "bad"], &["bad"]);
        refused(
            dir,
            &["slow", "run", "bad", "--clock", "quantised:1ms"],
            &["bad"],
        );
        refused(dir, &["estimate", "bad"], &["bad"]);
        refused(
            dir,
            &["import", "--from", "chrome", "bad", "-o", "x.ut"],
            &["bad"],
        );
    }
}
