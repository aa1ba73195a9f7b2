use std::fs;

use super::*;
use crate::linux::test_harness;
use crate::script::Words;

/// Five pages and a bit.
const BYTES: u64 = 5 * 4096 + 100;

/// Whether each page is in memory, as the kernel reports; `None`: not mapped.
fn resident(begin: *mut u8, pages: usize) -> Option<Vec<bool>> {
    let mut found = vec![0_u8; pages];
    // SAFETY: the kernel fills as many bytes as there are pages.
    let got = unsafe { libc::mincore(begin.cast(), pages * 4096, found.as_mut_ptr()) };
    (got == 0).then(|| found.iter().map(|byte| byte & 1 == 1).collect())
}

/// Files that this process has in /dev/shm.
fn in_dev_shm(pid: u32) -> usize {
    let name = format!("undertick-{pid}-");
    fs::read_dir("/dev/shm")
        .unwrap()
        .filter(|entry| {
            let entry = entry.as_ref().unwrap().file_name();
            entry.to_string_lossy().starts_with(&name)
        })
        .count()
}

/// System V segments that a process has made: for each, whether it is removed automatically.
fn system_v_of(pid: u32) -> Vec<bool> {
    let text = fs::read_to_string("/proc/sysvipc/shm").unwrap();
    let rows = text.lines().skip(1).map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        // key, shmid, perms, size, cpid
        (fields[2].to_owned(), fields[4].to_owned())
    });
    rows.filter(|(_, creator)| *creator == pid.to_string())
        .map(|(perms, _)| i64::from_str_radix(&perms, 8).unwrap() & 0o1000 != 0)
        .collect()
}

/// Lines of smaps about the mapping that contains an address.
fn smaps(begin: *mut u8) -> Vec<String> {
    let text = fs::read_to_string("/proc/self/smaps").unwrap();
    let mut lines = text.lines().skip_while(|line| {
        let range = line.split(' ').next().unwrap();
        let Some((from, to)) = range.split_once('-') else {
            return true;
        };
        let hex = |text| usize::from_str_radix(text, 16);
        let (Ok(from), Ok(to)) = (hex(from), hex(to)) else {
            return true;
        };
        !(from..to).contains(&begin.addr())
    });
    let first = lines.next().map(str::to_owned);
    let rest = lines.take_while(|line| line.split(' ').next().unwrap().ends_with(':'));
    first.into_iter().chain(rest.map(str::to_owned)).collect()
}

fn field(smaps: &[String], name: &str) -> String {
    let found = smaps.iter().find_map(|line| line.strip_prefix(name));
    found.unwrap_or_default().trim().to_owned()
}

#[test]
fn every_kind_is_made_untouched_touched_and_given_back() {
    for (word, kind) in RegionKind::WORDS {
        test_harness::processes(1, &[], |_| {
            let region = Region::new("R", BYTES, *kind, Pages::Default).unwrap();
            let (mut create, mut touch) = (region.create(), region.touch());
            let mut free = region.free();
            for _ in 0..3 {
                create();
                let begin = region.0.mapped.get().unwrap().begin();
                let static_again = *kind == RegionKind::Static;
                if !static_again {
                    assert_eq!(
                        resident(begin, 6),
                        Some(vec![false; 6]),
                        "{word}: untouched"
                    );
                }
                touch();
                assert_eq!(resident(begin, 6), Some(vec![true; 6]), "{word}: touched");
                assert_eq!(in_dev_shm(std::process::id()), 0, "{word}");
                let segments = system_v_of(std::process::id());
                assert!(segments.iter().all(|goes| *goes), "{word}: {segments:?}");
                assert_eq!(segments.len(), usize::from(*kind == RegionKind::SysV));
                free();
                if static_again {
                    assert_eq!(resident(begin, 6), Some(vec![true; 6]), "it stays");
                } else {
                    assert_eq!(resident(begin, 6), None, "{word}: still mapped");
                }
                assert_eq!(system_v_of(std::process::id()).len(), 0, "{word}");
            }
            // The name disappears with the file; no descriptor is left either.
            let open = fs::read_dir("/proc/self/fd").unwrap().count();
            region.create()();
            assert_eq!(
                fs::read_dir("/proc/self/fd").unwrap().count(),
                open,
                "{word}"
            );
        });
    }
}

#[test]
fn filling_writes_all_words_to_the_end() {
    for (word, kind) in RegionKind::WORDS {
        test_harness::processes(1, &[], |_| {
            let region = Region::new("R", BYTES, *kind, Pages::Default).unwrap();
            region.create()();
            region.fill()();
            let begin = region.0.mapped.get().unwrap().begin().cast::<u64>();
            // 20580 bytes are 2572 words and a half.
            for index in 0..2573 {
                // SAFETY: inside the region.
                assert_eq!(unsafe { begin.add(index).read() }, index as u64, "{word}");
            }
            // SAFETY: the rest of its last page.
            assert_eq!(unsafe { begin.add(2573).read() }, 0, "{word}: too far");
        });
    }
}

#[test]
fn nothing_is_left_of_a_process_that_is_killed() {
    for kind in [RegionKind::Shm, RegionKind::SysV] {
        let memory = crate::linux::shared_memory::SharedMemory::new(4096).unwrap();
        let pid = memory.place(std::sync::atomic::AtomicU32::new(0));
        let ended = test_harness::wait_statuses(1, &[], |_| {
            let region = Region::new("R", BYTES, kind, Pages::Default).unwrap();
            region.create()();
            region.touch()();
            pid.store(std::process::id(), std::sync::atomic::Ordering::Relaxed);
            // SAFETY: no pointers.
            unsafe { libc::raise(libc::SIGKILL) };
        });
        assert_eq!(ended, [libc::SIGKILL]);
        let pid = pid.load(std::sync::atomic::Ordering::Relaxed);
        assert_ne!(pid, 0);
        assert_eq!(in_dev_shm(pid), 0);
        assert_eq!(system_v_of(pid).len(), 0);
    }
}

#[test]
fn dropping_a_region_gives_it_back() {
    for (word, kind) in RegionKind::WORDS {
        test_harness::processes(1, &[], |_| {
            let region = Region::new("R", BYTES, *kind, Pages::Default).unwrap();
            region.create()();
            let begin = region.0.mapped.get().unwrap().begin();
            drop(region);
            assert_eq!(resident(begin, 6), None, "{word}");
        });
    }
}

#[test]
fn small_pages_are_asked_for() {
    for (word, kind) in RegionKind::WORDS {
        test_harness::processes(1, &[], |_| {
            let region = Region::new("R", 8 << 20, *kind, Pages::Small).unwrap();
            region.create()();
            region.touch()();
            let begin = region.0.mapped.get().unwrap().begin();
            let found = smaps(begin);
            let flags = field(&found, "VmFlags:");
            if fs::exists("/sys/kernel/mm/transparent_hugepage").unwrap() {
                assert!(
                    flags.split(' ').any(|flag| flag == "nh"),
                    "{word}: {found:?}"
                );
            }
        });
    }
}

#[test]
fn huge_pages_are_had_or_refused() {
    for (word, kind) in RegionKind::WORDS {
        test_harness::processes(1, &[], |_| {
            let region = match Region::new("R", 8 << 20, *kind, Pages::Huge) {
                Ok(region) => region,
                Err(why) => {
                    let why = why.to_string();
                    assert!(why.contains("huge pages") && why.contains("\"R\""), "{why}");
                    println!("skipped: huge pages for {word}: {why}");
                    return;
                }
            };
            let (mut create, mut free) = (region.create(), region.free());
            create();
            region.touch()();
            let begin = region.0.mapped.get().unwrap().begin();
            assert_eq!(begin.addr() % (2 << 20), 0, "{word}");
            let found = smaps(begin);
            // All of it is in one mapping of four huge pages.
            assert_eq!(field(&found, "Size:"), "8192 kB", "{word}: {found:?}");
            let private = field(&found, "AnonHugePages:");
            let shared = field(&found, "ShmemPmdMapped:");
            assert!(
                [private, shared].contains(&"8192 kB".to_owned()),
                "{word}: {found:?}"
            );
            if *kind != RegionKind::Static {
                free();
                assert!(smaps(begin).is_empty(), "{word}: still mapped");
                create();
                free();
            }
        });
    }
}

#[test]
fn steps_out_of_order_are_told() {
    let ends = |steps: fn(&Region)| {
        test_harness::wait_statuses(1, &[], |_| {
            steps(&Region::new("R", BYTES, RegionKind::Private, Pages::Default).unwrap());
        })
    };
    let cases: [fn(&Region); 4] = [
        |region| region.touch()(),
        |region| region.fill()(),
        |region| region.free()(),
        |region| {
            region.create()();
            region.create()();
        },
    ];
    // Each has exit status 1.
    assert!(cases.into_iter().all(|steps| ends(steps) == [0x100]));
}

#[test]
fn a_region_that_does_not_fit_into_dev_shm_says_so() {
    // More than any machine has, and refused before anything is touched.
    let why = Region::new("wide", 1 << 60, RegionKind::Shm, Pages::Default).unwrap_err();
    assert!(
        why.to_string().starts_with("region \"wide\": needs"),
        "{why}"
    );
}
