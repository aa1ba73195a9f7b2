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
    assert_eq!(judged(&cpus(2, 8, 8)).0, CheckState::Works);
    assert!(judged(&cpus(1, 1, 8)).1.contains("taskset"));
    assert!(judged(&cpus(1, 4, 8)).1.contains("CPUQuota"));
    assert!(judged(&cpus(1, 1, 1)).1.contains("a machine with two"));
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
        judged(&narrow)
            .1
            .starts_with("undertick record --budget 64M"),
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
    assert!(
        judged(&open_files(Some(64), 2))
            .1
            .starts_with("ulimit -n 1024;")
    );
    assert!(
        judged(&open_files(Some(1024), 512))
            .1
            .starts_with("ulimit -n 2112;")
    );
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

fn events_from(name: &str, used: bool, why: &str) -> KernelSource {
    KernelSource {
        name: name.to_owned(),
        used,
        why: why.to_owned(),
        tells: Vec::new(),
        records: 0,
        lost: 0,
        clock: String::new(),
        error_ns: 0.0,
    }
}

#[test]
fn each_refusal_of_the_kernel_has_its_mend() {
    let refused = |name: &str, why: &str, rights: &PerfRights| {
        let check = source(&events_from(name, false, why), rights);
        assert!(check.found.contains(why));
        judged(&check).1.to_owned()
    };
    let plain = PerfRights::default();
    let paranoid = PerfRights {
        paranoid: Some(3),
        is_filtered: false,
    };
    let both = PerfRights {
        paranoid: Some(4),
        is_filtered: true,
    };
    let (setting, filter) = ("denied (os error 13)", "not permitted (os error 1)");
    assert!(refused("perf", setting, &paranoid).contains("perf_event_paranoid=2"));
    assert!(refused("perf", setting, &both).contains("perf_event_paranoid=2"));
    assert!(refused("perf", filter, &both).contains("seccomp"));
    assert!(refused("perf", filter, &plain).contains("CAP_PERFMON"));
    assert!(refused("perf", "too many open files", &both).contains("ulimit -n"));
    assert!(refused("perf", "no memory may be locked", &both).contains("mlock_kb"));
    assert!(refused("perf", "this kernel has no perf events", &plain).contains("CONFIG_PERF"));
    assert!(refused("tracefs", "in a container", &plain).contains("--pid=host"));
    assert!(refused("tracefs", "cannot be mounted: x", &plain).contains("mount -t tracefs"));
    assert_eq!(refused("tracefs", "not allowed", &plain), "record as root");
    assert!(refused("proc_stat", "no", &plain).contains("/proc/stat"));
}

#[test]
fn small_buffers_are_a_limit() {
    let plain = PerfRights::default();
    let check = |name: &str, why: &str| source(&events_from(name, true, why), &plain);
    assert_eq!(judged(&check("perf", "")).0, CheckState::Works);
    assert!(
        judged(&check("perf", "its buffers are small"))
            .1
            .contains("ulimit -l")
    );
    let lacks = check("tracefs", "this kernel has no page faults");
    assert!(judged(&lacks).0 == CheckState::Works && lacks.found.contains("no page faults"));
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
