//! Spans by path, against programs that know what they did.

use crate::support;

use std::collections::BTreeMap;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use support::*;
use undertick_analyze::Options;
use undertick_combine::{Run, combine};
use undertick_document::{PathReport, Report};
use undertick_format::manifest::{Manifest, Thread};

/// What a program did on one path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Done {
    calls: u64,
    recursive: u64,
    /// Without recursive calls.
    total: i64,
    own: i64,
    longest: i64,
}

/// A program that calls at random, and keeps the account itself.
struct Program {
    chance: ChaCha8Rng,
    now: i64,
    ring: i32,
    rows: Vec<Row>,
    done: BTreeMap<Vec<i32>, Done>,
    /// What lies around the spans of each ring, where its thread has a role of that number.
    roles: Vec<i32>,
}

impl Program {
    fn new(seed: u64) -> Self {
        Self {
            chance: ChaCha8Rng::seed_from_u64(seed),
            now: 0,
            ring: 0,
            rows: Vec::new(),
            done: BTreeMap::new(),
            roles: Vec::new(),
        }
    }

    fn work(&mut self) -> i64 {
        let ticks = self.chance.random_range(1..50);
        self.now += ticks;
        ticks
    }

    /// Calls an event at random; `around` are the events of the open calls.
    fn call(&mut self, around: &[i32]) {
        let event = self.chance.random_range(1..6);
        let from = self.now;
        self.rows.push(begin(from, event).on(self.ring));
        let mut names = around.to_vec();
        names.push(event);
        let mut own = self.work();
        while names.len() < 7 && self.chance.random_bool(0.4) {
            self.call(&names);
            own += self.work();
        }
        self.rows.push(end(self.now, event).on(self.ring));
        self.account(&names, self.now - from, own);
    }

    /// A call inside a call of the same event belongs to that one's path, and so does what is
    /// called there.
    fn account(&mut self, names: &[i32], took: i64, own: i64) {
        let (mut path, mut is_recursive): (Vec<i32>, bool) = (Vec::new(), false);
        for name in names {
            let outer = path.iter().position(|other| other == name);
            is_recursive = outer.is_some();
            match outer {
                Some(at) => path.truncate(at + 1),
                None => path.push(*name),
            }
        }
        let role = self.roles.get(self.ring as usize).copied();
        path.splice(0..0, role);
        let done = self.done.entry(path).or_default();
        done.calls += 1;
        done.recursive += u64::from(is_recursive);
        done.longest = done.longest.max(took);
        done.total += if is_recursive { 0 } else { took };
        done.own += own;
    }
}

/// Names of the roles of [`with_roles`], by number, and how many threads each has.
const ROLES: [(&str, u32); 3] = [("worker", 3), ("io", 1), ("other threads", 1)];

/// Threads of three roles: two that differ in a number, one of that name without one, one of another,
/// and one without a name.
fn with_roles() -> (Manifest, Vec<i32>) {
    let thread = |(ring, name): (i32, &str)| Thread {
        pid: 100,
        tid: 1000 + ring,
        name: name.to_owned(),
    };
    let names = ["worker 1", "worker 22", "io", "worker"];
    let manifest = Manifest {
        threads: (0..).zip(names).map(thread).collect(),
        ..manifest()
    };
    (manifest, vec![0, 0, 1, 0, 2])
}

impl Program {
    /// Adds what it did to what others did.
    fn add_to(&self, done: &mut BTreeMap<Vec<i32>, Done>) {
        for (path, more) in &self.done {
            let all = done.entry(path.clone()).or_default();
            all.calls += more.calls;
            all.recursive += more.recursive;
            all.total += more.total;
            all.own += more.own;
            all.longest = all.longest.max(more.longest);
        }
    }
}

fn paths(report: &Report) -> BTreeMap<Vec<i32>, &PathReport> {
    let mut names: Vec<Vec<i32>> = Vec::new();
    let mut found = BTreeMap::new();
    for (at, path) in report.paths.iter().enumerate() {
        let mut name = path
            .parent
            .map_or_else(Vec::new, |outer| names[outer as usize].clone());
        assert_eq!(name.len(), path.depth as usize, "{at}");
        let role = ROLES.iter().position(|(role, _)| *role == path.name);
        assert_eq!(path.threads, role.map(|at| ROLES[at].1));
        name.push(match role {
            Some(role) => role as i32,
            None => path.name.strip_prefix("event ").unwrap().parse().unwrap(),
        });
        names.push(name.clone());
        assert!(found.insert(name, path).is_none(), "a path comes twice");
    }
    found
}

#[track_caller]
fn assert_done(report: &Report, done: &BTreeMap<Vec<i32>, Done>) {
    let found = paths(report);
    assert_eq!(
        found.keys().collect::<Vec<_>>(),
        done.keys().collect::<Vec<_>>()
    );
    for (path, done) in done {
        assert_span(found[path], done, path);
    }
}

#[track_caller]
fn assert_span(report: &PathReport, done: &Done, path: &[i32]) {
    let said = Done {
        calls: report.calls,
        recursive: report.recursive_calls,
        total: report.total.as_ref().unwrap().value.round() as i64,
        own: report.self_ns.unwrap().round() as i64,
        longest: report.max_ns.unwrap().round() as i64,
    };
    assert_eq!(said, *done, "{path:?}");
}

#[test]
fn paths_are_what_the_program_did() {
    for seed in 0..40 {
        let mut program = Program::new(seed);
        for ring in 0..4 {
            program.ring = ring;
            for _ in 0..20 {
                program.call(&[]);
            }
        }
        assert!(program.done.values().any(|done| done.recursive > 0) || seed > 0);
        let report = plain(&program.rows);
        assert_done(&report, &program.done);
        // Siblings come in the order of their totals, the longest first.
        let total = |path: &PathReport| path.total.as_ref().unwrap().value;
        for (i, a) in report.paths.iter().enumerate() {
            for b in &report.paths[i + 1..] {
                assert!(a.parent != b.parent || total(a) >= total(b));
            }
        }
        let shares: f64 = (report.paths.iter())
            .filter(|path| path.parent.is_none())
            .map(|path| path.share.unwrap())
            .sum();
        assert!((shares - 1.0).abs() < 1e-9);
    }
}

/// Threads of one role are one root, and what they call is theirs alone.
#[test]
fn threads_of_a_role_are_one_root() {
    for seed in 0..20 {
        let (manifest, roles) = with_roles();
        let mut program = Program::new(seed);
        for ring in 0..roles.len() as i32 {
            (program.ring, program.roles) = (ring, roles.clone());
            for _ in 0..20 {
                program.call(&[]);
            }
        }
        let report = report(&manifest, &Options::default(), &program.rows);
        let found = paths(&report);
        let mut sums = BTreeMap::<i32, i64>::new();
        for (path, done) in &program.done {
            if path.len() == 2 {
                *sums.entry(path[0]).or_default() += done.total;
            }
        }
        let whole: i64 = sums.values().sum();
        for (&role, &sum) in &sums {
            let found = found[&vec![role]];
            let total = found.total.as_ref().unwrap().value;
            assert_eq!((found.calls, total.round() as i64), (0, sum), "{role}");
            assert!((found.share.unwrap() - sum as f64 / whole as f64).abs() < 1e-9);
            assert_eq!(
                (found.self_ns, found.median_ns, found.mean_ns()),
                (None, None, None)
            );
        }
        assert_eq!(found.len(), program.done.len() + ROLES.len());
        for (path, done) in &program.done {
            assert_span(found[path], done, path);
        }
    }
}

/// A run in which one role alone has spans has no roles, and then the set has none.
#[test]
fn runs_have_roles_together_or_not() {
    let (manifest, roles) = with_roles();
    let mut done = BTreeMap::<Vec<i32>, Done>::new();
    let mut run = |seed: u64, rings: &[i32]| {
        let mut program = Program::new(seed);
        for &ring in rings {
            program.ring = ring;
            (0..20).for_each(|_| program.call(&[]));
        }
        program.add_to(&mut done);
        Run {
            name: seed.to_string(),
            report: report(&manifest, &Options::default(), &program.rows),
        }
    };
    let all: Vec<i32> = (0..roles.len() as i32).collect();
    let runs = [run(1, &all), run(2, &[0, 1, 3])];
    assert!(runs[0].report.has_roles() && !runs[1].report.has_roles());
    let combined = combine(&runs, 0.95).unwrap();
    assert!(!combined.has_roles());
    assert_done(&combined, &done);
    let both = [runs[0].clone(), runs[0].clone()];
    let combined = combine(&both, 0.95).unwrap();
    assert_eq!(paths(&combined).len(), paths(&runs[0].report).len());
}

/// A role is no root where all spans are its own.
#[test]
fn one_role_is_none() {
    let (manifest, _) = with_roles();
    let mut program = Program::new(3);
    for ring in [0, 1, 3] {
        program.ring = ring;
        (0..20).for_each(|_| program.call(&[]));
    }
    let report = report(&manifest, &Options::default(), &program.rows);
    assert!(!report.has_roles());
    assert_done(&report, &program.done);
}

/// Several runs: calls and times of all of them together.
#[test]
fn runs_add_up() {
    let mut done = BTreeMap::<Vec<i32>, Done>::new();
    let runs: Vec<Run> = (0..5)
        .map(|seed| {
            let mut program = Program::new(100 + seed);
            (0..30).for_each(|_| program.call(&[]));
            program.add_to(&mut done);
            Run {
                name: format!("run {seed}"),
                report: plain(&program.rows),
            }
        })
        .collect();
    assert_done(&combine(&runs, 0.95).unwrap(), &done);
}

/// A call that lost the CPU for an unknown time is no sample, and in the total. So it is the longest of
/// all calls, wherever its name has one path or two: no mean is longer than every call.
#[test]
fn the_longest_call_may_be_no_sample() {
    let mut rows = Vec::new();
    for i in 0..300 {
        let at = 10_000 * i;
        let (took, flag) = if i == 17 { (5_000, 1) } else { (10, 0) };
        rows.extend([
            begin(at, 1),
            begin(at + 1, 2),
            end(at + 1 + took, 2).flag(flag),
        ]);
        rows.push(end(at + 2 + took, 1));
        rows.extend([
            begin(at + 6_000, 3),
            begin(at + 6_001, 2),
            end(at + 6_008, 2),
        ]);
        rows.push(end(at + 6_009, 3));
    }
    let report = plain(&rows);
    let path = |names: [&str; 2]| {
        let outer = report
            .paths
            .iter()
            .position(|path| path.name == names[0])
            .unwrap();
        let inner = (report.paths.iter())
            .find(|path| path.name == names[1] && path.parent == Some(outer as u32));
        (&report.paths[outer], inner.unwrap())
    };
    let (outer, inner) = path(["event 1", "event 2"]);
    for (path, longest, median) in [(outer, 5_002.0, 12.0), (inner, 5_000.0, 10.0)] {
        assert_eq!(path.max_ns, Some(longest), "{path:?}");
        assert_eq!(path.median_ns, Some(median), "{path:?}");
        assert!(
            path.mean_ns().unwrap() > 20.0 && path.mean_ns() < path.max_ns,
            "{path:?}"
        );
    }
    let (outer, inner) = path(["event 3", "event 2"]);
    assert_eq!((outer.max_ns, inner.max_ns), (Some(9.0), Some(7.0)));
    assert_eq!(interval(&report, "event 2").culled.count, 1);
}

/// A span that is still open when the trace ends, as that around a server's whole life.
#[test]
fn spans_inside_one_that_never_ended_are_in_the_tree() {
    let mut rows = vec![begin(0, 1), begin(5, 2)];
    for call in 0..4 {
        let from = 10 + 100 * call;
        rows.extend([
            begin(from, 3),
            begin(from + 10, 4),
            end(from + 30, 4),
            end(from + 50, 3),
        ]);
    }
    rows.push(begin(900, 5));
    let report = plain(&rows);
    let found = paths(&report);
    let names: Vec<&Vec<i32>> = found.keys().collect();
    let (outer, inner) = (vec![1], vec![1, 2]);
    assert_eq!(
        names,
        [&outer, &inner, &vec![1, 2, 3], &vec![1, 2, 3, 4]],
        "5 has nothing inside"
    );
    for open in [&outer, &inner] {
        let path = found[open];
        assert!(path.is_still_open());
        assert_eq!((path.calls, path.self_ns, path.mean_ns()), (0, None, None));
        let total = path.total.as_ref().expect("at least that of those inside");
        assert_eq!((total.value, total.interval.hi), (200.0, None));
        assert_eq!(path.share, Some(1.0));
    }
    assert_eq!(
        found[&vec![1, 2, 3]].total.as_ref().map(|of| of.value),
        Some(200.0)
    );
    assert_eq!(found[&vec![1, 2, 3]].self_ns, Some(120.0));
}
