//! Peaks of a probe on random, known machines: the number found, and the coverage of the shares.
//! Seeded. `UNDERTICK_REPETITIONS` sets the number of runs.

use crate::known;
use crate::probe;

use known::Source;
use probe::{Machine, Noise, Ran, Stay};
use undertick_estimate::peaks::{PeakOptions, peaks};
use undertick_units::Estimate;

/// Returns the runs of a case: `few`, or the number in the environment.
fn repetitions(few: u64) -> u64 {
    std::env::var("UNDERTICK_REPETITIONS").map_or(few, |text| text.parse().expect("a number"))
}

/// Returns the smallest k with P(binomial(n, p) > k) < 1e-6.
fn at_most(n: u64, p: f64) -> u64 {
    let (mut term, mut k) = ((1.0 - p).powf(n as f64), 0);
    let mut above = 1.0 - term;
    while above >= 1e-6 && k < n {
        term *= (n - k) as f64 / (k + 1) as f64 * p / (1.0 - p);
        above -= term;
        k += 1;
    }
    k
}

fn holds(estimate: &Estimate, truth: f64) -> bool {
    let interval = estimate.interval;
    interval.lo.unwrap() <= truth && truth <= interval.hi.unwrap()
}

fn between(source: &mut Source, lo: f64, hi: f64) -> f64 {
    lo + (hi - lo) * source.uniform()
}

/// Returns the standard deviation of the logarithm of a loop's time.
fn scatter(noise: &Noise) -> f64 {
    let tail = noise.tail * noise.tail * noise.tail_share * (2.0 - noise.tail_share);
    (noise.own * noise.own + noise.burst * noise.burst + tail).sqrt()
}

/// Smallest distance of neighbouring peaks, standard deviations.
const APART: f64 = 9.0;

/// Draws 1 to 4 states of random slow-down and share, from 1 % on. The disturbers last for less
/// than a loop, for about a burst, or for many bursts, with each present about eight times.
fn random_machine(source: &mut Source, apart: f64) -> Machine {
    let states = 1 + (4.0 * source.uniform()).floor().min(3.0) as usize;
    let own = between(source, 0.003, 0.02);
    let noise = Noise {
        own,
        burst: own * between(source, 0.0, 0.5),
        tail_share: between(source, 0.0, 0.5),
        tail: own * between(source, 0.0, 2.0),
        reference: between(source, 0.001, 0.005),
        ..Machine::default().noise
    };
    let gap = apart * scatter(&noise);
    let mut slowdown = 1.0;
    let mut machine = Machine {
        states: vec![(1.0, 1.0)],
        noise,
        bursts: between(source, 200.0, 600.0) as usize,
        loops: between(source, 20.0, 60.0) as usize,
        drift: between(source, 0.0, 0.06),
        jitter: between(source, 0.2, 0.7),
        clock_s: [0.0, 10e-9, 100e-9][(3.0 * source.uniform()).floor().min(2.0) as usize],
        ..Machine::default()
    };
    // Shares are spread evenly on a logarithmic scale; the baseline has the rest.
    let mut least = 1.0_f64;
    for _ in 1..states {
        slowdown *= (gap * (1.0 + 2.0 * source.exponential())).exp().min(3.0);
        let share = 0.01 * 28.0_f64.powf(source.uniform());
        least = least.min(share);
        machine.states.push((share, slowdown));
        machine.states[0].0 -= share;
    }
    let longest = machine.bursts as f64 * least / 8.0;
    machine.stay = match source.uniform() {
        u if u < 0.3 => Stay::Loop,
        _ => Stay::Grid(between(source, 0.0_f64.max(0.05 * longest), longest)),
    };
    machine
}

/// Returns whether each state has at least 1 % of the time or of the loops in this run.
fn all_there(ran: &Ran) -> bool {
    (ran.time.iter().zip(&ran.loops)).all(|(time, loops)| time.max(*loops) >= 0.01)
}

/// Draws a random machine and its run, again if a state did not occur.
fn random_run(seed: &mut u64, apart: f64) -> (Machine, Ran) {
    loop {
        let mut source = Source::new(20_000, *seed);
        *seed += 1;
        let machine = random_machine(&mut source, apart);
        let ran = machine.run(&mut source);
        if all_there(&ran) {
            return (machine, ran);
        }
    }
}

/// Prints a table of the number of peaks by their distance.
#[test]
#[ignore = "prints a table"]
fn prints_separation() {
    let runs = repetitions(300);
    for apart in [5.0, 6.0, 7.0, 8.0, 9.0, 12.0] {
        let mut seed = 1_000_000;
        let (mut fewer, mut more) = (0, 0);
        for _ in 0..runs {
            let (machine, ran) = random_run(&mut seed, apart);
            let found = peaks(&ran.samples, &PeakOptions::default()).unwrap();
            fewer += u64::from(found.peaks.len() < machine.states.len());
            more += u64::from(found.peaks.len() > machine.states.len());
        }
        println!("| {apart} | {fewer} fewer | {more} more | of {runs} |");
    }
}

#[test]
#[ignore = "long: cargo xtask test --all"]
fn random_machines() {
    let runs = repetitions(500);
    let (mut right, mut intervals, mut held) = (0, 0, [0; 3]);
    let mut by_states = [[0_u64; 2]; 4];
    let mut halves = [Vec::new(), Vec::new()];
    let mut seed = 0;
    for run in 0..runs {
        let (machine, ran) = random_run(&mut seed, APART);
        let found = peaks(&ran.samples, &PeakOptions::default()).unwrap();
        let states = machine.states.len();
        by_states[states - 1][0] += 1;
        if found.peaks.len() != states {
            println!(
                "run {run}: {} found, {states} there, effective {:.0} of {}: {machine:?}",
                found.peaks.len(),
                found.n_effective,
                found.n
            );
            continue;
        }
        right += 1;
        by_states[states - 1][1] += 1;
        if states == 1 {
            continue;
        }
        for (state, peak) in found.peaks.iter().enumerate() {
            intervals += 1;
            let each = [
                (&peak.time_share, ran.time[state]),
                (&peak.sample_share, ran.loops[state]),
            ];
            for (i, (estimate, truth)) in each.into_iter().enumerate() {
                held[i] += u64::from(holds(estimate, truth));
                halves[i].push(estimate.interval.half_width().unwrap());
            }
            // The baseline's peak contains it by definition.
            held[2] += u64::from(holds(&peak.slowdown, machine.states[state].1));
        }
    }
    let median = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    println!(
        "{right} of {runs} right, by states (runs, right) {by_states:?}; of {intervals} intervals hold the truth: time \
         {} ({:.2} %), samples {} ({:.2} %), slow-down {}; median half-width {:.4}, {:.4}",
        held[0],
        100.0 * held[0] as f64 / intervals as f64,
        held[1],
        100.0 * held[1] as f64 / intervals as f64,
        held[2],
        median(&mut halves[0]),
        median(&mut halves[1]),
    );
    assert!(right as f64 >= 0.95 * runs as f64, "{right} of {runs}");
    for held in held {
        assert!(
            held as f64 >= 0.93 * intervals as f64,
            "{held} of {intervals}"
        );
    }
}

/// Returns machines without disturbance.
fn undisturbed() -> Vec<(&'static str, Machine)> {
    let plain = Machine::default();
    let noisy = |change: fn(&mut Noise)| {
        let mut machine = plain.clone();
        change(&mut machine.noise);
        machine
    };
    vec![
        ("plain", plain.clone()),
        ("neighbours go together", noisy(|n| n.along = 0.9)),
        ("bursts differ by half as much", noisy(|n| n.burst = 0.005)),
        ("bursts differ as much", noisy(|n| n.burst = 0.01)),
        (
            "bursts differ by three times as much",
            noisy(|n| n.burst = 0.03),
        ),
        (
            "bursts differ as much, and it lasts for ten",
            noisy(|n| {
                n.burst = 0.01;
                n.lasting = 0.9;
            }),
        ),
        (
            "bursts differ by three times as much, and it lasts for a hundred",
            noisy(|n| {
                n.burst = 0.03;
                n.lasting = 0.99;
            }),
        ),
        (
            "bursts differ, now and then by much",
            noisy(|n| {
                n.burst = 0.01;
                n.now_and_then = true;
            }),
        ),
        (
            "bursts differ by three times as much, now and then by more",
            noisy(|n| {
                n.burst = 0.03;
                n.now_and_then = true;
            }),
        ),
        (
            "60 bursts that differ, now and then by much",
            Machine {
                bursts: 60,
                loops: 100,
                ..noisy(|n| {
                    n.burst = 0.01;
                    n.now_and_then = true;
                })
            },
        ),
        (
            "30 bursts that differ by three times as much, now and then by more",
            Machine {
                bursts: 30,
                loops: 100,
                ..noisy(|n| {
                    n.burst = 0.03;
                    n.now_and_then = true;
                })
            },
        ),
        (
            "skewed",
            noisy(|n| {
                n.tail_share = 0.5;
                n.tail = 0.05;
            }),
        ),
        ("outliers over octaves", noisy(|n| n.outliers = 0.03)),
        (
            "much drift",
            Machine {
                drift: 0.2,
                ..plain.clone()
            },
        ),
        (
            "drift without a reference",
            Machine {
                with_reference: false,
                ..plain.clone()
            },
        ),
        (
            "little noise, drift without a reference",
            Machine {
                with_reference: false,
                ..noisy(|n| {
                    n.own = 0.002;
                    n.tail = 0.002;
                })
            },
        ),
        (
            "a clock of 1 %",
            Machine {
                clock_s: 500e-9,
                drift: 0.0,
                with_reference: false,
                ..plain.clone()
            },
        ),
        (
            "a clock of 1 %, drift",
            Machine {
                clock_s: 500e-9,
                ..plain.clone()
            },
        ),
        (
            "one burst",
            Machine {
                bursts: 1,
                loops: 5000,
                ..plain.clone()
            },
        ),
        (
            "one burst whose neighbours go together",
            Machine {
                bursts: 1,
                loops: 5000,
                ..noisy(|n| n.along = 0.95)
            },
        ),
        (
            "ten bursts that differ",
            Machine {
                bursts: 10,
                ..noisy(|n| n.burst = 0.01)
            },
        ),
        (
            "few samples",
            Machine {
                bursts: 20,
                loops: 5,
                ..plain.clone()
            },
        ),
    ]
}

#[test]
#[ignore = "long: cargo xtask test --all"]
fn one_peak_is_one_peak() {
    let runs = repetitions(100);
    let allowed = at_most(runs, PeakOptions::default().false_alarm);
    let mut worst = Vec::new();
    for (case, (name, machine)) in undisturbed().into_iter().enumerate() {
        let mut effective = 0.0;
        let alarms = (0..runs)
            .filter(|&run| {
                let mut source = Source::new(21_000 + case as u64, run);
                let ran = machine.run(&mut source);
                let found = peaks(&ran.samples, &PeakOptions::default()).unwrap();
                effective += found.n_effective / found.n as f64 / runs as f64;
                found.peaks.len() != 1
            })
            .count() as u64;
        println!("{name}: {alarms} of {runs}, effective {effective:.3}");
        if alarms > allowed {
            worst.push(format!("{name}: {alarms} of {runs}"));
        }
    }
    assert!(worst.is_empty(), "more than {allowed}: {worst:?}");
}

/// Prints a table of the number of bursts in which a disturber must be seen.
#[test]
#[ignore = "prints a table"]
fn prints_power() {
    let runs = repetitions(200);
    for burst in [0.0, 0.01, 0.03] {
        for share in [0.02, 0.05, 0.1, 0.3] {
            let found = [20, 40, 80, 160, 320, 640].map(|bursts| {
                let mut machine = Machine {
                    states: vec![(1.0 - share, 1.0), (share, 2.4)],
                    stay: Stay::Grid(3.0),
                    bursts,
                    loops: 100,
                    ..Machine::default()
                };
                machine.noise.burst = burst;
                let right = (0..runs)
                    .filter(|&run| {
                        let ran = machine.run(&mut Source::new(22_000, run));
                        let found = peaks(&ran.samples, &PeakOptions::default()).unwrap();
                        found.peaks.len() == 2
                    })
                    .count();
                format!("{:5.1}", 100.0 * right as f64 / runs as f64)
            });
            println!("| {burst} | {share} | {} |", found.join(" | "));
        }
    }
}
/// Prints a table of the errors of shares, loss and slow-down, and the widths of their intervals.
#[test]
#[ignore = "prints a table"]
fn prints_widths() {
    let runs = repetitions(300);
    for (share, slow) in [(0.3, 2.4), (0.05, 2.4), (0.3, 1.2)] {
        for stay in [
            Stay::Loop,
            Stay::Grid(0.1),
            Stay::Grid(0.3),
            Stay::Grid(1.0),
            Stay::Grid(5.0),
            Stay::Grid(30.0),
        ] {
            let machine = Machine {
                states: vec![(1.0 - share, 1.0), (share, slow)],
                stay,
                ..Machine::default()
            };
            let mut rows = [[0.0; 4]; 4];
            let mut right = 0.0;
            for run in 0..runs {
                let ran = machine.run(&mut Source::new(23_000, run));
                let found = peaks(&ran.samples, &PeakOptions::default()).unwrap();
                if found.peaks.len() != 2 {
                    continue;
                }
                right += 1.0;
                let peak = &found.peaks[1];
                let loss = ran.time[1] * (1.0 - 1.0 / slow);
                let each = [
                    (&peak.time_share, ran.time[1]),
                    (&peak.sample_share, ran.loops[1]),
                    (&found.mean_loss, loss),
                    (&peak.slowdown, slow),
                ];
                for (row, (estimate, truth)) in rows.iter_mut().zip(each) {
                    row[0] += estimate.value - truth;
                    row[1] += (estimate.value - truth).powi(2);
                    row[2] += estimate.interval.half_width().unwrap();
                    row[3] += f64::from(u8::from(holds(estimate, truth)));
                }
            }
            let words = rows.map(|row| {
                format!(
                    "{:+.4} {:.4} {:.4} {:.0}",
                    row[0] / right,
                    (row[1] / right).sqrt(),
                    row[2] / right,
                    100.0 * row[3] / right
                )
            });
            println!(
                "| {share} | {slow} | {stay:?} | {right} | {} |",
                words.join(" | ")
            );
        }
    }
}
