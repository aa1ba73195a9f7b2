use super::*;
use std::sync::atomic::AtomicU64;

const BYTES: usize = 64 * 1024;

fn mapped(file: &std::fs::File) -> *mut u8 {
    crate::control_page::map(file, BYTES).unwrap()
}

fn word(base: *mut u8, at: usize) -> u64 {
    // SAFETY: within the mapping, aligned.
    unsafe { AtomicU64::from_ptr(base.add(at).cast()) }.load(Ordering::Relaxed)
}

/// Beyond the cut there are zeros, and before it the old content; another file and a later
/// mapping are not touched.
#[test]
fn what_is_cut_reads_as_zeros() {
    let files = [(); 2].map(|()| tempfile::tempfile().unwrap());
    for file in &files {
        std::os::unix::fs::FileExt::write_all_at(file, &[7; BYTES], 0).unwrap();
    }
    let bases = [mapped(&files[0]), mapped(&files[1])];
    // SAFETY: just mapped, unmapped below.
    let watched = bases.map(|base| unsafe { Watched::new(base, BYTES) });
    files[0].set_len(3 * 4096).unwrap();
    let sevens = u64::from_ne_bytes([7; 8]);
    assert_eq!(word(bases[0], 2 * 4096), sevens);
    assert!(!watched[0].is_cut());
    assert_eq!(word(bases[0], 9 * 4096), 0);
    assert!(watched[0].is_cut() && !watched[1].is_cut());
    assert_eq!(word(bases[0], 2 * 4096), sevens);
    assert_eq!(word(bases[0], 4 * 4096), 0);
    files[0].set_len(0).unwrap();
    assert_eq!(word(bases[0], 0), 0);
    assert_eq!(word(bases[0], BYTES - 8), 0);
    assert_eq!(word(bases[1], BYTES - 8), sevens);
    drop(watched);
    for base in bases {
        // SAFETY: mapped above, not used any more.
        unsafe { libc::munmap(base.cast(), BYTES) };
    }
    let again = mapped(&files[1]);
    // SAFETY: just mapped, for the rest of the process.
    let watched = unsafe { Watched::new(again, BYTES) };
    assert!(!watched.is_cut());
    assert_eq!(word(again, 0), sevens);
}

/// Not a test in itself: the program that the next test runs.
#[test]
fn a_fault_of_somebody_else() {
    if std::env::var_os("UNDERTICK_TEST_PROGRAM").is_none() {
        return;
    }
    let file = tempfile::tempfile().unwrap();
    file.set_len(BYTES as u64).unwrap();
    let base = mapped(&file);
    // SAFETY: the first half of what was just mapped.
    let _watched = unsafe { Watched::new(base, BYTES / 2) };
    file.set_len(0).unwrap();
    assert_eq!(word(base, 0), 0);
    word(base, BYTES / 2);
    std::process::exit(0);
}

#[test]
fn what_is_not_watched_ends_the_process_as_ever() {
    use std::os::unix::process::ExitStatusExt;
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["cut_files::tests::a_fault_of_somebody_else", "--exact"])
        .args(["--test-threads", "1"])
        .env("UNDERTICK_TEST_PROGRAM", "1")
        .output()
        .unwrap()
        .status;
    assert_eq!(status.signal(), Some(libc::SIGBUS), "{status:?}");
}
