//! Two call trees by hand, and simulated runs of which one path changes.

use std::path::Path;

use undertick_report::compare::{Comparison, Side, Source};
use undertick_report::survey::Host;

use super::super::input::{Run, Runs};
use super::super::{Input, Options, compare_as};
use super::*;

/// A path: its names with `/` between them, its calls, total and self time, the typical time of a
/// call with half its interval.
type Given<'a> = (&'a str, f64, f64, f64, f64, Option<f64>);

/// Begins the name of a role.
const ROLE: &str = "role ";

fn paths(given: &[Given<'_>]) -> Vec<PathFigure> {
    let place = |id: &str| given.iter().position(|of| of.0 == id);
    let name = |id: &str| id.rsplit('/').next().unwrap_or(id).to_owned();
    (given.iter())
        .map(|&(id, calls, total, own, call, half)| PathFigure {
            name: name(id).replace(ROLE, ""),
            is_role: name(id).starts_with(ROLE),
            parent: id.rsplit_once('/').and_then(|(around, _)| place(around)),
            shares_name: given.iter().filter(|of| name(of.0) == name(id)).count() > 1,
            side: PathSide {
                calls,
                total_ns: Some(total),
                self_ns: Some(own),
                call_ns: (!name(id).starts_with(ROLE)).then_some(call),
            },
            typical: half.map(|half| estimate(call, half)),
        })
        .collect()
}

fn estimate(value: f64, half: f64) -> Estimate {
    Estimate {
        value,
        interval: Interval::new(value - half, value + half),
        level: 0.95,
        unit: "ns".to_owned(),
        method: String::new(),
        n: 1000,
        n_effective: 100.0,
        notes: Vec::new(),
    }
}

fn source(file: &str, runs: Option<u64>) -> Source {
    Source {
        file: file.to_owned(),
        kind: "report".to_owned(),
        host: Host::default(),
        begun_unix_s: 0.0,
        runs,
    }
}

fn one(file: &str, given: &[Given<'_>]) -> Input {
    Input::One(Side {
        about: source(file, None),
        metrics: Vec::new(),
        paths: paths(given),
        interrupted: false,
        is_one_run: true,
    })
}

fn compared(a: Input, b: Input) -> Comparison {
    compare_as(a, b, &Options::at_level(0.95)).unwrap()
}

/// `parse` stands in two places of A and in one of B, which has `plan` instead. Half-widths of 1 %
/// bear a difference of 30 %.
#[test]
fn paths_of_both_are_one_tree() {
    let a = [
        ("main", 1.0, 1000.0, 100.0, 1000.0, Some(10.0)),
        ("main/parse", 10.0, 500.0, 500.0, 50.0, None),
        ("main/reply", 4.0, 400.0, 200.0, 100.0, Some(1.0)),
        ("main/reply/parse", 4.0, 200.0, 200.0, 50.0, None),
    ];
    let b = [
        ("main", 1.0, 1004.0, 104.0, 1004.0, Some(10.0)),
        ("main/plan", 1.0, 10.0, 10.0, 10.0, Some(1.0)),
        ("main/parse", 10.0, 370.0, 370.0, 37.0, Some(1.0)),
        ("main/reply", 4.0, 520.0, 520.0, 130.0, Some(1.0)),
    ];
    let found = compared(one("a", &a), one("b", &b)).paths;
    let names: Vec<(&str, Option<u32>, u32)> = (found.iter())
        .map(|path| (path.name.as_str(), path.parent, path.depth))
        .collect();
    assert_eq!(
        names,
        [
            ("main", None, 0),
            ("parse", Some(0), 1),
            ("reply", Some(0), 1),
            ("parse", Some(2), 2),
            ("plan", Some(0), 1),
        ]
    );
    let words: Vec<&str> = found.iter().map(|path| path.words.as_str()).collect();
    assert_eq!(words[0], "no difference larger than 1.9 %");
    assert!(
        words[1].contains("several paths have this name"),
        "{}",
        words[1]
    );
    assert_eq!(words[2], "slower by 30.0 %");
    assert_eq!((words[3], words[4]), ("only in A", "only in B"));
    let verdicts: Vec<Verdict> = found.iter().map(|path| path.verdict).collect();
    use Verdict::{Alike, CannotTell, Slower};
    assert_eq!(
        verdicts,
        [Alike, CannotTell, Slower, CannotTell, CannotTell]
    );
    let work = &found[2];
    let side =
        |side: Option<PathSide>| side.map(|of| (of.calls, of.total_ns, of.self_ns, of.call_ns));
    assert_eq!(
        side(work.a),
        Some((4.0, Some(400.0), Some(200.0), Some(100.0)))
    );
    assert_eq!(
        side(work.b),
        Some((4.0, Some(520.0), Some(520.0), Some(130.0)))
    );
    assert_eq!((side(found[3].b), side(found[4].a)), (None, None));
    assert!((work.ratio.as_ref().unwrap().value - 1.3).abs() < 1e-9);
}

/// A role is compared in no time of a call; where a side has none, they are left out.
#[test]
fn roles_are_no_spans() {
    let threads = [
        ("role io", 0.0, 500.0, 0.0, 0.0, None),
        ("role io/read", 5.0, 500.0, 500.0, 100.0, Some(1.0)),
        ("role worker", 0.0, 100.0, 0.0, 0.0, None),
        ("role worker/add", 10.0, 100.0, 100.0, 10.0, Some(0.1)),
    ];
    let without = [
        ("read", 5.0, 500.0, 500.0, 130.0, Some(1.0)),
        ("add", 10.0, 100.0, 100.0, 10.0, Some(0.1)),
    ];
    let said = |a: &[Given<'_>], b: &[Given<'_>]| -> Vec<(String, u32, String)> {
        let found = compared(one("a", a), one("b", b)).paths;
        (found.into_iter())
            .map(|path| (path.name, path.depth, path.words))
            .collect()
    };
    let alike = said(&threads, &threads);
    let roles: Vec<_> = alike
        .iter()
        .filter(|(.., words)| words == "threads")
        .collect();
    assert_eq!(roles.len(), 2, "{alike:?}");
    assert_eq!((&*alike[0].0, alike[0].1, alike[1].1), ("io", 0, 1));
    let mixed = said(&threads, &without);
    assert_eq!(mixed.len(), 2, "{mixed:?}");
    assert_eq!((&*mixed[0].0, mixed[0].1), ("read", 0));
    assert_eq!(mixed[0].2, "slower by 30.0 %");
    // What both roles do has no typical call.
    let both = [
        ("role io", 0.0, 500.0, 0.0, 0.0, None),
        ("role io/read", 5.0, 500.0, 500.0, 100.0, None),
        ("role worker", 0.0, 100.0, 0.0, 0.0, None),
        ("role worker/read", 10.0, 100.0, 100.0, 10.0, None),
    ];
    let found = compared(one("a", &both), one("b", &without)).paths;
    assert_eq!(found[0].words, "not compared: several roles on one side");
    let side = found[0].a.unwrap();
    assert_eq!(
        (side.calls, side.total_ns, side.call_ns),
        (15.0, Some(600.0), None)
    );
}

#[test]
fn without_a_tree_on_one_side_there_is_none() {
    let a = [("main", 1.0, 1000.0, 100.0, 1000.0, Some(10.0))];
    assert!(compared(one("a", &a), one("b", &[])).paths.is_empty());
    let found = compared(one("a", &a), one("b", &a));
    assert_eq!(found.paths.len(), 1);
    // A chain of parents that are not there is outermost.
    let mut odd = paths(&a);
    odd[0].parent = Some(7);
    let Input::One(mut side) = one("b", &a) else {
        unreachable!()
    };
    side.paths = odd;
    assert_eq!(
        compared(one("a", &a), Input::One(side)).paths[0].parent,
        None
    );
}

/// SplitMix64, and by it a sum of twelve uniform numbers, which is nearly normal.
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// Ten runs of twenty paths in two levels; the calls of the first inner one take `ratio` times as
/// long, and scatter by 2 % from run to run.
fn runs(noise: &mut Noise, ratio: f64, name: &str) -> Input {
    let runs = (0..10).map(|run| {
        let mut ids: Vec<String> = vec!["main".to_owned()];
        ids.extend((0..19).map(|at| format!("main/path {at}")));
        let given: Vec<Given<'_>> = (ids.iter().enumerate())
            .map(|(at, id)| {
                let factor = if at == 1 { ratio } else { 1.0 };
                let call = 1000.0 * factor * (0.02 * noise.normal()).exp();
                (id.as_str(), 10.0, 10.0 * call, 0.0, call, None)
            })
            .collect();
        Run {
            name: format!("{run:04}"),
            metrics: Vec::new(),
            paths: paths(&given),
        }
    });
    Input::Runs(Runs {
        about: source(name, Some(10)),
        dir: Path::new("/nowhere").join(name),
        runs: runs.collect(),
    })
}

/// The false share is controlled at 5 %: of comparisons without a difference, at most that many call
/// any of the paths different. 22 of 200 is beyond the binomial's 1 in 10^3 only with a wrong share;
/// the seed is fixed.
#[test]
fn the_path_that_changed_is_found_and_no_other() {
    let (mut found, mut false_ones) = (0, 0);
    for seed in 0..200 {
        let mut noise = Noise(seed);
        let (a, b) = (runs(&mut noise, 1.0, "a"), runs(&mut noise, 1.1, "b"));
        let changed = compared(a, b).paths;
        found += usize::from(changed[1].verdict == Verdict::Slower);
        let same = compared(runs(&mut noise, 1.0, "a"), runs(&mut noise, 1.0, "b")).paths;
        assert!(same.iter().all(|path| path.ratio.is_some()));
        false_ones += usize::from(same.iter().any(PathChange::differs));
    }
    assert_eq!(found, 200, "10 % with 2 % of scatter");
    assert!(false_ones <= 22, "{false_ones} of 200");
}
