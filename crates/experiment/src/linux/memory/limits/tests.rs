use super::*;

#[test]
fn a_region_larger_than_the_machine_is_refused() {
    let why = check(1 << 60, RegionKind::Private, Pages::Default).unwrap_err();
    assert!(why.to_string().contains("make it smaller"), "{why}");
}

#[test]
fn huge_pages_are_refused_where_the_kernel_would_give_small_ones() {
    use RegionKind::{Memfd, Private, Shm, Static};
    // kind, enabled, shmem_enabled, the mount's word, whether they are available.
    let cases = [
        (Private, "madvise", "never", "", true),
        (Private, "always", "never", "", true),
        (Private, "never", "always", "", false),
        (Static, "never", "always", "", false),
        (Memfd, "always", "never", "", false),
        (Memfd, "always", "deny", "", false),
        (Memfd, "never", "advise", "", true),
        (Memfd, "never", "force", "", true),
        (Shm, "never", "never", "advise", true),
        (Shm, "never", "always", "", false),
        (Shm, "never", "always", "never", false),
        (Shm, "never", "deny", "always", false),
        (Shm, "never", "force", "", true),
        (Private, "", "", "", false),
    ];
    for (kind, private, shared, shm, may) in cases {
        let found = check_huge(kind, private, shared, shm);
        assert_eq!(found.is_ok(), may, "{kind:?} {private} {shared} {shm}");
        if let Err(why) = found {
            let why = why.to_string();
            assert!(why.contains("as root: ") || private.is_empty(), "{why}");
        }
    }
}
