//! Signal handlers that record: in threads that end, and with a jump out of them. No event is lost
//! uncounted, and no thread stops recording.

mod common;

use std::ffi::{CString, c_int};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

use common::{AS_PROGRAM, Row, alone, as_rust_program, program, record_for_c, rows, run, settings};
use undertick_format::manifest::Manifest;
use undertick_format::schema::Kind;
use undertick_record::Overflow;

/// Runs of each program; `UNDERTICK_TEST_RUNS` sets more.
const RUNS: usize = 3;
const THREADS: u64 = 2000;
const JUMPS: u64 = 2000;
/// Number of events after the last jump.
const LAST: u64 = 30_000;

fn runs() -> usize {
    std::env::var("UNDERTICK_TEST_RUNS").map_or(RUNS, |runs| runs.parse().unwrap())
}

/// Returns manifest, rows and the numbers that the program reported.
fn recorded(dir: &Path, command: &[String], said: &Path) -> (Manifest, Vec<Row>, Vec<u64>) {
    let trace = dir.join("t.ut");
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let ended = run(&trace, &command, settings(Overflow::Grow, 1 << 18, None)).unwrap();
    assert_eq!(ended.exit.unwrap().status, Some(0), "{:?}", ended.warnings);
    let (manifest, rows) = rows(&trace);
    let said = std::fs::read_to_string(said).unwrap();
    let numbers = said.split_whitespace().map(|n| n.parse().unwrap());
    (manifest, rows, numbers.collect())
}

fn events(rows: &[Row]) -> impl Iterator<Item = &Row> {
    rows.iter()
        .filter(|row| row.kind != Kind::Gap as i8 && row.event != 4)
}

fn ends(is_sampled: bool, command: impl Fn(&Path) -> Vec<String>) {
    for _ in 0..runs() {
        let dir = tempfile::tempdir().unwrap();
        let said = dir.path().join("said");
        let (manifest, rows, numbers) = recorded(dir.path(), &command(&said), &said);
        let received = events(&rows).count() as u64;
        let sum = received + manifest.lost;
        // Without a ring it is not known whether a sampled span was to be recorded.
        assert!(
            sum == numbers[0] || (is_sampled && sum > numbers[0]),
            "{received} and {} of {}: {:?}",
            manifest.lost,
            numbers[0],
            manifest.warnings
        );
        assert!(received >= 20 * THREADS, "{received}");
        println!("{received} received, {} lost", manifest.lost);
    }
}

fn c_ends(is_sampled: bool) {
    let _alone = alone();
    let binary = program("ends.c", &[]);
    ends(is_sampled, |said| {
        let (binary, said) = (binary.to_str().unwrap(), said.to_str().unwrap());
        let threads = THREADS.to_string();
        let mut words = vec![binary, said, &threads];
        words.extend(is_sampled.then_some("sampled"));
        words.into_iter().map(str::to_owned).collect()
    });
}

#[test]
fn threads_end_under_a_handler_that_records() {
    c_ends(false);
}

#[test]
fn threads_end_under_a_handler_with_sampled_spans() {
    c_ends(true);
}

#[test]
fn rust_threads_end_under_a_handler_that_records() {
    let _alone = alone();
    ends(false, |said| {
        as_rust_program(&format!("ends {} 0", said.display()))
    });
}

#[test]
fn rust_threads_end_under_a_handler_with_sampled_spans() {
    let _alone = alone();
    ends(true, |said| {
        as_rust_program(&format!("ends {} 1", said.display()))
    });
}

/// The event that a jump interrupted may have been recorded, counted as lost, or not begun; all
/// others are exact.
fn jumps(command: impl Fn(&Path, bool) -> Vec<String>) {
    for round in 0..2 * runs().div_ceil(RUNS) {
        let on_signal_stack = round % 2 == 1;
        let dir = tempfile::tempdir().unwrap();
        let said = dir.path().join("said");
        let (manifest, rows, numbers) =
            recorded(dir.path(), &command(&said, on_signal_stack), &said);
        let [begun, jumps] = numbers[..] else {
            panic!("{numbers:?}")
        };
        let of = |event| -> Vec<i64> {
            let mut all: Vec<i64> = (events(&rows).filter(|row| row.event == event))
                .map(|row| row.payload)
                .collect();
            all.sort_unstable();
            all
        };
        let (counted, handled, last) = (of(1), of(2), of(3));
        assert_eq!(jumps, JUMPS);
        assert_eq!(last, (0..LAST as i64).collect::<Vec<i64>>());
        assert!(
            counted.windows(2).all(|two| two[0] < two[1]),
            "an event twice"
        );
        let all = (counted.len() + handled.len()) as u64 + manifest.lost;
        let most = begun + jumps;
        assert!(
            (most - jumps..=most).contains(&all),
            "{} + {} received, {} lost, of {most}",
            counted.len(),
            handled.len(),
            manifest.lost
        );
        // Handlers record in a ring without another writer; at most the interrupted events are
        // lost.
        assert_eq!(handled.len() as u64, jumps);
        assert!(manifest.lost <= jumps, "{}", manifest.lost);
        println!(
            "{} rings, {} lost, {jumps} jumps",
            manifest.rings.len(),
            manifest.lost
        );
    }
}

#[test]
fn a_handler_that_jumps_out_of_a_point() {
    let _alone = alone();
    let binary = program("jumps.c", &[]);
    jumps(|said, on_signal_stack| {
        let stack = if on_signal_stack { "1" } else { "0" };
        let (jumps, last) = (JUMPS.to_string(), LAST.to_string());
        [
            binary.to_str().unwrap(),
            said.to_str().unwrap(),
            &jumps,
            stack,
            &last,
        ]
        .map(str::to_owned)
        .to_vec()
    });
}

#[test]
fn a_handler_that_jumps_out_of_a_point_of_a_rust_program() {
    let _alone = alone();
    let library = program("jumps.c", &["-shared", "-fPIC", "-DAS_LIBRARY"]);
    jumps(|said, on_signal_stack| {
        let what = format!(
            "jumps {} {} {}",
            said.display(),
            library.display(),
            u8::from(on_signal_stack)
        );
        as_rust_program(&what)
    });
}

/// The program that this file also is.
#[test]
fn rust_program() {
    let Ok(what) = std::env::var(AS_PROGRAM) else {
        return;
    };
    let words: Vec<&str> = what.split(' ').collect();
    match words[..] {
        ["ends", said, sampled] => threads_end(Path::new(said), sampled == "1"),
        ["jumps", said, library, stack] => jump_out(said, Path::new(library), stack == "1"),
        _ => panic!("{what}"),
    }
}

static ATTEMPTS: AtomicU64 = AtomicU64::new(0);
static TIDS: [AtomicI32; 4] = [const { AtomicI32::new(0) }; 4];
static DONE: AtomicBool = AtomicBool::new(false);
static IS_SAMPLED: AtomicBool = AtomicBool::new(false);
static LATE: AtomicU64 = AtomicU64::new(0);

fn record(event: u16) {
    ATTEMPTS.fetch_add(1, Ordering::Relaxed);
    undertick::event(event, 0);
}

extern "C" fn on_signal(_: c_int) {
    record(2);
    if IS_SAMPLED.load(Ordering::Relaxed) {
        undertick::begin_sampled(4);
        undertick::end_sampled(4);
    }
}

/// Called as often as destructors can be.
unsafe extern "C" fn at_end(value: *mut libc::c_void) {
    record(3);
    // SAFETY: the key was made before any thread.
    unsafe { libc::pthread_setspecific(LATE.load(Ordering::Relaxed) as u32, value) };
}

/// As programs/ends.c does.
fn threads_end(said: &Path, is_sampled: bool) {
    IS_SAMPLED.store(is_sampled, Ordering::Relaxed);
    let mut key = 0;
    // SAFETY: a handler that calls nothing but the recorder; a key with a destructor.
    unsafe {
        libc::pthread_key_create(&raw mut key, Some(at_end));
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as extern "C" fn(c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut());
    }
    LATE.store(u64::from(key), Ordering::Relaxed);
    let sender = std::thread::spawn(|| {
        while !DONE.load(Ordering::Relaxed) {
            for tid in &TIDS {
                let tid = tid.load(Ordering::Relaxed);
                if tid != 0 {
                    // SAFETY: a signal to a thread of our own, or to none.
                    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, libc::SIGUSR1) };
                }
            }
            std::thread::sleep(std::time::Duration::from_micros(50));
        }
    });
    for _ in 0..THREADS / 4 {
        let threads = TIDS.each_ref().map(|slot| {
            std::thread::spawn(move || {
                // SAFETY: only return numbers; the value is not used.
                unsafe {
                    slot.store(libc::gettid(), Ordering::Relaxed);
                    libc::pthread_setspecific(
                        LATE.load(Ordering::Relaxed) as u32,
                        (&raw const TIDS).cast(),
                    );
                }
                (0..20).for_each(|_| record(1));
                if IS_SAMPLED.load(Ordering::Relaxed) {
                    undertick::begin_sampled(4);
                    undertick::end_sampled(4);
                }
            })
        });
        for (thread, slot) in threads.into_iter().zip(&TIDS) {
            thread.join().unwrap();
            slot.store(0, Ordering::Relaxed);
        }
    }
    DONE.store(true, Ordering::Relaxed);
    sender.join().unwrap();
    std::fs::write(said, ATTEMPTS.load(Ordering::Relaxed).to_string()).unwrap();
}

type JumpOut = unsafe extern "C" fn(
    extern "C" fn(u16, u32),
    u32,
    c_int,
    u32,
    *const std::ffi::c_char,
) -> c_int;

/// Has programs/jumps.c jump over frames of this language, which have nothing to drop.
fn jump_out(said: &str, library: &Path, on_signal_stack: bool) {
    let said = CString::new(said).unwrap();
    // SAFETY: the function has this type.
    let result = unsafe {
        let function = common::function_of(library, c"jump_out");
        let function: JumpOut = std::mem::transmute(function);
        function(
            record_for_c,
            JUMPS as u32,
            c_int::from(on_signal_stack),
            LAST as u32,
            said.as_ptr(),
        )
    };
    assert_eq!(result, 0);
}
