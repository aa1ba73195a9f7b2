use super::*;

#[test]
fn a_clock_is_itself_and_no_other() {
    let raw = ClockIdentity::here(ClockId::MonotonicRaw);
    assert_eq!(raw.clock, "monotonic_raw");
    assert_eq!(raw, ClockIdentity::here(ClockId::MonotonicRaw));
    let other = ClockIdentity::here(ClockId::Monotonic);
    assert!(!raw.is_same(&other));
    assert!(other.is_steered() && !raw.is_steered());
    assert_eq!(ClockIdentity::here(ClockId::Tsc).time_namespace, None);
    let unknown = ClockIdentity {
        boot_id: None,
        ..raw.clone()
    };
    assert!(!unknown.is_same(&unknown.clone()), "nobody knows");
    let shifted = ClockIdentity {
        time_namespace: Some("monotonic 5 0 boottime 0 0".to_owned()),
        ..raw.clone()
    };
    assert!(!raw.is_same(&shifted));
    if std::path::Path::new("/proc/self/ns/time").exists() {
        let namespace = raw.time_namespace.as_deref().unwrap();
        assert!(
            namespace.starts_with("monotonic ") || namespace.starts_with("time:["),
            "{namespace}"
        );
    } else {
        println!("skipped: this kernel has no time namespaces");
    }
}
