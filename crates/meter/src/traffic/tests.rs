//! Traces with known truth: rows made by hand, in which one tick is 1 ns.

use std::sync::Arc;

use arrow_array::{Int8Array, Int16Array, Int32Array, Int64Array, RecordBatch};
use undertick_document::passes::{NO_EVIDENCE, Passes};
use undertick_experiment::{Cell, Ended, Experiment, Mark, Numbering, Repetition};
use undertick_format::manifest::{Kernel, KernelSource};
use undertick_format::schema::{Kind, OWN_VECTOR, event_schema};
use undertick_report::traffic::render;

use super::read;
use super::table::{self, Scale, values};
use super::turns;

const A: i32 = 100;
const B: i32 = 200;
const SCALE: Scale = Scale {
    ns_per_tick: 1.0,
    step_ticks: 10.0,
    error_ticks: 0,
    evidence_text: String::new(),
};

#[derive(Clone, Copy)]
struct Row {
    ts: i64,
    tid: i32,
    kind: Kind,
    event: i32,
    payload: i64,
}

/// A trace under construction.
struct Made {
    experiment: Experiment,
    numbering: Numbering,
    user: Vec<Row>,
    kernel: Vec<Row>,
    now: i64,
    /// The current step of each process.
    inside: Vec<Mark>,
}

impl Made {
    fn new(script: &str) -> Self {
        let experiment =
            Experiment::new([("s".to_owned(), script.to_owned())]).expect("a good script");
        let numbering = Numbering::new(&experiment).expect("few steps");
        Self {
            experiment,
            numbering,
            user: Vec::new(),
            kernel: Vec::new(),
            now: 1_000_000,
            inside: vec![Mark::Loop; 2],
        }
    }

    fn event(&self, process: usize, mark: Mark) -> i32 {
        let cell = Cell {
            setting: 0,
            repetition: 0,
        };
        let plan = &self.experiment.setting(0).plan;
        i32::from(self.numbering.event(plan, cell, process, mark))
    }

    /// Adds a stamp: the process begins `mark` now.
    fn stamp(&mut self, process: usize, mark: Mark) {
        let (ends, begins) = (
            self.event(process, self.inside[process]),
            self.event(process, mark),
        );
        self.inside[process] = mark;
        self.user.push(Row {
            ts: self.now,
            tid: [A, B][process],
            kind: Kind::Next,
            event: ends,
            payload: i64::from(begins),
        });
    }

    /// Adds a kernel row, `after` ticks from now.
    fn kernel_row(&mut self, after: i64, tid: i32, kind: Kind, event: i32, payload: i64) {
        let ts = self.now + after;
        self.kernel.push(Row {
            ts,
            tid,
            kind,
            event,
            payload,
        });
    }

    fn passes(&self, shown: usize) -> Passes {
        let setting = self.experiment.settings().next().expect("one").0;
        let cell = Cell {
            setting: 0,
            repetition: 0,
        };
        let mut kernel = self.kernel.clone();
        kernel.sort_by_key(|row| row.ts);
        let batches = || {
            [(1, &kernel), (0, &self.user)]
                .map(|(mode, rows)| Ok(batch(mode, rows)))
                .into_iter()
        };
        let all = read::read(&[(&setting.plan, cell)], &self.numbering, batches).expect("rows");
        let repetition = Repetition {
            setting: 0,
            repetition: 0,
            ended: Ended::Done,
            passes: 10,
            seconds: 1.0,
            cpus: vec![Some(0); setting.plan.processes.len()],
            policy: None,
            refused: None,
        };
        let subject = table::TableSubject {
            script: "s",
            setting,
            repetition: &repetition,
        };
        table::passes(&subject, &all[0], &SCALE, shown)
    }
}

fn batch(mode: i8, rows: &[Row]) -> RecordBatch {
    let i64s = |of: fn(&Row) -> i64| Arc::new(rows.iter().map(of).collect::<Int64Array>());
    let i32s = |of: fn(&Row) -> i32| Arc::new(rows.iter().map(of).collect::<Int32Array>());
    let n = rows.len();
    RecordBatch::try_new(
        event_schema(),
        vec![
            i64s(|r| r.ts),
            i32s(|_| -1),
            i32s(|r| r.tid),
            i32s(|r| r.tid),
            Arc::new(Int16Array::from_value(0, n)),
            Arc::new(Int8Array::from_value(mode, n)),
            Arc::new(rows.iter().map(|r| r.kind as i8).collect::<Int8Array>()),
            Arc::new(Int8Array::from_value(0, n)),
            i32s(|r| r.event),
            i64s(|r| r.payload),
            Arc::new(Int16Array::from_value(0, n)),
        ],
    )
    .expect("columns as the schema says")
}

const ALONE: &str = "
passes = 10
[[process]]
name = \"A\"
place = \"cpu 0\"
[[process.step]]
null = true
[[process.step]]
null = true
[[process.step]]
null = true
";

/// Every step takes 1000; the test lists the additional time, the kernel rows about it, and the
/// cause.
#[test]
fn what_is_out_of_place_has_the_cause_that_was_put_in() {
    let mut made = Made::new(ALONE);
    let local = OWN_VECTOR + 236;
    for pass in 1..=10 {
        made.stamp(0, Mark::NullBefore);
        made.now += 100;
        for step in 0..3 {
            made.stamp(0, Mark::Step(step));
            let added = match (pass, step + 1) {
                (2, 1) => {
                    made.kernel_row(50, A, Kind::Interrupt, local, 800);
                    900
                }
                (3, 2) => {
                    made.kernel_row(20, A, Kind::SwitchOut, 0, 1);
                    made.kernel_row(1920, A, Kind::SwitchIn, 0, 0);
                    2000
                }
                // There is no evidence; a disturbance of another thread does not count.
                (4, 3) => 600,
                (8, 1) => {
                    made.kernel_row(50, 999, Kind::Interrupt, local, 800);
                    900
                }
                // Less than 1.5 times the median.
                (5, 1) => {
                    made.kernel_row(50, A, Kind::Interrupt, local, 300);
                    400
                }
                (6, 2) => {
                    made.kernel_row(50, A, Kind::Fault, 0, -1);
                    700
                }
                (7, 3) => {
                    made.kernel_row(50, A, Kind::Migrate, 0, 1);
                    800
                }
                (9, 3) => {
                    made.kernel_row(50, A, Kind::SoftInterrupt, 1, 500);
                    510
                }
                _ => 0,
            };
            made.now += 1000 + added;
        }
        made.stamp(0, Mark::NullAfter);
        made.now += 100;
        made.stamp(0, Mark::Loop);
        made.now += 100;
    }
    let found = made.passes(10);
    assert!(found.one_cpu);
    assert_eq!((found.passes, found.counts.values), (10, 30));
    let marks: Vec<(u64, u32, &str, f64, Option<f64>)> = (found.marks.iter())
        .map(|m| (m.pass, m.number, m.cause.as_str(), m.over_ns, m.taken_ns))
        .collect();
    assert_eq!(
        marks,
        [
            (2, 1, "interrupt", 900.0, Some(800.0)),
            (3, 2, "preempted", 2000.0, Some(1900.0)),
            (4, 3, NO_EVIDENCE, 600.0, None),
            (6, 2, "fault", 700.0, None),
            (7, 3, "migration", 800.0, None),
            (8, 1, NO_EVIDENCE, 900.0, None),
            (9, 3, "softirq", 510.0, Some(500.0)),
        ]
    );
    assert_eq!(found.marks[0].detail, "vector 236 of the CPU's own");
    assert!(found.marks[1].detail.contains("not recorded"));
    assert_eq!(found.counts.out_of_place, 7);
    assert_eq!(found.counts.by[NO_EVIDENCE], 2);
    assert_eq!(found.counts.without_evidence, Some(2.0 / 7.0));
    assert_eq!(
        found.steps[0].next_ns[..3],
        [Some(1000.0), Some(1900.0), Some(1000.0)]
    );
    assert_eq!(found.steps[0].next_median_ns, Some(1000.0));
    assert_eq!(made.passes(3).marks.len(), 2, "those of the passes shown");
    assert_eq!(made.passes(3).counts, found.counts, "but all are counted");
    let text = render(&[made.passes(3)], 120);
    assert!(text.contains("(a) 1.90 us"), "{text}");
    assert!(
        text.contains("2 no evidence") && text.contains("without evidence 29 %"),
        "{text}"
    );
}

/// 140 against 100 is more than 1.5 times nothing, but four steps of the clock.
#[test]
fn a_few_steps_of_the_clock_are_not_out_of_place() {
    let mut made = Made::new(ALONE);
    for pass in 0..9 {
        for step in 0..3 {
            made.stamp(0, Mark::Step(step));
            made.now += match (pass, step) {
                (4, 0) => 60,
                (4, 1) => 70,
                _ => 20,
            };
        }
        made.stamp(0, Mark::Loop);
        made.now += 10;
    }
    let found = made.passes(9);
    let marks: Vec<u32> = found.marks.iter().map(|m| m.number).collect();
    assert_eq!(marks, [2], "50 over counts, 40 over does not");
}

const TWO: &str = "
passes = 10
backend = \"futex\"
[[process]]
name = \"A\"
place = \"cpu 0\"
[[process.step]]
wakeup = \"B\"
[[process.step]]
block = true
[[process]]
name = \"B\"
start = \"blocked\"
place = \"same cpu as A\"
[[process.step]]
number = 3
wakeup = \"A\"
[[process.step]]
number = 4
block = true
";

/// `from` blocks 50 after now and `to` runs `later` ticks after that.
fn switch(made: &mut Made, from: i32, to: i32, later: i64) {
    made.kernel_row(50, from, Kind::SwitchOut, 0, 0);
    made.kernel_row(50 + later, to, Kind::SwitchIn, 0, 0);
}

/// Two processes hand the CPU to and fro: the switch is part of the block, the time of other users
/// of the CPU is not.
#[test]
fn a_switch_is_part_of_a_block_and_explains_nothing() {
    let mut made = Made::new(TWO);
    made.kernel_row(-10, B, Kind::SwitchOut, 0, 0);
    for pass in 1..=10 {
        made.stamp(0, Mark::NullBefore);
        made.now += 10;
        made.stamp(0, Mark::Step(0));
        made.kernel_row(20, B, Kind::Waking, 0, i64::from(A));
        if pass == 8 {
            // B runs in between, and makes no stamp.
            made.kernel_row(30, A, Kind::SwitchOut, 0, 1);
            made.kernel_row(30, B, Kind::SwitchIn, 0, 0);
            made.kernel_row(830, B, Kind::SwitchOut, 0, 1);
            made.kernel_row(830, A, Kind::SwitchIn, 0, 0);
            made.now += 800;
        }
        made.now += 300;
        made.stamp(0, Mark::Step(1));
        // 3000 in which neither of the two runs, though B could.
        let foreign = if pass == 4 { 3000 } else { 0 };
        switch(&mut made, A, B, foreign);
        made.now += 200 + foreign;
        made.stamp(1, Mark::NullAfter);
        made.now += 10;
        made.stamp(1, Mark::NullBefore);
        made.now += 10;
        made.stamp(1, Mark::Step(0));
        made.kernel_row(20, A, Kind::Waking, 0, i64::from(B));
        made.now += 300;
        made.stamp(1, Mark::Step(1));
        switch(&mut made, B, A, 0);
        if pass == 6 {
            // It disturbs A at the end of its block.
            made.kernel_row(60, A, Kind::Interrupt, OWN_VECTOR + 236, 450);
            made.now += 500;
        }
        made.now += if pass == 9 { 700 } else { 200 };
        made.stamp(0, Mark::NullAfter);
        made.now += 10;
    }
    let found = made.passes(10);
    let marks: Vec<(u64, u32, &str, &str)> = (found.marks.iter())
        .map(|m| (m.pass, m.number, m.cause.as_str(), m.detail.as_str()))
        .collect();
    assert_eq!(
        marks,
        [
            (
                4,
                2,
                "preempted",
                "by a program that was not recorded: its name is not known"
            ),
            (6, 4, "interrupt", "vector 236 of the CPU's own"),
            (8, 1, "preempted", "by B"),
            (9, 4, NO_EVIDENCE, ""),
        ]
    );
    assert_eq!(found.marks[0].taken_ns, Some(3000.0));
    assert_eq!(found.marks[1].taken_ns, Some(450.0));
    let step = |n: u32| found.steps.iter().find(|s| s.number == n).expect("a step");
    // The block ends with the stamp of the other process; the process's own comes later.
    assert_eq!(step(2).next_ns[0], Some(200.0));
    assert_eq!(step(2).own_ns[0], Some(200.0 + 10.0 + 10.0 + 300.0 + 200.0));
    assert_eq!((step(2).given_away, step(1).given_away), (1.0, 0.0));
}

impl Made {
    /// The values of these stamps, which lie 100 ticks apart.
    fn values_of(&mut self, stamps: &[(usize, Mark)]) -> table::Values {
        for &(process, mark) in stamps {
            self.stamp(process, mark);
            self.now += 100;
        }
        let plan = &self.experiment.setting(0).plan;
        let cell = Cell {
            setting: 0,
            repetition: 0,
        };
        let batches = || [Ok(batch(0, &self.user))].into_iter();
        let all = read::read(&[(plan, cell)], &self.numbering, batches).expect("rows");
        values(&all[0].stamps, plan)
    }
}

/// A wakeup of a process that does not wait is distinguished from one of a process that does.
#[test]
fn a_needless_wakeup_is_seen() {
    let mut made = Made::new(TWO);
    let steps = [
        (0, Mark::Step(0)), // B is inside its block since before
        (1, Mark::NullBefore),
        (0, Mark::Step(1)),
        (0, Mark::Step(0)), // B runs
        (1, Mark::Step(1)),
        (0, Mark::Step(0)), // B blocks
    ];
    let values = made.values_of(&steps);
    let needless: Vec<bool> = values.of[0][0].iter().map(|v| v.needless).collect();
    assert_eq!(needless, [false, true, false]);
}

/// Each value of a step that has an end is of one kind, and counted: the process goes on, one that waited
/// runs, the wakeup is of one that does not wait, or one that did not wait had run before.
#[test]
fn each_value_is_of_one_kind() {
    let mut made = Made::new(TWO);
    let stamps = [
        (0, Mark::Step(0)), // B waits; A goes on
        (0, Mark::Step(1)), // B comes out of its block
        (1, Mark::Step(0)),
        (0, Mark::Step(0)), // B is inside its wakeup
        (0, Mark::Step(1)), // B, which did not wait, comes out of its wakeup
        (1, Mark::Step(1)),
        (0, Mark::Step(0)),
    ];
    let values = made.values_of(&stamps);
    let of = |step: usize| {
        let mut once = turns::Once::default();
        once.add(
            &values.of[0][step],
            &made.experiment.setting(0).plan,
            0,
            (0.0, &SCALE),
        );
        (once.counts, once.needless, once.interrupted)
    };
    assert_eq!(of(0), ([1, 0], 1, 0));
    assert_eq!(of(1), ([0, 1], 0, 1));
}

/// The text names the evidence that no source has.
#[test]
fn the_evidence_that_is_missing_is_said() {
    let of = |kinds: &[&str]| {
        let tells = kinds.iter().map(|&kind| kind.to_owned()).collect();
        let source = KernelSource {
            name: "tracefs".to_owned(),
            used: true,
            why: String::new(),
            tells,
            records: 1,
            lost: 0,
            clock: "tsc".to_owned(),
            error_ns: 0.0,
        };
        table::evidence_text(Some(&Kernel {
            sources: vec![source],
            ..Kernel::default()
        }))
    };
    assert!(table::evidence_text(None).contains("was not asked"));
    assert!(of(&[]).contains("no switches"));
    assert!(of(&["switch_out"]).contains("neither interrupts nor softirqs"));
    let all = of(&["switch_out", "interrupt"]);
    assert!(
        all.contains("the host of a guest") && !all.contains("tracefs (root)"),
        "{all}"
    );
}
