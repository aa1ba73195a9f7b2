//! `record --kernel`, and traces with rows of the kernel.

use crate::support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::{PROGRAM, compile, copy_program, document, refused, said, undertick};

/// Writes 1000 events and sleeps 20 times in between.
const SLEEPER: &str = r#"
#define _GNU_SOURCE
#include "undertick.h"
#include <time.h>
int main(void) {
    for (uint32_t i = 0; i < 1000; i++) {
        struct timespec t = {0, 100000};
        ut_event(4, i);
        if (i % 50 == 0) nanosleep(&t, 0);
    }
    return 0;
}
"#;

/// Changes to the user nobody, forbids perf events as containers do, executes its arguments.
const CONTAINED: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (geteuid() == 0 && (setgroups(0, 0) || setgid(65534) || setuid(65534))) return 111;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return 112;
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 113;
    (void)argc;
    execv(argv[1], argv + 1);
    return 114;
}
"#;

fn record(trace: &Path, kernel: &str, program: &Path) -> Output {
    undertick(&[
        "record",
        "--no-calibration",
        "--kernel",
        kernel,
        "-o",
        trace.to_str().unwrap(),
        "--",
        program.to_str().unwrap(),
    ])
}

fn manifest(trace: &Path) -> serde_json::Value {
    document("manifest", &*fs::read(trace.join("manifest.json")).unwrap())
}

#[test]
fn exports_keep_the_users_rows_and_show_the_kernels() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "program", SLEEPER, &[]);
    let trace = dir.path().join("k.ut");
    let (code, text) = said(&record(&trace, "auto", &program));
    assert_eq!(code, 0, "{text}");
    let manifest = manifest(&trace);
    let kernel_rows = manifest["kernel"]["rows"].as_u64().unwrap();
    assert_eq!(manifest["events"], 1000);
    assert!(
        text.contains(&format!("{kernel_rows} kernel events from ")),
        "{text}"
    );
    let export = |format: &str| -> PathBuf {
        let file = dir.path().join(format);
        let output = undertick(&[
            "export",
            trace.to_str().unwrap(),
            "--to",
            format,
            file.to_str().unwrap(),
        ]);
        assert_eq!(said(&output).0, 0, "{}", said(&output).1);
        file
    };
    let csv = fs::read_to_string(export("csv")).unwrap();
    let column = |line: &str, i: usize| line.split(',').nth(i).unwrap().to_owned();
    let of = |mode: &str| {
        csv.lines()
            .skip(1)
            .filter(|line| column(line, 6) == mode)
            .count()
    };
    assert_eq!((of("user"), of("kernel") as u64), (1000, kernel_rows));
    assert!(
        (csv.lines().skip(1)).all(|line| column(line, 6) == "user" || column(line, 10).is_empty()),
        "the kernel's rows have no names of the user"
    );
    let chrome: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(export("chrome")).unwrap()).unwrap();
    assert_eq!(chrome["traceEvents"].as_array().unwrap().len(), 1000);
    export("perfetto");
    export("parquet");
    if kernel_rows == 0 {
        println!(
            "skipped: no evidence of the kernel here: {}",
            manifest["kernel"]
        );
    } else {
        assert!(csv.contains(",kernel,switch_out,"), "20 sleeps");
    }
}

/// Two points inside a span of about 2 us, for a second.
const FRAMES: &str = r#"
#define _GNU_SOURCE
#include "undertick.h"
#include <time.h>
/* By its CPU time: a busy machine leaves it a part of the other. */
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
int main(void) {
    double end = now() + 1;
    ut_name(1, "frame");
    while (now() < end) {
        int i;
        ut_begin_ordered(1);
        for (i = 0; i < 3000; i++) __asm__ volatile("" : "+r"(i));
        ut_event(2, 1);
        ut_event(2, 2);
        ut_end_ordered(1);
    }
    return 0;
}
"#;

#[test]
fn what_points_cost_is_stated() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "program", FRAMES, &[]);
    for (kernel, level) in [("auto", "1"), ("off", "keep=1")] {
        let trace = dir.path().join(format!("{kernel}.ut"));
        let (code, text) = said(&undertick(&[
            "record",
            "--kernel",
            kernel,
            "--perturbation",
            level,
            "-o",
            trace.to_str().unwrap(),
            "--",
            program.to_str().unwrap(),
        ]));
        assert_eq!(code, 0, "{text}");
        let report = undertick(&["report", trace.to_str().unwrap(), "--json"]);
        let report: serde_json::Value = document("report", &report);
        let frame = &report["intervals"]
            .as_array()
            .unwrap()
            .iter()
            .find(|interval| interval["name"] == "frame")
            .unwrap()["slowed"];
        // Beside a busy neighbour the halves depend too much on each other for an interval; the report
        // says so.
        let notes = frame["by"]["notes"].as_array().unwrap().iter();
        let is_unknown = notes
            .filter_map(|note| note.as_str())
            .any(|note| note.contains("there is no interval"));
        assert!(
            frame["by"]["interval"][1].is_number() || is_unknown,
            "{frame}"
        );
        assert!(
            (frame["points"].as_f64().unwrap() - 2.0).abs() < 0.1,
            "{frame}"
        );
        assert!(report["trace"]["perturbation"]["value"].is_number());
        let text = undertick(&["report", trace.to_str().unwrap(), "--full"]);
        let text = String::from_utf8(text.stdout).unwrap();
        assert!(text.contains("frame: slowed by"), "{text}");
    }
    for wrong in ["0", "deep", "keep=", "keep=nobody"] {
        let output = undertick(&["record", "--perturbation", wrong, "--", "true"]);
        refused(&output, 2, &[wrong, "give a level", "keep=EVENT"]);
    }
}

#[test]
fn off_has_none_and_says_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "program", PROGRAM, &[]);
    let trace = dir.path().join("k.ut");
    let (code, text) = said(&record(&trace, "off", &program));
    assert_eq!(code, 0, "{text}");
    assert!(!text.contains("kernel events"), "{text}");
    assert!(manifest(&trace)["kernel"].is_null());
}

#[test]
fn without_any_source_auto_says_so_and_on_refuses() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    let program = compile(path, "program", PROGRAM, &[]);
    let contained = compile(path, "contained", CONTAINED, &[]);
    let binary = path.join("undertick");
    copy_program(Path::new(env!("CARGO_BIN_EXE_undertick")), &binary);
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(path, open).unwrap();
    let run = |kernel: &str| {
        Command::new(&contained)
            .arg(&binary)
            .args(["record", "--no-calibration", "--kernel", kernel, "-o"])
            .arg(path.join(format!("{kernel}.ut")))
            .arg("--")
            .arg(&program)
            .output()
            .unwrap()
    };
    let output = run("auto");
    if let Some(111..=114) = output.status.code() {
        println!("skipped: no seccomp filter here: {}", output.status);
        return;
    }
    let (code, text) = said(&output);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("perf events are not allowed"), "{text}");
    assert!(text.contains("without tracefs"), "{text}");
    let kernel = &manifest(&path.join("auto.ut"))["kernel"];
    for source in kernel["sources"].as_array().unwrap() {
        let used = source["used"].as_bool().unwrap();
        assert!(used || !source["why"].as_str().unwrap().is_empty());
        assert_eq!(used, source["name"] == "proc_stat", "{source}");
    }
    refused(
        &run("on"),
        1,
        &["--kernel on", "perf events are not allowed", "tracefs"],
    );
    assert!(!path.join("on.ut").exists());
}
