use super::*;

#[test]
fn clocks_in_order_of_preference() {
    let all = "[local] global counter uptime perf mono mono_raw boot tai x86-tsc\n";
    let of = |trace, offered| ClockName::best(trace, offered).map(|c| (c.name, c.mapped));
    assert_eq!(of(ClockId::Tsc, all), Ok(("x86-tsc", false)));
    assert_eq!(of(ClockId::Monotonic, all), Ok(("mono", false)));
    assert_eq!(of(ClockId::MonotonicRaw, all), Ok(("mono_raw", false)));
    assert_eq!(of(ClockId::Cntvct, all), Ok(("mono_raw", true)));
    assert_eq!(of(ClockId::Tsc, "local [mono_raw]"), Ok(("mono_raw", true)));
    assert!(of(ClockId::Tsc, "[local] global").is_err());
}

#[test]
fn mounts_and_owners() {
    let mounts = "22 1 0:5 / /proc rw - proc proc rw\n40 22 0:12 / /sys/kernel/tracing rw,nosuid shared:9 - tracefs nodev rw\n";
    assert_eq!(mounted(mounts), Some("/sys/kernel/tracing".into()));
    assert_eq!(mounted("22 1 0:5 / /tracefs rw - proc proc rw\n"), None);
    assert_eq!(owner("undertick-12-345-0"), Some((12, 345)));
    assert_eq!(owner("undertick-12"), None);
    assert_eq!(owner("other-12-345-0"), None);
    assert!(started(std::process::id()).is_some());
    assert_eq!(started(u32::MAX), None);
}

#[test]
fn only_instances_of_the_dead_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let own = std::process::id();
    let alive = format!("{PREFIX}{own}-{}-0", started(own).unwrap());
    let before = format!("{PREFIX}{own}-1-0");
    for name in [
        &alive,
        &before,
        "undertick-4194999-7-0",
        "undertick-x",
        "other",
    ] {
        fs::create_dir(dir.path().join(name)).unwrap();
    }
    remove_stale(dir.path());
    let mut left: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort_unstable();
    let mut expected = vec!["other".to_owned(), "undertick-x".to_owned(), alive];
    expected.sort_unstable();
    assert_eq!(left, expected);
}
