//! Samples dropped because the kernel says what hit them.

mod support;

use support::{Row, begin, end, interval, manifest, report, row, warned};
use undertick_analyze::{Cull, Options};
use undertick_report::document::Report;
use undertick_trace::manifest::{Descheduled, Manifest};
use undertick_trace::schema::Kind;

/// A row of the kernel about the thread of ring 0.
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

/// 100 spans of 10 ticks each 100; some are hit, longer by the time that took.
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
            // It waits for 30 of its own.
            20 | 21 => {
                of_kernel.push(kernel(Kind::SwitchOut, at + 5, 0));
                of_kernel.push(kernel(Kind::SwitchIn, at + 35, 0));
                (long, flag) = (40, 1);
            }
            // An interrupt of 12, with deferred work of 4 on top of it.
            33 => {
                of_kernel.push(kernel(Kind::Interrupt, at + 2, 12));
                of_kernel.push(kernel(Kind::SoftInterrupt, at + 14, 4));
                long = 26;
            }
            // The program itself takes five times as long.
            50 | 60 | 70 => long = 50,
            // A flag that no row explains.
            80 => flag = 1,
            // Between two spans: hits none.
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
        // 92 of 10, 2 that waited, 3 slow ones.
        assert_eq!(span.total_ns, f64::from(92 * 10 + 2 * 40 + 3 * 50));
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
        // A program has slow and fast cases of its own: nothing to warn of.
        assert!(warned(&report, "slow_without_evidence").is_none());
        assert!(warned(&report, "blocking_is_culled").is_none());
    }
}

/// The ratio rule throws the slow path of the program away.
#[test]
fn other_rules_still_say_what_fell_in() {
    let report = culled(&hit(), Cull::Ratio(4.0));
    let span = interval(&report, "event 1");
    assert_eq!(span.culled.by["ratio"], 4);
    assert_eq!(span.total_ns, f64::from(93 * 10 + 2 * 40 + 26));
    assert!(span.evidence.iter().all(|e| !e.culled));
    assert_eq!(span.evidence[0].count, 1);
    let report = culled(&hit(), Cull::None);
    let span = interval(&report, "event 1");
    assert_eq!((span.count, span.culled.count), (100, 0));
    assert_eq!(span.evidence.len(), 4);
}

/// A slow sample that was preempted besides is dropped, and still one of the slow
/// ones: those that are hit are the long ones.
#[test]
fn slow_samples_that_were_hit_count_as_slow() {
    let mut of_kernel = Vec::new();
    let mut of_user = Vec::new();
    for i in 0..1000 {
        let at = 1000 * i;
        // One in ten takes 80 of its own, and every second of these is preempted.
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
    assert!(told("50 samples dropped took 80 ns"), "{:?}", span.notes);
    assert!(told("the mean would be 17.0 ns"), "{:?}", span.notes);
    // Where lengths have nothing to do with it, nothing is said.
    let report = culled(&hit(), Cull::Kernel);
    let span = interval(&report, "event 1");
    assert!(
        span.notes.iter().all(|n| !n.contains("would be")),
        "{:?}",
        span.notes
    );
}

/// Without rows of the kernel the flag decides, and waiting is not told apart.
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
