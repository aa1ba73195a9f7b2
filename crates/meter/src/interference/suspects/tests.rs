use rand::{RngExt as _, SeedableRng as _};

use super::*;

#[test]
fn the_kernels_words_are_read() {
    let text = "12 (a) b) (c) R 1 2 3 4 5 6 7 8 9 10 100 20 0 0 20 0 1 0 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 3 0 0";
    let (process, parent) = parse_stat(text, 1e7).unwrap();
    assert_eq!((process.name.as_str(), parent), ("a) b) (c", 1));
    assert_eq!((process.ns, process.cpu), (1.2e9, Some(3)));
    for torn in ["", "12", "12 (", "12 (x)", "12 (x) R 1 2", "12 )x( R"] {
        assert_eq!(parse_stat(torn, 1e7), None, "{torn:?}");
    }
    let text = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 100 5 6 7 8 0 0\ncpu1 1\nintr 5\n";
    let cpus: Vec<_> = parse_cpu_times(text, 10.0).collect();
    assert_eq!(cpus, [(CpuUser::Cpu(0), 190.0), (CpuUser::Steal(0), 80.0)]);
}

/// The parent of this test is a process like any other, and is seen. This one is not.
#[test]
fn others_are_seen_and_we_are_not() {
    let first = look(|| 0.0);
    let parent = std::os::unix::process::parent_id() as i32;
    assert!(first.processes.contains_key(&parent));
    assert!(!(first.processes).contains_key(&(std::process::id() as i32)));
    // Waits until a CPU has been busy for 30 ms, because ticks are 10 ms.
    let busy = |look: &Look| -> f64 {
        let of = (look.cpus.iter()).filter(|(user, _)| matches!(user, CpuUser::Cpu(_)));
        of.map(|(_, ns)| ns).sum()
    };
    let mut now = first.clone();
    while busy(&now) < busy(&first) + 30e6 {
        std::hint::black_box((0..1_000_000).sum::<u64>());
        now = look(|| 1e9);
    }
    let uses = use_between(&first, &now);
    let cpus = uses
        .iter()
        .filter(|(user, _)| matches!(user, CpuUser::Cpu(_)));
    assert!(
        cpus.map(|(_, used)| used).sum::<f64>() >= 0.03 - 1e-9,
        "{uses:?}"
    );
}

#[test]
fn a_worker_that_changes_its_name_has_not_used_all_its_time_now() {
    let look = |at_ns, processes: &[(i32, &str, f64)]| Look {
        at_ns,
        processes: (processes.iter())
            .map(|(pid, name, ns)| {
                let process = Process {
                    name: (*name).to_owned(),
                    ns: *ns,
                    at_ns,
                    cpu: None,
                };
                (*pid, process)
            })
            .collect(),
        cpus: vec![(CpuUser::Cpu(0), at_ns / 2.0)],
    };
    let before = look(0.0, &[(1, "worker-a", 900.0), (2, "x", 50.0)]);
    let after = look(
        100.0,
        &[(1, "worker-b", 910.0), (2, "y", 5.0), (3, "x", 20.0)],
    );
    let uses = use_between(&before, &after);
    for (name, used) in [("worker-b", 0.1), ("y", 0.05), ("x", 0.2)] {
        assert!((uses[&named(name)] - used).abs() < 1e-12, "{uses:?}");
    }
    assert_eq!((uses.len(), uses[&CpuUser::Cpu(0)]), (4, 0.5));
    assert_eq!(use_between(&after, &before), BTreeMap::new());
}

fn named(name: &str) -> CpuUser {
    CpuUser::Processes(name.to_owned())
}

/// 60 intervals, with a disturber in 20 of them in four runs; another process is always busy,
/// one is busy at random, and 100 hardly run.
fn run(seed: u64, disturbs: bool) -> Vec<(f64, BTreeMap<CpuUser, f64>)> {
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    (0..60)
        .map(|i| {
            let on = i % 15 >= 10;
            let slow = if on { 0.9 } else { 0.02 } + 0.08 * random.random::<f64>();
            let mut uses = BTreeMap::new();
            let hog = if on == disturbs { 0.8 } else { 0.1 };
            if disturbs {
                uses.insert(named("hog"), hog + 0.1 * random.random::<f64>());
            }
            uses.insert(named("always"), 0.9 + 0.1 * random.random::<f64>());
            uses.insert(
                named("seldom"),
                f64::from(u8::from(random.random_bool(0.3))),
            );
            for other in 0..100 {
                let little = 0.02 * random.random::<f64>();
                uses.insert(named(&format!("other {other}")), little);
            }
            (slow, uses)
        })
        .collect()
}

#[test]
fn the_disturber_is_named_and_nobody_else() {
    for seed in 0..200 {
        let found = suspects(&run(seed, true));
        let names: Vec<&CpuUser> = found.iter().map(|s| &s.user).collect();
        assert_eq!(names, [&named("hog")], "seed {seed}");
        assert!((found[0].use_when_slow - 0.85).abs() < 0.15, "{found:?}");
        assert!((found[0].use_when_clean - 0.15).abs() < 0.15, "{found:?}");
        assert_eq!(suspects(&run(seed, false)), [], "seed {seed}");
    }
}

#[test]
fn nobody_is_named_of_too_little_or_nothing() {
    assert_eq!(suspects(&[]), []);
    assert_eq!(suspects(&run(1, true)[..5]), []);
    let always: Vec<_> = run(1, true)
        .into_iter()
        .map(|(_, uses)| (1.0, uses))
        .collect();
    assert_eq!(suspects(&always), []);
}

/// Unrelated slow and busy phases, each of five intervals: 60 intervals are not 60 independent
/// ones.
#[test]
fn slow_phases_do_not_make_a_suspect() {
    let named: usize = (0..400)
        .map(|seed| {
            let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
            let phase = |random: &mut rand_chacha::ChaCha8Rng| -> Vec<f64> {
                (0..12)
                    .flat_map(|_| [f64::from(u8::from(random.random_bool(0.4))); 5])
                    .collect()
            };
            let (slow, used) = (phase(&mut random), phase(&mut random));
            let stretches: Vec<_> = (slow.into_iter().zip(used))
                .map(|(slow, used)| (slow, BTreeMap::from([(named("innocent"), used)])))
                .collect();
            suspects(&stretches).len()
        })
        .sum();
    // 12 independent phases: p < 1e-4 does not occur by chance in 400.
    assert!(named <= 1, "{named} of 400");
}
