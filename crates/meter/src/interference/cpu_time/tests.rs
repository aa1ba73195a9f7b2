use super::super::suspects::Process;
use super::*;

/// No process has this number: they are below 2^22.
const NOBODY: i32 = (1 << 22) + 1;

/// The CPU clock of this process advances while it works, by less than the elapsed time on all
/// CPUs.
#[test]
fn the_clock_of_a_process() {
    let us = std::process::id() as i32;
    let (begun, first) = (std::time::Instant::now(), cpu_time_ns(us).unwrap());
    let mut now = first;
    while now < first + 20e6 {
        std::hint::black_box((0..100_000).sum::<u64>());
        now = cpu_time_ns(us).unwrap();
    }
    let passed = begun.elapsed().as_nanos() as f64;
    let cpus = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    // The clocks of the CPUs are read one after the other.
    let most = 1.5 * passed * cpus;
    assert!(now - first <= most, "{} of {passed}", now - first);
    // Ticks would be multiples of 10 ms, or of 1 ms at least.
    assert!((now % 1e6) > 0.0 || (first % 1e6) > 0.0, "{first}, {now}");
    assert_eq!(cpu_time_ns(NOBODY), None);
}

fn look(at_ns: f64, processes: &[(i32, &str, f64)]) -> Look {
    let of = |&(pid, name, ns): &(i32, &str, f64)| {
        let process = Process {
            name: name.to_owned(),
            ns,
            at_ns,
            cpu: None,
        };
        (pid, process)
    };
    Look {
        at_ns,
        processes: processes.iter().map(of).collect(),
        cpus: Vec::new(),
    }
}

#[test]
fn what_was_used_burst_by_burst() {
    let looks = [
        look(0.0, &[(1, "a", 1000.0), (2, "b", 0.0)]),
        look(100.0, &[(1, "a", 1050.0), (2, "b", 0.0), (3, "late", 30.0)]),
        look(200.0, &[(1, "c", 1060.0), (2, "b", 0.0), (3, "late", 10.0)]),
    ];
    let glance = |at_ns, used_ns| Glance {
        pid: 1,
        at_ns,
        used_ns,
    };
    // It ran from 20 to 70, and at 0.1 in the second interval.
    let glances = [glance(20.0, 1000.0), glance(70.0, 1050.0)];
    let times = CpuTimes::from_readings(&looks, &glances);
    let named = |name: &str| CpuUser::Processes(name.to_owned());
    let everybody: Vec<&CpuUser> = times.everybody().collect();
    assert_eq!(everybody, [&named("a"), &named("c"), &named("late")]);
    let bursts = [(0.0, 10.0), (10.0, 30.0), (40.0, 50.0), (90.0, 110.0)];
    let close = |found: &[f64], expected: &[f64]| {
        let same = found.iter().zip(expected);
        assert!(
            same.clone().all(|(a, b)| (a - b).abs() < 1e-12) && found.len() == expected.len(),
            "{found:?}, {expected:?}"
        );
    };
    close(&times.used(&named("a"), &bursts), &[0.0, 0.5, 1.0, 0.0]);
    close(&times.used(&named("c"), &bursts), &[0.0, 0.0, 0.0, 0.05]);
    // It started in the first interval; in the second, another process has its number.
    close(
        &times.used(&named("late"), &bursts),
        &[0.3, 0.3, 0.3, 0.5 * 0.3 + 0.5 * 0.1],
    );
    close(&times.used(&named("nobody"), &bursts), &[0.0; 4]);
    assert_eq!(times.unsure(&named("a"), (30.0, 80.0)), 50.0 / 50.0);
    assert_eq!(times.unsure(&named("a"), (20.0, 80.0)), 0.0);
    assert_eq!(times.unsure(&named("late"), (50.0, 150.0)), 40.0 / 100.0);
}

#[test]
fn candidates_are_who_used_a_cpu() {
    let us = std::process::id() as i32;
    let mut candidates = Candidates::default();
    let before = look(
        0.0,
        &[(us, "us", 0.0), (NOBODY, "gone", 0.0), (1, "idle", 0.0)],
    );
    let after = look(
        1000.0,
        &[(us, "us", 500.0), (NOBODY, "gone", 500.0), (1, "idle", 9.0)],
    );
    candidates.glance(|| 1.0);
    assert_eq!(candidates.glances, []);
    candidates.choose(&before, &after);
    candidates.glance(|| 2.0);
    let pids: Vec<i32> = candidates.glances.iter().map(|g| g.pid).collect();
    assert_eq!(pids, [us], "one cannot be asked, one is idle");
    // Idle now, but still read until it ends.
    candidates.choose(&after, &look(2000.0, &[(us, "us", 500.0)]));
    candidates.glance(|| 3.0);
    assert_eq!(candidates.glances.len(), 2);
    candidates.choose(&after, &look(3000.0, &[]));
    candidates.glance(|| 4.0);
    assert_eq!(candidates.glances.len(), 2);
    // If there are too many, those with the highest use stay.
    let many: Vec<(i32, &str, f64)> = (1..=40).map(|i| (i, "x", f64::from(i) * 20.0)).collect();
    candidates.choose(&look(0.0, &[]), &look(100.0, &many));
    assert_eq!(candidates.used_ns.len(), MOST);
    assert!(candidates.used_ns.keys().all(|pid| *pid > 8));
}
