//! Evidence of the kernel against what the program knows of itself.

mod common;

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use common::{Row, alone, program, request, rows, settings};
use undertick_trace::Overflow;
use undertick_trace::kernel::Wanted;
use undertick_trace::manifest::{Kernel, KernelSource, Manifest};
use undertick_trace::record::record;
use undertick_trace::schema::{Kind, OWN_VECTOR};

const OUTER: i32 = 1;
const INNER: i32 = 2;
const STEP: i32 = 3;

/// A line of the program: its word, thread and numbers.
#[derive(Debug)]
struct Said {
    word: String,
    tid: i32,
    numbers: Vec<i64>,
}

struct Recorded {
    manifest: Manifest,
    rows: Vec<Row>,
    said: Vec<Said>,
}

impl Recorded {
    fn said(&self, word: &str) -> &Said {
        (self.said.iter().find(|said| said.word == word))
            .unwrap_or_else(|| panic!("the program did not say {word}: {:?}", self.said))
    }

    fn kernel(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.mode == 1)
    }

    /// Time of a thread's user event with that payload.
    fn stamp(&self, tid: i32, event: i32, payload: i64) -> i64 {
        let found = self.rows.iter().find(|row| {
            row.mode == 0 && (row.tid, row.event, row.payload) == (tid, event, payload)
        });
        found
            .unwrap_or_else(|| panic!("no stamp {event} {payload} of {tid}"))
            .ts
    }

    /// Rows of a thread between its stamps `event` 0 and 1.
    fn between(&self, tid: i32, event: i32) -> Vec<&Row> {
        let (from, to) = (self.stamp(tid, event, 0), self.stamp(tid, event, 1));
        (self.kernel())
            .filter(|row| row.tid == tid && from < row.ts && row.ts < to)
            .collect()
    }

    /// Switches out between the stamps: all, and those that were no preemption.
    fn switches(&self, tid: i32, event: i32) -> (i64, i64) {
        let out: Vec<_> = (self.between(tid, event).into_iter())
            .filter(|row| row.kind == Kind::SwitchOut as i8)
            .collect();
        let waits = out.iter().filter(|row| row.payload == 0).count();
        (out.len() as i64, waits as i64)
    }
}

fn recorded(words: &[&str], wanted: Wanted) -> Recorded {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("k.ut");
    let said = dir.path().join("said");
    let binary = program("kernel.c", &[]);
    // The shell only redirects: the program takes its place.
    let mut command = vec![
        "sh",
        "-c",
        "out=$1; shift; exec \"$@\" >>\"$out\"",
        "sh",
        said.to_str().unwrap(),
        binary.to_str().unwrap(),
    ];
    command.extend(words);
    let mut request = request(&trace, &command, settings(Overflow::Grow, 1 << 20, None));
    request.kernel = wanted;
    record(request, |_| {}).unwrap();
    read(&trace, &said)
}

fn read(trace: &Path, said: &Path) -> Recorded {
    let said = (fs::read_to_string(said).unwrap().lines())
        .map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            Said {
                word: words[0].to_owned(),
                tid: words[1].parse().unwrap(),
                numbers: words[2..].iter().map(|n| n.parse().unwrap()).collect(),
            }
        })
        .collect();
    let (manifest, rows) = rows(trace);
    Recorded {
        manifest,
        rows,
        said,
    }
}

/// Whether a source of switches runs here; says so if none does.
fn has_switches(recorded: &Recorded) -> bool {
    let kernel = recorded.manifest.kernel.as_ref().unwrap();
    let has = (kernel.sources.iter()).any(|s| s.used && s.tells.iter().any(|t| t == "switch_out"));
    if !has {
        println!("skipped: no source of context switches here: {kernel:?}");
    }
    has
}

/// The kernel's account of a thread's switches lies between what the rows say of
/// the inner and of the outer stretch.
fn assert_accounted(recorded: &Recorded, word: &str) {
    let said = recorded.said(word);
    let (waits, others) = (said.numbers[0], said.numbers[1]);
    let inner = recorded.switches(said.tid, INNER);
    let outer = recorded.switches(said.tid, OUTER);
    assert!(
        inner.0 <= waits + others && waits + others <= outer.0,
        "{word}: {inner:?} {outer:?} {said:?}"
    );
    assert!(
        inner.1 <= waits && waits <= outer.1,
        "{word}: {inner:?} {outer:?} {said:?}"
    );
}

fn assert_sound(recorded: &Recorded) {
    let manifest = &recorded.manifest;
    let kernel = manifest.kernel.as_ref().unwrap();
    let rows: Vec<&Row> = recorded.kernel().collect();
    assert_eq!(rows.len() as u64, kernel.rows);
    assert_eq!((kernel.lost, kernel.losses_not_counted), (0, 0));
    assert!(rows.windows(2).all(|two| two[0].ts <= two[1].ts));
    assert!(rows.iter().all(|row| row.ring == -1));
    // All of them before the user's.
    assert!(recorded.rows[..rows.len()].iter().all(|row| row.mode == 1));
    assert_eq!(manifest.events as usize, recorded.rows.len() - rows.len());
    let balance = kernel.balance.unwrap();
    assert_eq!(
        (balance.missing_in, balance.missing_out),
        (0, 0),
        "{balance:?}"
    );
    // The recorder's own threads are not in it.
    let own = std::process::id() as i32;
    assert!(rows.iter().all(|row| row.pid != own));
}

fn switches_waits_and_preemptions(wanted: Wanted) -> Option<Recorded> {
    let recorded = recorded(&["sleep", "hog", "ping", "child"], wanted);
    if !has_switches(&recorded) {
        return None;
    }
    assert_sound(&recorded);
    for word in ["sleeper", "hogged", "pinger", "pinged", "child"] {
        assert_accounted(&recorded, word);
    }
    // The truth is not empty.
    assert!(recorded.said("sleeper").numbers[0] >= 200);
    assert!(recorded.said("child").numbers[0] >= 50);
    assert!(recorded.said("hogged").numbers[1] >= 10);
    let hogged = recorded.switches(recorded.said("hogged").tid, INNER);
    assert!(hogged.0 - hogged.1 >= 10, "{hogged:?}");
    // Threads belong to their process, the child to none but its own.
    let main = recorded.said("main").tid;
    let process = |word| {
        let tid = recorded.said(word).tid;
        let row = recorded.kernel().find(|row| row.tid == tid).unwrap();
        row.pid
    };
    assert_eq!(process("sleeper"), main);
    assert_eq!(process("child"), recorded.said("child").tid);
    Some(recorded)
}

#[test]
fn switches_are_those_of_the_kernels_own_account() {
    let _alone = alone();
    switches_waits_and_preemptions(Wanted::Auto);
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

/// What the manifest states as the bound on the rows' times.
fn error_ticks(manifest: &Manifest) -> i64 {
    let error_ns = manifest.kernel.as_ref().unwrap().error_ns;
    assert!(error_ns < 100_000.0, "{error_ns}");
    (error_ns / manifest.clock.ns_per_tick()).ceil() as i64
}

/// A thread off its CPU writes no event: no user event lies between a switch out
/// and the next switch in, by more than the bound.
#[test]
fn nothing_is_recorded_while_a_thread_is_off_its_cpu() {
    let _alone = alone();
    let recorded = recorded(&["ping", "move", "sleep"], Wanted::Auto);
    if !has_switches(&recorded) {
        return;
    }
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
fn off_records_none() {
    let _alone = alone();
    let recorded = recorded(&["sleep"], Wanted::Off);
    assert_eq!(recorded.kernel().count(), 0);
    assert!(recorded.manifest.kernel.is_none());
    assert_eq!(recorded.manifest.parts.len(), 1);
}

/// Not a test by itself: records as whoever runs it.
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
    record(request, |_| {}).unwrap();
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
    fs::copy(program("kernel.c", &[]), path.join("program")).unwrap();
    // The test program itself may lie where nobody else may look.
    let own = path.join("test");
    fs::copy(std::env::current_exe().unwrap(), &own).unwrap();
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

/// The source of that name, where it ran.
fn source<'a>(kernel: &'a Kernel, name: &str) -> Option<&'a KernelSource> {
    let source = kernel.sources.iter().find(|source| source.name == name)?;
    if !source.used {
        println!("skipped: {name}: {}", source.why);
    }
    source.used.then_some(source)
}

/// Keeps all CPUs from being idle, at the lowest priority, until dropped.
struct Busy(Arc<AtomicBool>, Vec<JoinHandle<()>>);

impl Busy {
    fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let cpus = std::thread::available_parallelism().unwrap().get();
        let spin = |_| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                let lowest = libc::sched_param { sched_priority: 0 };
                // SAFETY: the parameter is initialised; 0 is the calling thread.
                unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const lowest) };
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        let threads = (0..2 * cpus).map(spin).collect();
        Self(stop, threads)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

/// perf and tracefs tell the same switches, with their causes.
#[test]
fn two_sources_agree() {
    let _alone = alone();
    let busy = Busy::start();
    let recorded = recorded(&["sleep", "hog", "move", "ping", "child"], Wanted::Auto);
    drop(busy);
    let kernel = recorded.manifest.kernel.as_ref().unwrap();
    let (Some(tracefs), Some(perf)) = (source(kernel, "tracefs"), source(kernel, "perf")) else {
        return;
    };
    assert!(tracefs.records > 0 && perf.records > 0);
    let found = kernel.comparison.as_ref().unwrap();
    assert!(found.first > 2000 && found.second > 2000, "{found:?}");
    let least = found.first.max(found.second) as f64 * 0.999;
    assert!(found.both as f64 >= least, "{found:?}");
    assert!(
        found.causes_differ as f64 <= 0.001 * found.both as f64,
        "{found:?}"
    );
}

/// Where a CPU is idle some kernels lose switches onto it in their trace buffers:
/// perf tells them, so none is missing.
#[test]
fn what_one_source_lacks_the_other_tells() {
    let _alone = alone();
    let recorded = recorded(&["sleep", "ping", "sleep"], Wanted::Auto);
    let kernel = recorded.manifest.kernel.as_ref().unwrap();
    let (Some(_), Some(_)) = (source(kernel, "tracefs"), source(kernel, "perf")) else {
        return;
    };
    assert_sound(&recorded);
    let found = kernel.comparison.as_ref().unwrap();
    println!("{found:?}");
    assert!(found.both as f64 >= found.first as f64 * 0.999, "{found:?}");
    let others = found.added - found.added_in;
    assert!(others as f64 <= 0.001 * found.second as f64, "{found:?}");
}

/// Page faults, timer interrupts and wakes, where tracefs tells them.
#[test]
fn faults_interrupts_and_wakes() {
    let _alone = alone();
    let recorded = recorded(&["fault", "hog", "ping"], Wanted::Auto);
    let kernel = recorded.manifest.kernel.as_ref().unwrap();
    let Some(tracefs) = source(kernel, "tracefs") else {
        return;
    };
    if !tracefs.why.is_empty() {
        println!("skipped: {}", tracefs.why);
        return;
    }
    let of = |kind: Kind| recorded.kernel().filter(move |row| row.kind == kind as i8);

    let faults = recorded.said("faults");
    let (from, to) = (
        recorded.stamp(faults.tid, INNER, 2),
        recorded.stamp(faults.tid, INNER, 3),
    );
    let told = (of(Kind::Fault))
        .filter(|row| row.tid == faults.tid && from < row.ts && row.ts < to)
        .count();
    assert_eq!((told as i64, faults.numbers[0]), (300, 300));

    // Of all timer interrupts of that CPU, those that hit the program's threads.
    let (hogged, timer) = (recorded.said("hogged"), recorded.said("timer"));
    let (from, to) = (
        recorded.stamp(hogged.tid, OUTER, 0),
        recorded.stamp(hogged.tid, OUTER, 1),
    );
    let cpu = recorded.said("main").numbers[1] as i16;
    let interrupts: Vec<&Row> = (of(Kind::Interrupt))
        .filter(|row| row.cpu == cpu && from < row.ts && row.ts < to)
        .collect();
    let of_timer = (interrupts.iter())
        .filter(|row| row.event == OWN_VECTOR + 0xec)
        .count() as i64;
    if timer.numbers[0] >= 0 {
        assert!(of_timer <= timer.numbers[0], "{of_timer} {timer:?}");
        assert!(10 * of_timer >= timer.numbers[0], "{of_timer} {timer:?}");
    }
    assert!(interrupts.iter().all(|row| row.payload > 0 && row.tid > 0));

    // Who waited was woken before it went on, by the other one.
    let (pinger, pinged) = (recorded.said("pinger").tid, recorded.said("pinged").tid);
    let rows = recorded.between(pinged, INNER);
    let (mut waited, mut woken) = (0, 0);
    let mut since: Option<i64> = None;
    let mut waker = 0;
    for row in rows {
        if row.kind == Kind::SwitchOut as i8 {
            since = (row.payload == 0).then_some(row.ts);
        } else if row.kind == Kind::Waking as i8 {
            waker = row.payload;
        } else if row.kind == Kind::SwitchIn as i8 && since.take().is_some() {
            waited += 1;
            woken += i64::from(std::mem::take(&mut waker) == i64::from(pinger));
        }
    }
    assert!(waited >= 100, "{waited}");
    assert!(woken * 100 >= waited * 99, "{woken} of {waited}");
}

/// Names of all instances, seen through a mount of our own.
fn instances() -> Option<Vec<String>> {
    let listed = Command::new("unshare")
        .args([
            "-m",
            "sh",
            "-c",
            "mount -t tracefs nodev /mnt && ls /mnt/instances",
        ])
        .output()
        .ok()?;
    let names = String::from_utf8(listed.stdout).ok()?;
    (listed.status.success()).then(|| names.lines().map(str::to_owned).collect())
}

fn instances_of(pid: u32) -> Vec<String> {
    let prefix = format!("undertick-{pid}-");
    let all = instances().unwrap_or_default();
    all.into_iter()
        .filter(|name| name.starts_with(&prefix))
        .collect()
}

fn wait_for(what: &str, mut there: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !there() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Not a test by itself: records a program that goes on for long.
#[test]
fn record_for_long() {
    let Some(dir) = std::env::var_os("UNDERTICK_TEST_KILLED") else {
        return;
    };
    let dir = Path::new(&dir);
    let binary = program("kernel.c", &[]);
    let line = format!(
        "exec {} long >{}",
        binary.display(),
        dir.join("said").display()
    );
    let mut request = request(
        &dir.join("k.ut"),
        &["sh", "-c", &line],
        settings(Overflow::Grow, 1 << 20, None),
    );
    request.kernel = Wanted::Auto;
    let _ = record(request, |_| {});
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// A killed recorder: what it had is there, and its instance goes with the next
/// recording. A raw file that is cut or gone is said.
#[test]
fn a_killed_recorder_leaves_evidence_and_no_instance() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    let mut recorder = Command::new(std::env::current_exe().unwrap())
        .args(["record_for_long", "--exact"])
        .env("UNDERTICK_TEST_KILLED", path)
        .spawn()
        .unwrap();
    let raw = path.join("k.ut/kernel.utk");
    let bytes = || fs::metadata(&raw).map_or(0, |about| about.len());
    wait_for("the recorder's file", || bytes() > 20_000);
    let had = instances_of(recorder.id());
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    let said = fs::read_to_string(path.join("said")).unwrap();
    let main: i32 = said.split(' ').nth(1).unwrap().parse().unwrap();
    // SAFETY: the program that we had started.
    unsafe { libc::kill(main, libc::SIGKILL) };

    for (name, cut) in [("cut.ut", true), ("gone.ut", false)] {
        let trace = path.join(name);
        copy(&path.join("k.ut"), &trace);
        let raw = trace.join("kernel.utk");
        if cut {
            let bytes = fs::read(&raw).unwrap();
            fs::write(&raw, &bytes[..bytes.len() - 5]).unwrap();
        } else {
            fs::remove_file(&raw).unwrap();
        }
        let (manifest, rows) = rows(&trace);
        let expected = if cut { "was cut short" } else { "is missing" };
        let said = manifest.warnings.iter().any(|w| w.contains(expected));
        assert!(said, "{:?}", manifest.warnings);
        assert_eq!(rows.iter().any(|row| row.mode == 1), cut);
    }
    let (manifest, rows) = rows(&path.join("k.ut"));
    assert!(!raw.exists());
    let kernel = manifest.kernel.as_ref().unwrap();
    let has = kernel
        .sources
        .iter()
        .any(|s| s.used && s.name != "proc_stat");
    let naps = (rows.iter())
        .filter(|row| row.mode == 1 && row.tid == main && row.kind == Kind::SwitchOut as i8)
        .count();
    assert!(!has || naps >= 50, "{naps} {kernel:?}");

    if source(kernel, "tracefs").is_none() {
        return;
    }
    assert!(!had.is_empty(), "the recorder had no instance");
    let left = instances_of(recorder.id());
    assert_eq!(left, had, "nobody else removes it");
    let own = std::process::id();
    recorded(&["sleep"], Wanted::Auto);
    assert_eq!(instances_of(recorder.id()), [] as [String; 0]);
    assert_eq!(instances_of(own), [] as [String; 0]);
}
