use super::*;

/// The state, and the mend or nothing.
fn judged(check: &Check) -> (CheckState, &str) {
    assert_eq!(check.state == CheckState::Works, check.mend.is_none());
    assert_eq!(check.mend.is_some(), check.consequence.is_some());
    (check.state, check.mend.as_deref().unwrap_or_default())
}

#[test]
fn kernels_are_told_apart_by_their_numbers() {
    assert_eq!(judged(&kernel("6.18.44-fc-v669")).0, CheckState::Works);
    assert_eq!(judged(&kernel("5.14.0-70.el9")).0, CheckState::Works);
    assert!(judged(&kernel("5.10.0-28-amd64")).1.contains("5.14"));
    assert!(judged(&kernel("4.17.3")).1.contains("4.18"));
    assert!(judged(&kernel("2.6.78")).1.contains("uname-2.6"));
    assert_eq!(judged(&kernel("odd")).0, CheckState::Works);
}

#[test]
fn one_cpu_is_few() {
    assert_eq!(judged(&cpus(2, 8)).0, CheckState::Works);
    assert!(judged(&cpus(1, 8)).1.contains("taskset"));
    assert!(judged(&cpus(1, 1)).1.contains("a machine with two"));
}

#[test]
fn a_group_needs_room_for_the_rings() {
    let limit = |most_bytes, used_bytes| {
        Some(MemoryLimit {
            most_bytes,
            used_bytes,
        })
    };
    assert_eq!(judged(&memory(None, 1 << 30)).0, CheckState::Works);
    assert_eq!(
        judged(&memory(limit(4 << 30, 1 << 30), 1 << 30)).0,
        CheckState::Works
    );
    let narrow = memory(limit(512 << 20, 256 << 20), 1 << 30);
    assert!(
        judged(&narrow).1.starts_with("record --budget 64M"),
        "{narrow:?}"
    );
    assert!(narrow.found.contains("512.0 MiB") && narrow.found.contains("256.0 MiB"));
    assert!(
        judged(&memory(limit(1 << 20, 2 << 20), 1 << 30))
            .1
            .contains("--budget 1M")
    );
}

#[test]
fn files_are_needed_for_each_cpu() {
    assert_eq!(judged(&open_files(Some(1024), 2)).0, CheckState::Works);
    assert_eq!(judged(&open_files(None, 2)).0, CheckState::Works);
    assert_eq!(judged(&open_files(Some(64), 2)).1, "ulimit -n 1024");
    assert_eq!(judged(&open_files(Some(1024), 512)).1, "ulimit -n 2112");
}

#[test]
fn a_flag_that_was_switched_off_is_switched_on_again() {
    let off = descheduled(Descheduled::Unavailable, Some("glibc.pthread.rseq=0"));
    assert!(judged(&off).1.starts_with("remove glibc.pthread.rseq=0"));
    let missing = descheduled(Descheduled::Unavailable, None);
    assert!(judged(&missing).1.contains("glibc 2.35"));
    assert_eq!(
        judged(&descheduled(Descheduled::PreemptionOnly, None)).0,
        CheckState::Works
    );
}

#[test]
fn each_refusal_of_the_kernel_has_its_mend() {
    let refused = |name: &str, why: &str, rights: &Rights| {
        let source_of_events = KernelSource {
            name: name.to_owned(),
            used: false,
            why: why.to_owned(),
            tells: Vec::new(),
            records: 0,
            lost: 0,
            clock: String::new(),
            error_ns: 0.0,
        };
        let check = source(&source_of_events, rights);
        assert!(check.found.contains(why));
        judged(&check).1.to_owned()
    };
    let plain = Rights::default();
    let paranoid = Rights {
        paranoid: Some(3),
        ..Rights::default()
    };
    let filtered = Rights {
        is_filtered: true,
        ..paranoid.clone()
    };
    assert!(refused("perf", "no", &paranoid).contains("perf_event_paranoid=2"));
    assert!(refused("perf", "no", &filtered).contains("seccomp"));
    assert!(refused("perf", "no", &plain).contains("CAP_PERFMON"));
    let contained = Rights {
        has_own_numbers: true,
        ..Rights::default()
    };
    assert!(refused("tracefs", "no", &contained).contains("--pid=host"));
    assert!(refused("tracefs", "tracefs is not mounted", &plain).contains("mount -t tracefs"));
    assert!(refused("tracefs", "not allowed", &plain).contains("chgrp"));
    assert!(refused("proc_stat", "no", &plain).contains("/proc/stat"));
}

#[test]
fn a_calibration_that_cannot_be_kept_says_where() {
    let there = calibration(Some(("/home/a/.cache/undertick".into(), Ok(()))));
    assert_eq!(judged(&there).0, CheckState::Works);
    let denied = io::Error::from(io::ErrorKind::PermissionDenied);
    let closed = calibration(Some(("/home/a/.cache/undertick".into(), Err(denied))));
    assert!(
        closed.found.contains("/home/a/.cache") && judged(&closed).1.contains("XDG_CACHE_HOME")
    );
    assert!(judged(&calibration(None)).1.contains("XDG_CACHE_HOME"));
}

#[test]
fn a_clock_that_cannot_be_read_fails() {
    let (state, mend) = {
        let check = clock(Err("clock tsc cannot be used"));
        (check.state, check.mend.unwrap())
    };
    assert!(state == Fails && mend.contains("UNDERTICK_CLOCK"));
}

#[test]
fn sizes_have_one_digit_after_the_point() {
    assert_eq!(bytes(1 << 30), "1.0 GiB");
    assert_eq!(bytes(1536 << 10), "1.5 MiB");
    assert_eq!(bytes(12), "12 bytes");
}
