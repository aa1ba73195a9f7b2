use undertick_report::history::NewestVerdict;

use super::*;

/// Values between -1 and 1 that follow no pattern which the estimator knows.
fn wobble(i: usize) -> f64 {
    let x = (i as f64 * 12.9898).sin() * 43_758.547;
    2.0 * (x - x.floor()) - 1.0
}

/// Three processes of each of `versions` versions; `time_ns` by version and machine.
fn rows(versions: usize, machines: usize, time_ns: impl Fn(usize, usize) -> f64) -> Vec<Row> {
    let mut rows = Vec::new();
    for version in 0..versions {
        for machine in 0..machines {
            for process in 0..3 {
                let seed = (version * 7 + machine) * 3 + process;
                rows.push(Row {
                    unix_s: 1e9 + version as f64,
                    added_unix_s: 0.0,
                    version: format!("v{version}"),
                    machine: format!("m{machine}"),
                    suite: "s".to_owned(),
                    benchmark: "b".to_owned(),
                    process: process as i32,
                    time_ns: time_ns(version, machine) * (1.0 + 0.01 * wobble(seed)),
                });
            }
        }
    }
    rows
}

/// Two machines, of which one takes 1.5 times as long; 8 % slower from version 20 on, in both.
#[test]
fn a_change_on_two_machines() {
    let rows = rows(40, 2, |version, machine| {
        1000.0 * (1.0 + 0.5 * machine as f64) * if version < 20 { 1.0 } else { 1.08 }
    });
    let history = analyze(Path::new("h"), &rows, |_| true, &Options::default());
    assert_eq!((history.versions, history.machines), (40, 2));
    let [of] = &history.benchmarks[..] else {
        panic!("{history:?}")
    };
    assert_eq!(of.points.len(), 80);
    assert_eq!(of.points[0].processes, 3);
    let [change] = &of.changes[..] else {
        panic!("{:?}", of.changes)
    };
    assert_eq!((&*change.before, &*change.version), ("v19", "v20"));
    assert!((change.ratio.value - 1.08).abs() < 0.01, "{change:?}");
    assert!(change.ratio.interval.lo.unwrap() > 1.06, "{change:?}");
    // Levels are by machine and stretch.
    for (at, level) in [(0, 1000.0), (1, 1500.0), (78, 1080.0), (79, 1620.0)] {
        let found = of.points[at].level_ns;
        assert!((found / level - 1.0).abs() < 0.01, "{at}: {found}");
    }
    let newest = of.newest.as_ref().unwrap();
    assert_eq!(newest.version, "v39");
    assert_eq!(newest.verdict, NewestVerdict::NoChangeFound);
}

/// The newest version takes 10 % longer; one that has too few before it is not judged.
#[test]
fn the_newest_version_is_judged_by_those_since_the_last_change() {
    let slow = rows(
        30,
        1,
        |version, _| if version == 29 { 1100.0 } else { 1000.0 },
    );
    let history = analyze(Path::new("h"), &slow, |_| true, &Options::default());
    let newest = history.benchmarks[0].newest.as_ref().unwrap();
    assert_eq!(newest.verdict, NewestVerdict::Slower);
    assert!((newest.ratio.value - 1.1).abs() < 0.02, "{newest:?}");
    let few = rows(5, 1, |_, _| 1000.0);
    let history = analyze(Path::new("h"), &few, |_| true, &Options::default());
    assert_eq!(history.benchmarks[0].newest, None);
    let why = history.benchmarks[0].not_judged.as_deref().unwrap();
    assert!(why.contains("4 earlier versions are too few"), "{why}");
}

/// What is 10 % slower is surely more than 5 % slower, but not more than 10 %.
#[test]
fn a_share_may_be_allowed() {
    let slow = rows(
        30,
        1,
        |version, _| if version == 29 { 1100.0 } else { 1000.0 },
    );
    let is_too_slow = |allow| {
        let options = Options {
            allow,
            ..Options::default()
        };
        let history = analyze(Path::new("h"), &slow, |_| true, &options);
        history.benchmarks[0].newest.as_ref().unwrap().is_too_slow
    };
    assert_eq!(
        [0.0, 0.05, 0.1, 0.2].map(is_too_slow),
        [true, true, false, false]
    );
}

/// Each version moves all its four machines by up to 3 %, as a layout of the program does. Of 200
/// histories without a change the newest version is called slower or faster in 5 % (10; 26 or more
/// with a chance below 10^-5), and a change is found in at most a few.
#[test]
fn machines_that_measure_a_version_are_no_four_versions() {
    let (mut called, mut changed) = (0, 0);
    for history in 0..200 {
        let rows = rows(25, 4, |version, machine| {
            let layout = 1.0 + 0.03 * wobble(history * 1000 + version);
            1000.0 * (1.0 + machine as f64) * layout
        });
        let found = analyze(Path::new("h"), &rows, |_| true, &Options::default());
        let of = &found.benchmarks[0];
        let verdict = of.newest.as_ref().unwrap().verdict;
        called += u32::from(verdict != NewestVerdict::NoChangeFound);
        changed += u32::from(!of.changes.is_empty());
    }
    assert!((1..26).contains(&called), "{called}");
    assert!(changed < 6, "{changed}");
}

/// Two machines measured each version, and the newest so far on one of them alone, 10 % slower.
#[test]
fn a_version_is_judged_by_the_machines_that_have_measured_it() {
    let mut all = rows(20, 2, |version, machine| {
        1000.0 * (1.0 + machine as f64) * if version == 19 { 1.1 } else { 1.0 }
    });
    all.retain(|row| row.version != "v19" || row.machine == "m1");
    let history = analyze(Path::new("h"), &all, |_| true, &Options::default());
    let newest = history.benchmarks[0].newest.as_ref().unwrap();
    assert_eq!(newest.verdict, NewestVerdict::Slower);
    assert!((newest.ratio.value - 1.1).abs() < 0.02, "{newest:?}");
}

/// A benchmark that was removed is not judged, and one whose machines are all new is not either.
#[test]
fn what_cannot_be_judged_says_why() {
    let mut all = rows(12, 1, |_, _| 1000.0);
    for row in &mut all {
        row.benchmark = "removed".to_owned();
    }
    all.retain(|row| row.version != "v11");
    let kept = rows(12, 1, |_, _| 1000.0);
    let rows: Vec<Row> = all.into_iter().chain(kept).collect();
    let mut rows = rows;
    rows.sort_by(|a, b| a.unix_s.total_cmp(&b.unix_s));
    let history = analyze(Path::new("h"), &rows, |_| true, &Options::default());
    assert!(history.benchmarks[0].newest.is_some());
    let why = history.benchmarks[1].not_judged.as_deref().unwrap();
    assert!(why.contains("no measurement"), "{why}");
    for row in &mut rows {
        row.machine.clone_from(&row.version);
    }
    let history = analyze(Path::new("h"), &rows, |_| true, &Options::default());
    let why = history.benchmarks[0].not_judged.as_deref().unwrap();
    assert!(why.contains("--machine"), "{why}");
    assert_eq!(history.benchmarks[0].changes, []);
}

/// Times that cannot be are no measurements.
#[test]
fn impossible_times_are_left_out() {
    let mut all = rows(10, 1, |_, _| 1000.0);
    for (row, ns) in all.iter_mut().zip([0.0, -5.0, f64::NAN, f64::INFINITY]) {
        row.time_ns = ns;
    }
    let history = analyze(Path::new("h"), &all, |_| true, &Options::default());
    let points = &history.benchmarks[0].points;
    assert!(
        points
            .iter()
            .all(|point| (990.0..1010.0).contains(&point.time_ns)),
        "{points:?}"
    );
    assert_eq!(points.len(), 9, "of the first version nothing is left");
    assert!(
        analyze(Path::new("h"), &[], |_| true, &Options::default())
            .benchmarks
            .is_empty()
    );
}
