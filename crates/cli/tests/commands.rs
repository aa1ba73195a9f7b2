//! Commands as a user runs them.

use crate::support;

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use support::{compile, document, said, trace, undertick};

#[test]
fn report_says_what_the_program_did() {
    let dir = tempfile::tempdir().unwrap();
    let trace = trace(dir.path());
    let page = dir.path().join("page.html");
    let output = undertick(&["report", &trace, "--json", "--html", page.to_str().unwrap()]);
    let report: serde_json::Value = document("report", &output);
    assert_eq!(report["schema_version"], 1);
    // 1000 x (begin, begin, next, event, wide event, end, end)
    assert_eq!(report["trace"]["events"], 7000);
    assert_eq!(report["trace"]["lost"], 0);
    let count = |name: &str| {
        let intervals = report["intervals"].as_array().unwrap();
        let interval = intervals
            .iter()
            .find(|i| i["name"] == name)
            .unwrap_or_else(|| panic!("no {name}"));
        interval["count"].as_u64().unwrap() + interval["culled"]["count"].as_u64().unwrap()
    };
    assert_eq!(count("request, \"quoted\""), 1000);
    assert_eq!(count("parse"), 1000);
    assert_eq!(count("run </script><script>alert(1)</script>"), 1000);
    assert_eq!(count("event 4 (period)"), 999);
    let page = fs::read_to_string(page).unwrap();
    assert!(
        !page.contains("<script>alert(1)"),
        "a name must not become a script"
    );
    // The namespace of SVG is a name, not an address that is fetched; a link is followed only on a
    // click.
    let page = page.replace("http://www.w3.org/2000/svg", "");
    let page = page.replace(" href=\"https://", "");
    assert!(
        !page.contains("http://") && !page.contains("https://"),
        "the page needs no network"
    );

    for arguments in [&["report", &trace][..], &["report", &trace, "--full"]] {
        let (code, text) = said(&undertick(arguments));
        assert_eq!(code, 0);
        assert!(
            text.lines().all(|line| line.chars().count() <= 100),
            "wider than 100 columns"
        );
        assert!(text.contains("parse"));
        assert_eq!(
            text.lines().count() > 40,
            arguments.contains(&"--full"),
            "{text}"
        );
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let dir = tempfile::tempdir().unwrap();
    let trace = trace(dir.path());
    let mut child = Command::new(env!("CARGO_BIN_EXE_undertick"))
        .args(["report", &trace, "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut said = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert!(child.wait().unwrap().success(), "{said}");
    assert!(!said.contains("panicked"), "{said}");
}

/// Errors and losses are said all the same.
#[test]
fn quiet_says_no_more_than_errors() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(
        dir.path(),
        "one",
        "#include \"undertick.h\"\nint main(void) { ut_event(1, 1); return 0; }\n",
        &[],
    );
    let trace = dir.path().join("q.ut");
    let words = |options: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_undertick"))
            .args(options)
            .args(["record", "--no-calibration", "-o"])
            .arg(&trace)
            .arg("--")
            .arg(&program)
            .output()
            .unwrap();
        (said(&output).0, String::from_utf8(output.stderr).unwrap())
    };
    let (status, text) = words(&["--quiet"]);
    // What the surroundings lack is a warning.
    assert!(
        status == 0 && text.lines().all(|line| line.contains("note:")),
        "{text}"
    );
    let (status, text) = words(&["-q"]);
    assert!(
        status == 2 && text.contains("q.ut"),
        "it is there already: {text}"
    );
    fs::remove_dir_all(&trace).unwrap();
    let (status, text) = words(&[]);
    assert!(
        status == 0 && text.contains("1 event of 1 thread"),
        "{text}"
    );
    // After the command, too.
    let output = undertick(&["report", trace.to_str().unwrap(), "-q"]);
    assert!(output.status.success() && output.stderr.is_empty());
}

#[test]
fn colours_are_written_as_asked() {
    let dir = tempfile::tempdir().unwrap();
    let trace = trace(dir.path());
    let text = |options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_undertick"));
        command
            .env("NO_COLOR", "1")
            .args(["report", &trace])
            .args(options);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    assert!(!text(&[]).contains('\u{1b}'));
    assert!(!text(&["--color", "never"]).contains('\u{1b}'));
    let coloured = text(&["--color", "always"]);
    assert!(coloured.contains("\u{1b}[1m"), "{coloured}");
    assert_eq!(text(&["--color=auto"]), text(&[]));
}

#[test]
fn the_programs_exit_status_is_ours() {
    let dir = tempfile::tempdir().unwrap();
    for (script, expected) in [("exit 0", 0), ("exit 41", 41), ("kill -TERM $$", 128 + 15)] {
        let trace = dir.path().join(format!("{expected}.ut"));
        let output = undertick(&[
            "record",
            "--no-calibration",
            "-o",
            trace.to_str().unwrap(),
            "--",
            "sh",
            "-c",
            script,
        ]);
        assert_eq!(said(&output).0, expected);
    }
}

/// `undertick -- PROGRAM` makes a trace named after the program, and shows its first screen.
#[test]
fn a_program_alone_is_recorded_and_reported() {
    let dir = tempfile::tempdir().unwrap();
    let source = "#include \"undertick.h\"\nint main(int n, char **words) { ut_name(1, words[1]);\n\
        for (int i = 0; i < 1000; i++) { ut_begin(1); ut_end(1); } return 3; }\n";
    compile(dir.path(), "loop", source, &[]);
    let output = Command::new(env!("CARGO_BIN_EXE_undertick"))
        .args(["--", "./loop", "--help"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    let (status, text) = said(&output);
    assert_eq!(status, 3, "{text}");
    assert!(dir.path().join("loop.ut/manifest.json").exists(), "{text}");
    let screen = String::from_utf8(output.stdout).unwrap();
    assert!(
        screen.contains("\n--help ") && screen.contains("1 000"),
        "{screen}"
    );
    let output = undertick(&["--", "./no-such-program"]);
    assert_eq!(said(&output).0, 2);
}

#[test]
fn a_report_of_a_bug_has_the_versions() {
    let (status, text) = said(&undertick(&["--version", "--verbose"]));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(status, 0, "{text}");
    for words in [env!("CARGO_PKG_VERSION"), "trace format 1", kernel.trim()] {
        assert!(text.contains(words), "{text}");
    }
}

/// Ctrl-C from a terminal, and from `kill`.
#[test]
fn an_interrupted_recording_is_readable() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(
        dir.path(),
        "endless",
        "#include \"undertick.h\"\n#include <unistd.h>\nint main(void) { for (uint32_t i = 0;; i++) { ut_event(1, i); if (i % 1000 == 0) usleep(100); } }\n",
        &["-D_GNU_SOURCE"],
    );
    let trace = dir.path().join("x.ut");
    let mut child = Command::new(env!("CARGO_BIN_EXE_undertick"))
        .args([
            "record",
            "--no-calibration",
            "-o",
            trace.to_str().unwrap(),
            "--",
        ])
        .arg(&program)
        .spawn()
        .unwrap();
    while !trace.join("raw.utb").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(300));
    // A trace that is being recorded stays unchanged.
    support::refused(
        &undertick(&["report", trace.to_str().unwrap()]),
        1,
        &["still being recorded"],
    );
    // SAFETY: a signal to the child just started.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    assert_eq!(child.wait().unwrap().code(), Some(128 + libc::SIGINT));
    let (code, text) = said(&undertick(&["report", trace.to_str().unwrap(), "--json"]));
    assert_eq!(code, 0, "{text}");
    let manifest = fs::read_to_string(trace.join("manifest.json")).unwrap();
    assert!(manifest.contains("\"interrupted\": true") && manifest.contains("\"lost\": 0"));
}

/// The recorder is killed: the program goes on, and drained events are readable.
#[test]
fn a_killed_recorder_leaves_program_and_trace() {
    let dir = tempfile::tempdir().unwrap();
    let done = dir.path().join("done");
    let program = compile(
        dir.path(),
        "long",
        "#include \"undertick.h\"\n#include <stdio.h>\n#include <unistd.h>\nint main(int c, char **v) { (void)c; ut_name(1, \"tick\"); for (uint32_t i = 0; i < 2000; i++) { ut_event(1, i); usleep(500); } FILE *f = fopen(v[1], \"w\"); return !f || fclose(f); }\n",
        &["-D_GNU_SOURCE"],
    );
    let trace = dir.path().join("x.ut");
    let mut child = Command::new(env!("CARGO_BIN_EXE_undertick"))
        .args([
            "record",
            "--no-calibration",
            "-o",
            trace.to_str().unwrap(),
            "--",
        ])
        .args([&program, &done])
        .spawn()
        .unwrap();
    while fs::metadata(trace.join("raw.utb")).map_or(0, |meta| meta.len()) == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(200));
    child.kill().unwrap();
    child.wait().unwrap();
    // A reader changes nothing, and names the command that does.
    let name = trace.to_str().unwrap();
    let (code, text) = said(&undertick(&["report", name]));
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains(&format!("undertick record --finish {name}")),
        "{text}"
    );
    assert!(trace.join("raw.utb").exists());
    let (code, text) = said(&undertick(&["record", "--finish", name]));
    assert_eq!(code, 0, "{text}");
    let (code, text) = said(&undertick(&["report", name, "--json"]));
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains("\"tick (period)\"")
            && text.contains("the recorder ended before the program"),
        "{text}"
    );
    for _ in 0..200 {
        if done.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(done.exists(), "the program did not run to its end");
    let (code, text) = said(&undertick(&["record", "--finish", name]));
    assert_eq!(code, 2, "{text}");
}

#[test]
fn no_session_is_left_behind() {
    let dir = tempfile::tempdir().unwrap();
    let sessions = tempfile::tempdir().unwrap();
    let trace = dir.path().join("x.ut");
    let status = Command::new(env!("CARGO_BIN_EXE_undertick"))
        .args(["record", "-o", trace.to_str().unwrap(), "--", "true"])
        .env("UNDERTICK_DIR", sessions.path())
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(fs::read_dir(sessions.path()).unwrap().count(), 0);
}

#[test]
fn the_header_is_written_and_compiles() {
    let dir = tempfile::tempdir().unwrap();
    let into = dir.path().join("a/b");
    assert_eq!(
        said(&undertick(&["header", "--dir", into.to_str().unwrap()])).0,
        0
    );
    let written = fs::read(into.join("undertick.h")).unwrap();
    let ours =
        fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include/undertick.h")).unwrap();
    assert_eq!(written, ours);
    // A second call is no error.
    assert_eq!(
        said(&undertick(&["header", "--dir", into.to_str().unwrap()])).0,
        0
    );
}

/// With UNDERTICK_DISABLE the object file equals the one without the calls.
#[test]
fn a_disabled_recorder_leaves_no_code() {
    let dir = tempfile::tempdir().unwrap();
    let calls = "int f(int n) { ut_begin(1); ut_event(2, (unsigned)n); ut_event64(3, 4); n *= 3; ut_next(1, 2); ut_pair(1); \
                 ut_end(2); ut_begin_ordered(5); ut_end_ordered(5); ut_name(1, \"x\"); ut_thread_name(\"y\"); \
                 if (ut_enabled()) n++; return n; }\n";
    let with = format!("#include \"undertick.h\"\n{calls}");
    let without = "int f(int n) { n *= 3; return n; }\n";
    let code = |name: &str, text: &str, arguments: &[&str]| {
        let object = compile(dir.path(), name, text, &[&["-c"], arguments].concat());
        let out = dir.path().join(format!("{name}.bin"));
        let copied = Command::new("objcopy")
            .args(["-O", "binary", "--only-section=.text"])
            .arg(&object)
            .arg(&out)
            .status();
        assert!(copied.expect("objcopy").success());
        let symbols = Command::new("nm").arg(&object).output().unwrap().stdout;
        (fs::read(out).unwrap(), String::from_utf8(symbols).unwrap())
    };
    let (disabled, symbols) = code("disabled", &with, &["-DUNDERTICK_DISABLE"]);
    let (plain, _) = code("plain", without, &[]);
    assert_eq!(disabled, plain);
    assert!(!symbols.contains("ut_"), "{symbols}");
    // The test can fail: the enabled file has more.
    let (enabled, symbols) = code("enabled", &with, &[]);
    assert!(enabled.len() > plain.len() && symbols.contains("ut_"));
}

#[test]
fn the_demo_shows_its_stages() {
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_undertick"))
        .args(["demo", "--json"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert_eq!(said(&output).0, 0, "{}", said(&output).1);
    let report: serde_json::Value = document("report", &output);
    let told = said(&output).1;
    assert_eq!(report["trace"]["lost"], 0, "{} {told}", report["trace"]);
    let intervals = report["intervals"].as_array().unwrap();
    for name in [
        "prepare",
        "bind",
        "step",
        "commit",
        "lookup",
        "insert",
        "compress",
        "decompress",
    ] {
        let interval = intervals
            .iter()
            .find(|i| i["name"] == name)
            .unwrap_or_else(|| panic!("no {name}: {told}"));
        assert!(
            interval["count"].as_u64().unwrap() > 10,
            "{interval} {told}"
        );
        // Some drift for longer than the demo runs: a note then says so.
        let refused = interval["mean"]["notes"]
            .to_string()
            .contains("autocorrelation");
        assert!(
            interval["mean"]["interval"][1].is_number() || refused,
            "{interval} {told}"
        );
        assert!(
            interval["of_this_run"]["mean"]["interval"][1].is_number(),
            "{interval} {told}"
        );
        assert!(
            interval["compensation"]["cost"]["interval"][0].is_number(),
            "{interval} {told}"
        );
    }
    assert!(dir.path().join("undertick-report.html").exists());
    let trace = dir.path().join("undertick-demo.ut");
    let screen = undertick(&["report", trace.to_str().unwrap()]);
    assert_eq!(said(&screen).0, 0);
    let screen = String::from_utf8(screen.stdout).unwrap();
    let (lines, widest) = (
        screen.lines().count(),
        screen.lines().map(|line| line.chars().count()).max(),
    );
    assert!(
        lines <= 25 && widest <= Some(100),
        "{lines} {widest:?}\n{screen}"
    );
    crate::readme::has_the_screen(&screen, &report);
}

/// Standard output of a command in a terminal of 24 lines; `None` where none can be made.
fn in_a_terminal(line: &str) -> Option<String> {
    let line = format!("stty rows 24 cols 100; {line}");
    let output = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .stdin(Stdio::null())
        .output()
        .ok()?;
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8(output.stdout).unwrap())
}

/// What is longer than the terminal goes through the pager, and what is not, does not; a pager that
/// is not there is no reason to show nothing. Colours come in a terminal alone, unless NO_COLOR says
/// otherwise.
#[test]
fn a_terminal_gets_colours_and_a_pager() {
    let dir = tempfile::tempdir().unwrap();
    let trace = trace(dir.path());
    // Its progress is for standard error, which would be the same terminal.
    let report = format!(
        "2>/dev/null '{}' report '{trace}'",
        env!("CARGO_BIN_EXE_undertick")
    );
    let pager = "PAGER='sed s/^/paged:/'";
    let Some(full) = in_a_terminal(&format!("{pager} {report} --full")) else {
        println!("skipped: no script, which makes a terminal");
        return;
    };
    assert!(full.lines().count() > 40);
    assert!(
        full.lines().all(|line| line.starts_with("paged:")),
        "{full}"
    );
    let missing = in_a_terminal(&format!("PAGER=no-such-pager {report} --full")).unwrap();
    assert!(missing.lines().count() > 40, "{missing}");
    let screen = in_a_terminal(&format!("{pager} TERM=xterm {report}")).unwrap();
    assert!(!screen.contains("paged:"), "{screen}");
    assert!(screen.contains("\u{1b}[1m") && screen.contains("\u{1b}[0m"));
    for off in ["NO_COLOR=1 TERM=xterm", "TERM=dumb"] {
        let screen = in_a_terminal(&format!("{off} {report}")).unwrap();
        assert!(
            screen.contains("request") && !screen.contains('\u{1b}'),
            "{screen}"
        );
    }
    let (_, piped) = said(&undertick(&["report", &trace, "--full"]));
    assert!(!piped.contains("paged:") && !piped.contains('\u{1b}'));
}
