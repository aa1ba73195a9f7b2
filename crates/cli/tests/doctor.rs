//! `undertick doctor` in surroundings that lack something: it names what, and the mend.

use crate::support;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use serde_json::Value;
use support::{document, said};

const UNDERTICK: &str = env!("CARGO_BIN_EXE_undertick");

fn doctor() -> Command {
    let mut command = Command::new(UNDERTICK);
    command.args(["doctor", "--json"]);
    command
}

/// Runs it below another command, such as `setarch`; `None` where that is not there or refuses.
fn below(words: &[&str]) -> Option<Output> {
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .args([UNDERTICK, "doctor", "--json"]);
    let output = command.output().ok()?;
    let is_document = output.stdout.starts_with(b"{");
    if !is_document {
        println!("skipped: {words:?}: {}", said(&output).1);
    }
    is_document.then_some(output)
}

fn check(output: &Output, name: &str) -> Value {
    let document: Value = document("doctor", output);
    let checks = document["checks"].as_array().unwrap();
    let found = checks.iter().find(|check| check["name"] == name);
    found
        .unwrap_or_else(|| panic!("no {name}: {document}"))
        .clone()
}

/// The check has that state, and its mend these words.
#[track_caller]
fn mended(output: &Output, name: &str, state: &str, words: &str) {
    let check = check(output, name);
    assert_eq!(check["state"], state, "{check}");
    assert!(check["mend"].as_str().unwrap().contains(words), "{check}");
    assert!(check["consequence"].is_string(), "{check}");
}

#[test]
fn here_each_check_has_a_state_and_what_does_not_work_a_mend() {
    let output = doctor().output().unwrap();
    let document: Value = document("doctor", &output);
    let checks = document["checks"].as_array().unwrap();
    assert_eq!(checks.len(), 11);
    for check in checks {
        let works = check["state"] == "works";
        assert_eq!(works, check["mend"].is_null(), "{check}");
        assert!(!check["found"].as_str().unwrap().is_empty(), "{check}");
    }
    let fails = checks.iter().any(|check| check["state"] == "fails");
    assert_eq!(said(&output).0, i32::from(fails));
    let text = Command::new(UNDERTICK).arg("doctor").output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    for check in checks {
        assert!(text.contains(check["name"].as_str().unwrap()), "{text}");
    }
}

/// Neither a session nor an instance of the kernel's trace.
#[test]
fn it_leaves_nothing_behind() {
    let child = doctor().stdout(std::process::Stdio::null()).spawn();
    let mut child = child.unwrap();
    let id = format!("-{}-", child.id());
    assert!(child.wait().unwrap().success());
    for place in ["/dev/shm", "/sys/kernel/tracing/instances"] {
        let left = || {
            let entries = fs::read_dir(place).into_iter().flatten().flatten();
            let mut names = entries.map(|entry| entry.file_name());
            names.find(|name| name.to_string_lossy().contains(&id))
        };
        // The kernel takes its time to remove an instance, and another process waits for it.
        let begun = std::time::Instant::now();
        while let Some(name) = left() {
            assert!(begun.elapsed().as_secs() < 60, "{place}: {name:?}");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

#[test]
fn an_environment_that_switches_off() {
    let with = |name: &str, value: &str| doctor().env(name, value).output().unwrap();
    mended(
        &with("GLIBC_TUNABLES", "glibc.pthread.rseq=0"),
        "descheduled flag",
        "limited",
        "remove glibc.pthread.rseq=0",
    );
    if cfg!(target_arch = "x86_64") {
        let masked = with("UNDERTICK_TEST_NO_INVARIANT_TSC", "1");
        mended(&masked, "clock", "limited", "+invtsc");
    }
    let unknown = with("UNDERTICK_CLOCK", "sundial");
    mended(&unknown, "clock", "fails", "unset UNDERTICK_CLOCK");
    assert_eq!(said(&unknown).0, 1);
    let nowhere = doctor()
        .env_remove("XDG_CACHE_HOME")
        .env("HOME", "/proc/nowhere")
        .output();
    mended(
        &nowhere.unwrap(),
        "calibration",
        "limited",
        "XDG_CACHE_HOME",
    );
}

#[test]
fn an_old_kernel_by_its_version() {
    if let Some(output) = below(&["setarch", "--uname-2.6"]) {
        mended(&output, "kernel", "limited", "uname-2.6");
    }
}

#[test]
fn one_cpu_and_few_files() {
    if let Some(output) = below(&["taskset", "-c", "0"]) {
        mended(&output, "CPUs", "limited", "two");
    }
    if let Some(output) = below(&["sh", "-c", "ulimit -n 40; exec \"$@\"", "sh"]) {
        mended(&output, "open files", "limited", "ulimit -n");
    }
}

#[test]
fn little_shared_memory() {
    const SMALL: &str = "mount -t tmpfs -o size=1m none /dev/shm && exec \"$@\"";
    let inside = ["unshare", "-m", "sh", "-c", SMALL, "sh"];
    if let Some(output) = below(&inside) {
        mended(&output, "rings", "limited", "--shm-size");
        let found = check(&output, "rings")["found"].to_string();
        assert!(found.contains("/dev/shm has only"), "{found}");
    }
    // Nor any elsewhere.
    let nowhere = SMALL.replace("&& exec", "&& export TMPDIR=/dev/shm && exec");
    if let Some(output) = below(&["unshare", "-m", "sh", "-c", &nowhere, "sh"]) {
        mended(&output, "rings", "fails", "UNDERTICK_DIR");
        assert_eq!(said(&output).0, 1);
    }
}

#[test]
fn a_container_with_process_numbers_of_its_own() {
    if let Some(output) = below(&["unshare", "-p", "-f", "--mount-proc"]) {
        mended(&output, "tracefs", "limited", "--pid=host");
    }
}

/// What a container's filter of system calls does.
#[test]
fn a_filter_of_system_calls() {
    const fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
        libc::sock_filter {
            code: code as u16,
            jt,
            jf,
            k,
        }
    }
    use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W};
    const DENIED: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let filter = [
        // The number of the system call is the first word of its description.
        instruction(BPF_LD | BPF_W | BPF_ABS, 0, 0, 0),
        instruction(
            BPF_JMP | BPF_JEQ | BPF_K,
            0,
            1,
            libc::SYS_perf_event_open as u32,
        ),
        instruction(BPF_RET | BPF_K, 0, 0, DENIED),
        instruction(BPF_RET | BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let mut command = doctor();
    // SAFETY: prctl may be called between fork and exec, and the program outlives the call.
    unsafe {
        command.pre_exec(move || {
            let program = libc::sock_fprog {
                len: filter.len() as u16,
                filter: filter.as_ptr().cast_mut(),
            };
            let mode = libc::SECCOMP_MODE_FILTER;
            let is_set = libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program) == 0;
            if is_set {
                Ok(())
            } else {
                Err(std::io::Error::last_os_error())
            }
        });
    }
    let output = command.output().unwrap();
    mended(&output, "perf", "limited", "seccomp");
}

/// Removes the group at the end.
struct Group(std::path::PathBuf);

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// A group with half a gibibyte, in whichever version of the interface has memory here.
#[test]
fn a_memory_limit_below_what_rings_may_take() {
    if !fs::metadata("/proc/self").is_ok_and(|about| about.uid() == 0) {
        return println!("skipped: only root makes control groups");
    }
    let places = [
        ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        ("/sys/fs/cgroup", "memory.max"),
    ];
    let made = places.into_iter().find_map(|(place, limit)| {
        let group = Group(format!("{place}/undertick-test-{}", std::process::id()).into());
        fs::create_dir(&group.0).ok()?;
        fs::write(group.0.join(limit), "536870912").ok()?;
        Some(group)
    });
    let Some(group) = made else {
        return println!("skipped: no control group with a memory limit can be made");
    };
    let enter = format!(
        "echo $$ > {}/cgroup.procs && exec \"$@\"",
        group.0.display()
    );
    if let Some(output) = below(&["sh", "-c", &enter, "sh"]) {
        let rings = check(&output, "rings")["found"].to_string();
        if !rings.contains("1.0 GiB") {
            return println!("skipped: rings have less room than the limit: {rings}");
        }
        mended(&output, "memory limit", "limited", "record --budget");
        let found = check(&output, "memory limit")["found"].to_string();
        assert!(found.contains("512.0 MiB"), "{found}");
    }
}

#[test]
fn without_any_right() {
    if !fs::metadata("/proc/self").is_ok_and(|about| about.uid() == 0) {
        return println!("skipped: only root can take rights away");
    }
    let dir = support::open_to_all();
    let copy = dir.path().join("undertick");
    support::copy_program(UNDERTICK.as_ref(), &copy);
    let output = Command::new(copy)
        .args(["doctor", "--json"])
        .current_dir("/")
        .env("HOME", "/nonexistent")
        .env_remove("XDG_CACHE_HOME")
        .uid(65_534)
        .gid(65_534)
        .output()
        .unwrap();
    // In a container it names that first.
    let is_contained =
        !fs::metadata("/proc/self/ns/pid").is_ok_and(|about| about.ino() == 0xEFFF_FFFC);
    let mend = if is_contained {
        "--pid=host"
    } else {
        "record as root"
    };
    mended(&output, "tracefs", "limited", mend);
    mended(&output, "calibration", "limited", "XDG_CACHE_HOME");
}
