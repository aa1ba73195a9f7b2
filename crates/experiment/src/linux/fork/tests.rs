use super::*;
use crate::linux::test_harness;
use crate::script::Words;

/// Whether the kernel reports that a process is ending or has ended (`PF_EXITING`). `None`: there
/// is no such process.
fn is_ending(pid: libc::pid_t) -> Option<bool> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // state, ppid, pgrp, session, tty, tpgid, flags
    let flags = stat.rsplit(')').next()?.split_ascii_whitespace().nth(6)?;
    Some(flags.parse::<u32>().ok()? & 4 != 0)
}

#[test]
fn every_child_ends_and_none_is_left() {
    for (word, kind) in ForkKind::WORDS {
        test_harness::processes(1, &[], |_| {
            let children = Children::new();
            let (mut make, mut reap) = (children.make(*kind).unwrap(), children.reap());
            for _ in 0..50 {
                make();
                let child = children.0.child.get();
                if let Some(Child::Process(pid)) = child {
                    assert_ne!(pid, std::process::id().cast_signed(), "{word}");
                    assert!(is_ending(pid).is_some(), "{word}: no such process");
                }
                if let (ForkKind::Vfork, Some(Child::Process(pid))) = (*kind, child) {
                    assert_eq!(is_ending(pid), Some(true), "not waited for");
                }
                reap();
                if let Some(Child::Process(pid)) = child {
                    assert_eq!(is_ending(pid), None, "{word}: a zombie");
                }
            }
            let tasks = std::fs::read_dir("/proc/self/task").unwrap().count();
            assert_eq!(tasks, 1, "{word}: a thread is left");
            // SAFETY: no status is asked for.
            let left = unsafe { libc::waitpid(-1, null_mut(), libc::WNOHANG) };
            let why = io::Error::last_os_error().raw_os_error();
            assert_eq!((left, why), (-1, Some(libc::ECHILD)), "{word}");
        });
    }
}

#[test]
fn one_reap_is_for_all_kinds() {
    test_harness::processes(1, &[], |_| {
        let children = Children::new();
        let mut reap = children.reap();
        for (_, kind) in ForkKind::WORDS {
            children.make(*kind).unwrap()();
            reap();
        }
    });
}

#[test]
fn a_child_too_many_and_one_too_few_are_told() {
    let too_many = test_harness::wait_statuses(1, &[], |_| {
        let children = Children::new();
        let mut make = children.make(ForkKind::Fork).unwrap();
        make();
        make();
    });
    let too_few = test_harness::wait_statuses(1, &[], |_| Children::new().reap()());
    // Both have exit status 1.
    assert_eq!((too_many, too_few), (vec![0x100], vec![0x100]));
}

#[test]
fn a_copied_child_does_not_write_to_its_parent_and_shares_no_stack() {
    // The parent's stack is unchanged, whatever the child did.
    for (word, kind) in ForkKind::WORDS {
        test_harness::processes(1, &[], |_| {
            let children = Children::new();
            let (mut make, mut reap) = (children.make(*kind).unwrap(), children.reap());
            let here = std::hint::black_box([0x5a_u8; 4096]);
            for _ in 0..20 {
                make();
                reap();
            }
            let here = std::hint::black_box(here);
            assert!(here.iter().all(|byte| *byte == 0x5a), "{word}");
        });
    }
}

/// Variable in the environment of the recorded program that makes [`recorded`] create children.
const WITH_CHILDREN: &str = "UNDERTICK_TEST_WITH_CHILDREN";

#[test]
#[ignore = "the program that the next test records"]
fn recorded() {
    undertick_calibrate::calibration::workload(undertick_calibrate::calibration::PASSES, false);
    if std::env::var_os(WITH_CHILDREN).is_some() {
        let children = Children::new();
        for (_, kind) in ForkKind::WORDS {
            let (mut make, mut reap) = (children.make(*kind).unwrap(), children.reap());
            for _ in 0..10 {
                make();
                reap();
            }
        }
    }
    undertick_calibrate::calibration::workload(undertick_calibrate::calibration::PASSES, false);
}

/// Records the program above, in a process that recording may change freely. Returns threads and
/// rings of the trace, and its events.
fn record(with_children: bool) -> [u64; 3] {
    use std::sync::atomic::{AtomicU64, Ordering};
    use undertick_record::record::{Request, record};

    let memory = crate::linux::shared_memory::SharedMemory::new(4096).unwrap();
    let found = memory.place([const { AtomicU64::new(0) }; 3]);
    test_harness::processes(1, &[], |_| {
        let dir = tempfile::tempdir().unwrap();
        let program = std::env::current_exe().unwrap();
        let program = program.to_str().unwrap();
        let variable = format!("{WITH_CHILDREN}=1");
        let set = if with_children {
            variable.as_str()
        } else {
            "A=1"
        };
        let name = "linux::fork::tests::recorded";
        let command = [
            "env",
            set,
            program,
            "--exact",
            name,
            "--ignored",
            "--test-threads=1",
        ];
        let choice = undertick_clock::best();
        let clock = undertick_clock::Source::open(choice.clock).unwrap();
        let span = undertick_clock::rate::SHORTEST_SPAN;
        let manifest = record(
            Request {
                trace: dir.path().join("children.ut"),
                command: command.map(Into::into).to_vec(),
                settings: undertick_record::session::Settings {
                    overflow: undertick_record::Overflow::Grow,
                    ring_bytes: undertick_record::session::DEFAULT_RING_BYTES,
                    budget_bytes: None,
                    clock: choice.clock,
                    parent: None,
                    rates: Vec::new(),
                },
                choice,
                facts: undertick_clock::facts::gather(clock, span).unwrap(),
                calibration: None,
                names: Vec::new(),
                kernel: undertick_record::kernel::Wanted::Off,
                stacks: None,
                perturbation: None,
                triggers: None,
                functions: None,
                with: Vec::new(),
            },
            &mut |_| {},
        )
        .unwrap();
        let counts = [manifest.threads.len(), manifest.rings.len()].map(|count| count as u64);
        found[0].store(counts[0], Ordering::Relaxed);
        found[1].store(counts[1], Ordering::Relaxed);
        found[2].store(manifest.events, Ordering::Relaxed);
    });
    std::array::from_fn(|index| found[index].load(Ordering::Relaxed))
}

#[test]
fn children_of_a_recorded_process_write_no_event() {
    let without = record(false);
    assert!(without[2] > 10_000, "{without:?}: it has recorded nothing");
    assert_eq!(record(true), without, "threads, rings, events");
}
