//! Samples dropped on evidence of the kernel.

use crate::support;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use support::{Row, begin, end, interval, manifest, report, row, warned};
use undertick_analyze::{Cull, Options};
use undertick_document::Report;
use undertick_format::manifest::{Descheduled, Manifest};
use undertick_format::schema::Kind;

/// Returns a row of the kernel about the thread of ring 0.
fn kernel(kind: Kind, ts: i64, payload: i64) -> Row {
    Row {
        mode: 1,
        ring: -1,
        ..row(kind, ts, 0, payload)
    }
}

fn culled(rows: &[Row], cull: Cull) -> Report {
    let options = Options {
        cull,
        ..Options::default()
    };
    let manifest = Manifest {
        descheduled: Descheduled::AnyDeschedule,
        ..manifest()
    };
    report(&manifest, &options, rows)
}

/// 100 spans of 10 ticks, one each 100; some are disturbed, and longer by the disturbance.
fn hit() -> Vec<Row> {
    let mut of_kernel = Vec::new();
    let mut of_user = Vec::new();
    for i in 0..100 {
        let at = 100 * i;
        let mut long = 10;
        let mut flag = 0;
        match i {
            // Preempted for 50.
            7 => {
                of_kernel.push(kernel(Kind::SwitchOut, at + 3, 1));
                of_kernel.push(kernel(Kind::SwitchIn, at + 53, 0));
                (long, flag) = (60, 1);
            }
            // It waits for 30 by itself.
            20 | 21 => {
                of_kernel.push(kernel(Kind::SwitchOut, at + 5, 0));
                of_kernel.push(kernel(Kind::SwitchIn, at + 35, 0));
                (long, flag) = (40, 1);
            }
            // An interrupt of 12, followed by deferred work of 4.
            33 => {
                of_kernel.push(kernel(Kind::Interrupt, at + 2, 12));
                of_kernel.push(kernel(Kind::SoftInterrupt, at + 14, 4));
                long = 26;
            }
            // The program itself takes five times as long.
            50 | 60 | 70 => long = 50,
            // A flag that no row explains.
            80 => flag = 1,
            // An interrupt between two spans disturbs none.
            90 => of_kernel.push(kernel(Kind::Interrupt, at + 20, 30)),
            _ => {}
        }
        of_user.push(begin(at, 1));
        of_user.push(end(at + long, 1).flag(flag));
    }
    of_kernel.extend(of_user);
    of_kernel
}

#[test]
fn each_cause_is_named_and_what_the_program_does_is_kept() {
    for cull in [Cull::Auto, Cull::Kernel] {
        let report = culled(&hit(), cull);
        let span = interval(&report, "event 1");
        let by: Vec<(&str, u64)> = (span.culled.by.iter())
            .map(|(c, n)| (c.as_str(), *n))
            .collect();
        assert_eq!(by, [("descheduled", 1), ("interrupt", 1), ("preempted", 1)]);
        assert_eq!((span.count, span.culled.count), (97, 3));
        // All samples: 95 of 10 with the 3 dropped ones, less 50 and 16 that others took, 2 that
        // waited, 3 slow ones.
        assert_eq!(span.total_ns, Some(f64::from(95 * 10 + 2 * 40 + 3 * 50)));
        assert_eq!(
            (span.on_cpu_ns, span.off_cpu_ns),
            (Some(1120.0), Some(60.0))
        );
        assert_eq!((span.taken_off.count, span.taken_off.time_ns), (0, 66.0));
        assert_eq!(span.before_culling.count, 100);
        let found: Vec<(&str, u64, f64, bool)> = (span.evidence.iter())
            .map(|e| (e.cause.as_str(), e.count, e.time_ns, e.culled))
            .collect();
        assert_eq!(
            found,
            [
                ("preempted", 1, 50.0, true),
                ("interrupt", 1, 12.0, true),
                ("softirq", 1, 4.0, true),
                ("waited", 2, 60.0, false),
            ]
        );
        let unexplained = span.unexplained.clone().unwrap();
        assert_eq!((unexplained.count, unexplained.ratio), (3, 4.0));
        assert_eq!(unexplained.without_evidence, 3);
        assert!((unexplained.share.value - 0.03).abs() < 1e-12);
        // A program may have slow and fast cases: no warning.
        assert!(warned(&report, "slow_without_evidence").is_none());
        assert!(warned(&report, "blocking_is_culled").is_none());
    }
}

/// The ratio rule drops the slow path of the program.
#[test]
fn other_rules_still_say_what_fell_in() {
    let report = culled(&hit(), Cull::Ratio(4.0));
    let span = interval(&report, "event 1");
    assert_eq!(span.culled.by["ratio"], 4);
    // As read: 93 of 10, 2 that waited, the interrupted one; 1 preempted and 3 slow.
    let total = 93 * 10 + 2 * 40 + 26 + 60 + 3 * 50;
    assert_eq!(span.total_ns, Some(f64::from(total)));
    assert_eq!(
        (span.off_cpu_ns, span.taken_off.time_ns),
        (Some(110.0), 0.0)
    );
    assert!(span.evidence.iter().all(|e| !e.culled));
    assert_eq!(span.evidence[0].count, 1);
    let report = culled(&hit(), Cull::None);
    let span = interval(&report, "event 1");
    assert_eq!((span.count, span.culled.count), (100, 0));
    assert_eq!(span.evidence.len(), 4);
}

/// A slow sample that was also preempted is dropped, and still counts as slow: the disturbed ones
/// are the long ones.
#[test]
fn slow_samples_that_were_hit_count_as_slow() {
    let mut of_kernel = Vec::new();
    let mut of_user = Vec::new();
    for i in 0..1000 {
        let at = 1000 * i;
        // One in ten takes 80 by itself, and every second of these is preempted.
        let mut long = if i % 10 == 0 { 80 } else { 10 };
        if i % 20 == 0 {
            of_kernel.push(kernel(Kind::SwitchOut, at + 3, 1));
            of_kernel.push(kernel(Kind::SwitchIn, at + 403, 0));
            long += 400;
        }
        of_user.push(begin(at, 1));
        of_user.push(end(at + long, 1));
    }
    of_kernel.extend(of_user);
    let report = culled(&of_kernel, Cull::Kernel);
    let span = interval(&report, "event 1");
    assert_eq!((span.count, span.culled.count), (950, 50));
    let unexplained = span.unexplained.clone().unwrap();
    assert_eq!((unexplained.count, unexplained.without_evidence), (100, 50));
    assert!((unexplained.share.value - 0.1).abs() < 1e-12);
    // Kept: (900 * 10 + 50 * 80) / 950 = 13.7; all: 17.
    let told = |text: &str| span.notes.iter().any(|note| note.contains(text));
    assert!(told("50 samples dropped took 80.0 ns"), "{:?}", span.notes);
    assert!(told("the mean would be 17.0 ns"), "{:?}", span.notes);
    // Where disturbances do not depend on durations, there is no note.
    let report = culled(&hit(), Cull::Kernel);
    let span = interval(&report, "event 1");
    assert!(
        span.notes.iter().all(|n| !n.contains("would be")),
        "{:?}",
        span.notes
    );
}

/// The time in nanoseconds of a simulated thread, with its disturbances.
struct Simulated {
    rng: ChaCha8Rng,
    now: i64,
    of_kernel: Vec<Row>,
}

/// What happens to a span.
#[derive(Clone, Copy, PartialEq)]
enum Done {
    Nothing,
    Interrupted,
    Preempted,
    Waits,
}

impl Simulated {
    /// Works for `ns`, with `done` somewhere inside. The kernel's rows do not show the way into a
    /// disturbance and out of it.
    fn works(&mut self, ns: i64, done: Done) {
        let first = self.rng.random_range(0..ns);
        self.now += first;
        match done {
            Done::Nothing => {}
            Done::Interrupted => {
                let took = self.rng.random_range(2_000..10_000);
                self.now += 300;
                self.of_kernel.push(kernel(Kind::Interrupt, self.now, took));
                self.now += took + 300;
            }
            Done::Preempted | Done::Waits => {
                let took = self.rng.random_range(100_000..4_000_000);
                let why = i64::from(done == Done::Preempted);
                self.now += 500;
                self.of_kernel.push(kernel(Kind::SwitchOut, self.now, why));
                self.now += took;
                self.of_kernel.push(kernel(Kind::SwitchIn, self.now, 0));
                self.now += 1_000;
            }
        }
        self.now += ns - first;
    }
}

/// The undisturbed time of the spans is known, and four in ten of them are disturbed for up to 20
/// times that. All stay, and the figures are their undisturbed time to the last nanosecond, but for
/// what no row shows.
#[test]
fn own_time_is_told_of_spans_that_are_disturbed() {
    let mut at = Simulated {
        rng: ChaCha8Rng::seed_from_u64(24),
        now: 0,
        of_kernel: Vec::new(),
    };
    let (mut own, mut of_user, mut waited_for) = (Vec::new(), Vec::new(), 0);
    for _ in 0..4_000 {
        let ns = at.rng.random_range(100_000..200_000);
        let done = match at.rng.random_range(0..100) {
            0..20 => Done::Interrupted,
            20..40 => Done::Preempted,
            40..45 => Done::Waits,
            _ => Done::Nothing,
        };
        of_user.push(begin(at.now, 1));
        let start = at.now;
        at.works(ns, done);
        if done == Done::Waits {
            waited_for += at.now - start - ns;
        }
        of_user.push(end(at.now, 1));
        at.now += 1_000;
        own.push(ns);
    }
    let mut rows = at.of_kernel;
    rows.extend(of_user);
    let report = culled(&rows, Cull::Auto);
    let span = interval(&report, "event 1");
    assert_eq!((span.count, span.culled.count), (4_000, 0));
    let sum: i64 = own.iter().sum();
    // 1 500 ns at most beside each of about 1 600 disturbances.
    let told = span.on_cpu_ns.unwrap() - sum as f64;
    assert!(told > 0.0 && told < 1_700.0 * 1_500.0, "{told}");
    let off = span.off_cpu_ns.unwrap() - waited_for as f64;
    assert!(off < 0.0 && off > -220.0 * 1_500.0, "{off}");
    assert_eq!(
        span.total_ns.unwrap(),
        span.on_cpu_ns.unwrap() + span.off_cpu_ns.unwrap()
    );
    own.sort_unstable();
    let median = span.median.as_ref().unwrap();
    // 5 % wait: the median of the whole durations is a little above that of the work.
    let (lo, hi) = (own[1_999] as f64, own[2_150] as f64 + 1_500.0);
    assert!(
        median.value >= lo && median.value <= hi,
        "{lo} {median:?} {hi}"
    );
    // The mean of the raw durations is several times that.
    let before = span.before_culling.mean.as_ref().unwrap();
    assert!(before.value > 3.0 * sum as f64 / 4_000.0, "{before:?}");
    assert_eq!(span.before_culling.count, 4_000);
    let note = span.notes.iter().find(|note| note.contains("taken off"));
    assert!(
        note.is_some_and(|n| n.contains("of 4000 samples (4")),
        "{:?}",
        span.notes
    );
}

/// Every third span of 1 us contains an interrupt. The spans are too short for subtracting it, and
/// too many to drop.
#[test]
fn short_spans_that_are_hit_all_the_time_stay() {
    let mut rows = Vec::new();
    let mut of_user = Vec::new();
    for i in 0..300 {
        let at = 10_000 * i;
        let took = if i % 3 == 0 { 2_000 } else { 0 };
        if took > 0 {
            rows.push(kernel(Kind::Interrupt, at + 500, took));
        }
        of_user.extend([begin(at, 1), end(at + 1_000 + took, 1)]);
    }
    rows.extend(of_user);
    let report = culled(&rows, Cull::Auto);
    let span = interval(&report, "event 1");
    assert_eq!((span.count, span.culled.count), (300, 0));
    assert_eq!(
        (span.statistics.min, span.statistics.max),
        (Some(1_000.0), Some(1_000.0))
    );
    assert_eq!(span.total_ns, Some(300_000.0));
    assert_eq!(
        (span.taken_off.count, span.taken_off.time_ns),
        (100, 200_000.0)
    );
    let before = span.before_culling.mean.as_ref().unwrap();
    assert!((before.value - 5_000.0 / 3.0).abs() < 1e-9, "{before:?}");
    assert_eq!(span.evidence[0].time_ns, 200_000.0);
}

/// Without rows of the kernel the flag decides, and waiting is not distinguished.
#[test]
fn without_kernel_events() {
    let user: Vec<Row> = hit().into_iter().filter(|r| r.mode == 0).collect();
    let report = culled(&user, Cull::Auto);
    let span = interval(&report, "event 1");
    assert_eq!(span.culled.by["descheduled"], 4);
    assert!(span.evidence.is_empty() && span.unexplained.is_none());
    assert!(warned(&report, "blocking_is_culled").is_some());
}

#[test]
fn losses_of_the_kernel_are_told() {
    let mut rows = hit();
    rows.insert(0, kernel(Kind::KernelGap, 0, 12));
    let report = culled(&rows, Cull::Auto);
    let told = warned(&report, "kernel_lost").unwrap();
    assert!(told.starts_with("12 events"), "{told}");
}
