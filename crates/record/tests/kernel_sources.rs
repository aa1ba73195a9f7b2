//! The sources of evidence, compared with each other, and what remains of a recorder that is
//! killed.

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use common::evidence::{INNER, OUTER, assert_sound, error_ticks, recorded, source};
use common::{Row, alone, program, request, rows, settings};
use undertick_format::schema::{Kind, OWN_VECTOR};
use undertick_record::Overflow;
use undertick_record::finish::finish;
use undertick_record::kernel::Wanted;
use undertick_record::record::record;

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

/// perf and tracefs report the same switches, with their causes.
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
    // Where a CPU went idle for a moment, tracefs lacks switches onto it (24 of 2820 observed).
    // These are counted and added, and only perf reports them.
    let told_by_both = found.second - found.added_in;
    let least = found.first.max(told_by_both) as f64 * 0.999;
    assert!(found.both as f64 >= least, "{found:?}");
    assert!(
        found.causes_differ as f64 <= 0.001 * found.both as f64,
        "{found:?}"
    );
}

/// Where a CPU is idle, some kernels lose switches onto it in their trace buffers. perf reports
/// them, so none is missing.
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
    let why = &source(kernel, "tracefs").unwrap().why;
    assert_eq!(why.contains("not in its buffers"), found.added > 0, "{why}");
    let others = found.added - found.added_in;
    assert!(others as f64 <= 0.001 * found.second as f64, "{found:?}");
}

/// Page faults, timer interrupts and wakes, where tracefs reports them.
#[test]
fn faults_interrupts_and_wakes() {
    let _alone = alone();
    let recorded = recorded(&["fault", "hog", "ping"], Wanted::Auto);
    let kernel = recorded.manifest.kernel.as_ref().unwrap();
    let Some(tracefs) = source(kernel, "tracefs") else {
        return;
    };
    if tracefs.why.contains("this kernel has no") {
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

    // The timer interrupts of that CPU that interrupted the program's threads.
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
        // The other timer interrupts came while something else had the CPU.
        let share = recorded.share_on_cpu(hogged.tid, OUTER);
        let at_least = (timer.numbers[0] as f64 * share / 10.0) as i64;
        assert!(of_timer >= at_least, "{of_timer} {timer:?} {share}");
    }
    assert!(interrupts.iter().all(|row| row.payload > 0 && row.tid > 0));

    // A thread that waited was woken by the other one before it went on.
    let (pinger, pinged) = (recorded.said("pinger").tid, recorded.said("pinged"));
    let rows = recorded.between(pinged.tid, INNER);
    let (mut waited, mut woken) = (0, 0);
    let mut since: Option<i64> = None;
    let mut waker = 0;
    for row in rows {
        if row.kind == Kind::SwitchOut as i8 {
            since = (row.payload != 1).then_some(row.ts);
        } else if row.kind == Kind::Waking as i8 {
            waker = row.payload;
        } else if row.kind == Kind::SwitchIn as i8 && since.take().is_some() {
            waited += 1;
            woken += i64::from(std::mem::take(&mut waker) == i64::from(pinger));
        }
    }
    // On a busy machine most bytes are there before the thread reads: the kernel counts the waits.
    // Those between the inner and the outer stamps are in its count alone.
    let counted = pinged.numbers[0];
    assert!(
        waited > 0 && (waited..=waited + 2).contains(&counted),
        "{waited} {counted}"
    );
    assert!(
        (waited - woken) * 100 <= waited.max(100),
        "{woken} of {waited}"
    );
}

/// The order is: the waker's stamp, the kernel's waking, the switch in, the woken thread's stamp.
/// It holds on one CPU and on two that are busy.
#[test]
fn users_and_kernels_times_line_up() {
    let _alone = alone();
    for word in ["wake-here", "wake-there"] {
        let busy = (word == "wake-there").then(Busy::start);
        let recorded = recorded(&[word], Wanted::Auto);
        drop(busy);
        if source(recorded.manifest.kernel.as_ref().unwrap(), "tracefs").is_none() {
            return;
        }
        let stamps = |event: i32| -> Vec<i64> {
            let of = |row: &&Row| row.mode == 0 && row.event == event;
            recorded.rows.iter().filter(of).map(|row| row.ts).collect()
        };
        let (before, after) = (stamps(5), stamps(6));
        let woken = recorded.said("woken");
        let rounds = woken.numbers[0] as usize;
        assert_eq!((before.len(), after.len()), (rounds, rounds));
        let error = error_ticks(&recorded.manifest);
        let (mut looked_at, mut against) = (0, 0);
        let mut waits: Option<usize> = None;
        let mut waking = None;
        for row in recorded.kernel().filter(|row| row.tid == woken.tid) {
            if row.kind == Kind::SwitchOut as i8 {
                // The thread waits for the round after those that it has stamped.
                let round = after.partition_point(|&ts| ts < row.ts);
                waits = (row.payload != 1 && 0 < round && round < rounds).then_some(round);
                waking = None;
            } else if row.kind == Kind::Waking as i8 {
                waking = Some(row.ts);
            } else if row.kind == Kind::SwitchIn as i8
                && let (Some(round), Some(waking)) = (waits.take(), waking.take())
            {
                looked_at += 1;
                let in_order = before[round] <= waking + error
                    && waking <= row.ts + error
                    && row.ts <= after[round] + error;
                against += u32::from(!in_order);
            }
        }
        println!("{word}: {against} of {looked_at} out of order");
        assert!(looked_at >= 1000, "{word}: {looked_at}");
        assert!(
            against * 10_000 <= looked_at.max(10_000),
            "{word}: {against} of {looked_at}"
        );
    }
}

/// Returns the names of all instances, seen through a private mount.
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
        assert!(begun.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Not a test: records a program that runs for a long time.
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
    let _ = record(request, &mut |_| {});
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// A recorder is killed: its data remain, and the next recording removes its instance. A raw file
/// that is cut or missing is reported.
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
        finish(&trace, &mut |_| {}).unwrap();
        let (manifest, rows) = rows(&trace);
        let expected = if cut { "was cut short" } else { "is missing" };
        let said = manifest.warnings.iter().any(|w| w.contains(expected));
        assert!(said, "{:?}", manifest.warnings);
        assert_eq!(rows.iter().any(|row| row.mode == 1), cut);
    }
    finish(&path.join("k.ut"), &mut |_| {}).unwrap();
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
    wait_for("its own instance is removed", || {
        instances_of(own).is_empty()
    });
}
