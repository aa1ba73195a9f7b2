//! Fleets of known machines: which are bad, and in what. The differences between machines are drawn
//! from heavy tails, skewed ones and two modes, of which the code under test knows nothing.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use undertick_estimate::fleet::{Column, Figure, Outliers, Quantity, Wanted, outliers};

const WANTED: Wanted = Wanted {
    false_share: 0.05,
    slowness_floor: 0.01,
    noise_floor: Some(0.1),
};
const QUANTITIES: usize = 60;

struct Source(ChaCha8Rng);

impl Source {
    fn uniform(&mut self) -> f64 {
        1.0 - self.0.random::<f64>()
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    fn chi_square(&mut self, degrees: usize) -> f64 {
        (0..degrees).map(|_| self.normal().powi(2)).sum()
    }

    fn student(&mut self, degrees: usize) -> f64 {
        self.normal() / (self.chi_square(degrees) / degrees as f64).sqrt()
    }
}

/// Draws the difference of a machine in a quantity.
fn between(source: &mut Source, quantity: usize) -> f64 {
    let scale = [0.004, 0.02, 0.05, 0.2][quantity % 4];
    match quantity % 6 {
        0 | 1 => scale * source.normal(),
        2 => scale * source.student(4),
        3 => scale * source.student(8),
        // Skewed: only upwards.
        4 => -scale * source.uniform().ln(),
        // Some machines in another mode.
        _ if source.uniform() < 0.2 => 1.0 + scale * source.normal(),
        _ => scale * source.normal(),
    }
}

/// Makes a fleet without a bad machine.
fn fleet(seed: u64, machines: usize) -> Vec<Column> {
    let mut source = Source(ChaCha8Rng::seed_from_u64(seed));
    let mut columns: Vec<Column> = (0..QUANTITIES)
        .map(|_| Column {
            figures: Vec::new(),
            floor: 0.01,
            slower: 1.0,
            is_noise: true,
        })
        .collect();
    for _ in 0..machines {
        // Common to all figures of a machine: its speed, and how quiet it is.
        let speed = 0.02 * source.student(6);
        let quiet = (0.15 * source.normal()).exp();
        for (quantity, column) in columns.iter_mut().enumerate() {
            let truth = speed + between(&mut source, quantity);
            let error = 0.01 * quiet * (1.0 + quantity as f64 % 5.0);
            column.figures.push(Some(Figure {
                value: truth + error * source.normal(),
                error: error * (source.chi_square(7) / 7.0).sqrt(),
            }));
        }
    }
    columns
}

/// Machines 11, 222, 333 slow, 444 and 555 noisy, 666 and 777 with one bad quantity.
fn spoil(columns: &mut [Column], seed: u64) -> [usize; 7] {
    let mut source = Source(ChaCha8Rng::seed_from_u64(!seed));
    for (quantity, column) in columns.iter_mut().enumerate() {
        let figure = |m: usize| column.figures[m].expect("all have all");
        let mut now = column.figures.clone();
        for slow in [11, 222, 333] {
            now[slow] = Some(Figure {
                value: figure(slow).value + 1.5_f64.ln(),
                ..figure(slow)
            });
        }
        for noisy in [444, 555] {
            let error = figure(noisy).error * 12.0;
            now[noisy] = Some(Figure {
                value: figure(noisy).value + error * source.normal(),
                error,
            });
        }
        for bad in [666, 777] {
            if quantity == 20 {
                now[bad] = Some(Figure {
                    value: figure(bad).value + 20.0_f64.ln(),
                    ..figure(bad)
                });
            }
        }
        column.figures = now;
    }
    [11, 222, 333, 444, 555, 666, 777]
}

fn reasons(found: &Outliers, machine: usize) -> Vec<Quantity> {
    let of = found.machines.iter().find(|o| o.machine == machine);
    of.map_or(Vec::new(), |o| {
        o.findings.iter().map(|f| f.quantity).collect()
    })
}

/// Of a thousand machines seven are bad: in each of 20 fleets all are found, each for its reason,
/// and at most one other.
#[test]
fn seven_of_a_thousand() {
    let (mut others, mut slow_in_all) = (0, 0);
    for seed in 0..20 {
        let mut columns = fleet(seed, 1000);
        let bad = spoil(&mut columns, seed);
        let found = outliers(&columns, WANTED);
        let machines: Vec<usize> = found.machines.iter().map(|o| o.machine).collect();
        for machine in bad {
            assert!(
                machines.contains(&machine),
                "seed {seed}: {machine} of {machines:?}"
            );
        }
        let false_alarms = machines.len() - bad.len();
        assert!(false_alarms <= 1, "seed {seed}: {:?}", found.machines);
        others += false_alarms;
        for slow in [11, 222, 333] {
            assert!(!reasons(&found, slow).is_empty(), "seed {seed}");
            slow_in_all += usize::from(reasons(&found, slow).contains(&Quantity::Slowness));
        }
        for noisy in [444, 555] {
            assert_eq!(reasons(&found, noisy), [Quantity::Noise], "seed {seed}");
        }
        for one in [666, 777] {
            assert_eq!(reasons(&found, one), [Quantity::Column(20)], "seed {seed}");
        }
    }
    // The remaining ones are found by a quantity in which they are slow.
    assert!(slow_in_all >= 40, "{slow_in_all} of 60");
    println!("{others} false alarms in 20 fleets; {slow_in_all} of 60 slow in all");
}

/// Without a bad machine any machine found is false, and at most 5 % of fleets may have one. More
/// than 14 of 60 fleets, or 27 of 200, are then rarer than 1e-6.
#[test]
fn nobody_is_bad() {
    for (machines, fleets, at_most) in [(1000, 60, 14), (40, 200, 27), (12, 200, 27)] {
        let alarms = (0..fleets)
            .filter(|seed| {
                let columns = fleet(1_000_000 + seed * 7 + machines as u64, machines);
                !outliers(&columns, WANTED).machines.is_empty()
            })
            .count();
        println!("{machines} machines: an alarm in {alarms} of {fleets} fleets");
        assert!(
            alarms <= at_most,
            "{machines} machines: {alarms} of {fleets}"
        );
    }
}

/// Missing figures count neither against their machine nor against others.
#[test]
fn missing_figures() {
    let mut columns = fleet(5, 300);
    for (quantity, column) in columns.iter_mut().enumerate() {
        for machine in 0..300 {
            if (machine + quantity) % 5 == 0 {
                column.figures[machine] = None;
            }
        }
    }
    columns[20].figures[99] = Some(Figure {
        value: 3.0,
        error: 0.01,
    });
    let found = outliers(&columns, WANTED);
    assert_eq!(found.machines.len(), 1, "{:?}", found.machines);
    assert_eq!(reasons(&found, 99), [Quantity::Column(20)]);
    // Scores of machines do not need all figures.
    assert!(found.slowness.iter().all(Option::is_some));
}

/// Of twelve machines one reads its clock 20 times more slowly: it is found.
#[test]
fn one_of_twelve() {
    let mut found_in = 0;
    for seed in 0..20 {
        let mut columns = fleet(seed, 12);
        columns[20].figures[7] = Some(Figure {
            value: 20.0_f64.ln(),
            error: 0.02,
        });
        let found = outliers(&columns, WANTED);
        found_in += usize::from(found.machines.iter().any(|o| o.machine == 7));
    }
    println!("one of twelve: found in {found_in} of 20 fleets");
    assert!(found_in >= 12, "{found_in}");
}
