//! Evidence of the kernel, compared with the program's report about itself.

mod common;

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use common::evidence::{
    INNER, Recorded, STEP, assert_accounted, assert_sound, error_ticks, has_switches, read,
    recorded, recorded_with,
};
use common::{alone, copy_program, program, request, settings};
use undertick_clock::{Source, facts, rate};
use undertick_format::schema::Kind;
use undertick_record::Overflow;
use undertick_record::kernel::Wanted;
use undertick_record::record::record;

#[test]
fn switches_are_those_of_the_kernels_own_account() {
    let _alone = alone();
    let recorded = recorded(&["sleep", "hog", "ping", "child"], Wanted::Auto);
    if !has_switches(&recorded) {
        return;
    }
    assert_sound(&recorded);
    for word in ["sleeper", "hogged", "pinger", "pinged", "child"] {
        assert_accounted(&recorded, word);
    }
    // The truth is not empty. Some of the 200 and 50 sleeps may lack a switch: where the hypervisor
    // takes the CPU away for as long, a timer has expired before the kernel comes to switch.
    assert!(recorded.said("sleeper").numbers[0] >= 100);
    assert!(recorded.said("child").numbers[0] >= 25);
    assert!(recorded.said("hogged").numbers[1] >= 10);
    let hogged = recorded.switches(recorded.said("hogged").tid, INNER);
    assert!(hogged.0 - hogged.1 >= 10, "{hogged:?}");
    // Threads belong to their process, the child only to its own.
    let main = recorded.said("main").tid;
    let process = |word| {
        let tid = recorded.said(word).tid;
        let row = recorded.kernel().find(|row| row.tid == tid).unwrap();
        row.pid
    };
    assert_eq!(process("sleeper"), main);
    assert_eq!(process("child"), recorded.said("child").tid);
}

#[test]
fn migrations_are_those_the_program_made() {
    let _alone = alone();
    let recorded = recorded(&["move"], Wanted::Auto);
    let cpus = &recorded.said("main").numbers;
    if !has_switches(&recorded) {
        return;
    }
    if cpus[0] == cpus[1] {
        println!("skipped: one CPU only");
        return;
    }
    assert_sound(&recorded);
    let tid = recorded.said("mover").tid;
    let moves: Vec<(i64, i16, i64)> = (recorded.between(tid, INNER).into_iter())
        .filter(|row| row.kind == Kind::Migrate as i8)
        .map(|row| (row.ts, row.cpu, row.payload))
        .collect();
    // 40 moves, to and fro.
    let expected: Vec<(i16, i64)> = (1..=40usize)
        .map(|i| (cpus[i % 2] as i16, cpus[(i + 1) % 2]))
        .collect();
    let made: Vec<(i16, i64)> = moves.iter().map(|&(_, to, from)| (to, from)).collect();
    assert_eq!(made, expected);
    // Each lies between the stamps around it.
    let error = error_ticks(&recorded.manifest);
    let steps: Vec<i64> = (recorded.rows.iter())
        .filter(|row| row.mode == 0 && row.event == STEP)
        .map(|row| row.ts)
        .collect();
    let begin = recorded.stamp(tid, INNER, 0);
    let before = std::iter::once(&begin).chain(&steps);
    for ((from, (at, ..)), to) in before.zip(&moves).zip(&steps) {
        assert!(from - error <= *at && *at <= to + error, "{from} {at} {to}");
    }
}

/// Asserts that a thread off its CPU writes no event: no user event lies between a switch out and
/// the next switch in, by more than the bound.
fn assert_nothing_while_off(recorded: &Recorded) {
    let error = error_ticks(&recorded.manifest);
    let mut off: HashMap<i32, Vec<(i64, i64)>> = HashMap::new();
    let mut since = HashMap::new();
    for row in recorded.kernel() {
        if row.kind == Kind::SwitchOut as i8 {
            since.insert(row.tid, row.ts);
        } else if row.kind == Kind::SwitchIn as i8
            && let Some(from) = since.remove(&row.tid)
        {
            off.entry(row.tid).or_default().push((from, row.ts));
        }
    }
    let mut looked_at = 0;
    for row in recorded.rows.iter().filter(|row| row.mode == 0) {
        for (from, to) in off.get(&row.tid).into_iter().flatten() {
            let inside = from + error < row.ts && row.ts < to - error;
            assert!(!inside, "{row:?} {from} {to} {error}");
            looked_at += 1;
        }
    }
    assert!(looked_at > 1000, "{looked_at}");
}

#[test]
fn nothing_is_recorded_while_a_thread_is_off_its_cpu() {
    let _alone = alone();
    let recorded = recorded(&["ping", "move", "sleep"], Wanted::Auto);
    if has_switches(&recorded) {
        assert_nothing_while_off(&recorded);
    }
}

/// In these recordings the sources' clocks are the trace clock.
#[test]
fn other_trace_clocks() {
    let _alone = alone();
    for name in ["monotonic_raw", "monotonic"] {
        let choice = undertick_clock::choose(Some(name)).unwrap();
        let source = Source::open(choice.clock).unwrap();
        let recorded = recorded_with(&["ping", "move", "sleep"], |request| {
            request.kernel = Wanted::Auto;
            request.settings.clock = choice.clock;
            request.facts = facts::gather(source, rate::SHORTEST_SPAN).unwrap();
            request.choice = choice;
        });
        if !has_switches(&recorded) {
            return;
        }
        assert_eq!(recorded.manifest.clock.name, name);
        assert_eq!(recorded.manifest.kernel.as_ref().unwrap().error_ns, 0.0);
        assert_sound(&recorded);
        for word in ["sleeper", "pinger", "pinged", "mover"] {
            assert_accounted(&recorded, word);
        }
        assert_nothing_while_off(&recorded);
    }
}

#[test]
fn off_records_none() {
    let _alone = alone();
    let recorded = recorded(&["sleep"], Wanted::Off);
    assert_eq!(recorded.kernel().count(), 0);
    assert!(recorded.manifest.kernel.is_none());
    assert_eq!(recorded.manifest.parts.len(), 1);
}

/// Not a test: records as the current user.
#[test]
fn record_as_this_user() {
    let Some(dir) = std::env::var_os("UNDERTICK_TEST_UNPRIVILEGED") else {
        return;
    };
    let _alone = alone();
    let dir = Path::new(&dir);
    let (trace, binary) = (dir.join("k.ut"), dir.join("program"));
    let line = format!(
        "exec {} sleep hog ping >{}",
        binary.display(),
        dir.join("said").display()
    );
    let mut request = request(
        &trace,
        &["sh", "-c", &line],
        settings(Overflow::Grow, 1 << 20, None),
    );
    request.kernel = Wanted::Auto;
    record(request, &mut |_| {}).unwrap();
}

#[test]
fn an_unprivileged_user_has_switches_too() {
    let _alone = alone();
    // SAFETY: geteuid always succeeds.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: not root, so the other tests are unprivileged already");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    copy_program(&program("kernel.c", &[]), &path.join("program"));
    // Other users may be unable to read the directory of the test program.
    let own = path.join("test");
    copy_program(&std::env::current_exe().unwrap(), &own);
    std::os::unix::fs::chown(path, Some(65534), Some(65534)).unwrap();
    let status = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg("--inh-caps=-all")
        .arg(&own)
        .args(["record_as_this_user", "--exact"])
        .env("UNDERTICK_TEST_UNPRIVILEGED", path)
        .current_dir(path)
        .status();
    match status {
        Err(error) => return println!("skipped: setpriv: {error}"),
        Ok(status) => assert!(status.success()),
    }
    let recorded = read(&path.join("k.ut"), &path.join("said"));
    let kernel = recorded.manifest.kernel.as_ref().unwrap();
    let perf = kernel.sources.iter().find(|s| s.name == "perf").unwrap();
    if !perf.used {
        println!("skipped: {}", perf.why);
        return;
    }
    for other in kernel.sources.iter().filter(|source| !source.used) {
        assert!(!other.why.is_empty(), "{other:?}");
    }
    assert_sound(&recorded);
    for word in ["sleeper", "hogged", "pinger", "pinged"] {
        assert_accounted(&recorded, word);
    }
}
