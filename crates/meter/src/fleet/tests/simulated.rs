//! Simulated surveys of machines that are good, or bad in a known way.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use undertick_report::survey::{Better, Host as Machine, KIND as SURVEY, Metric, Scale, Survey};
use undertick_units::{Estimate, Interval};

use super::super::{Gathered, Host};

pub(super) struct Source(ChaCha8Rng);

impl Source {
    pub(super) fn seeded(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    fn uniform(&mut self) -> f64 {
        1.0 - self.0.random::<f64>()
    }

    pub(super) fn normal(&mut self) -> f64 {
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

/// Metrics of a simulated survey: name, group, usual value, scatter between machines (logarithms),
/// error of a measurement.
pub(super) fn quantities() -> Vec<(String, &'static str, f64, f64, f64)> {
    let mut all = vec![
        ("clock.step".to_owned(), "clocks", 10.0, 0.0, 0.0),
        ("speed.typical".to_owned(), "speed", 3.0, 0.004, 0.002),
    ];
    let groups: [(&str, &'static str, usize, f64, f64, f64); 7] = [
        ("clock.read", "reading", 8, 25.0, 0.02, 0.01),
        ("call", "calls", 4, 200.0, 0.03, 0.02),
        ("wake", "wakeup", 14, 5e3, 0.08, 0.05),
        ("lock", "locks", 7, 20.0, 0.03, 0.02),
        ("message", "messages", 16, 8e3, 0.1, 0.05),
        ("fork", "fork", 5, 2e5, 0.06, 0.04),
        ("fault", "faults", 5, 3e3, 0.05, 0.04),
    ];
    for (name, group, n, value, scatter, error) in groups {
        all.extend((0..n).map(|i| {
            (
                format!("{name}.{i}"),
                group,
                value * (i + 1) as f64,
                scatter,
                error,
            )
        }));
    }
    all
}

/// What is wrong with a machine.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Bad {
    No,
    SlowCpu,
    Noisy,
    ClockFallback,
}

pub(super) fn survey(name: &str, model: &str, seed: u64, bad: Bad) -> Survey {
    let mut source = Source::seeded(seed);
    let speed = match bad {
        Bad::SlowCpu => 1.5_f64.ln(),
        _ => 0.01 * source.student(6),
    };
    let mut quiet = (0.15 * source.normal()).exp();
    if bad == Bad::Noisy {
        quiet = 8.0;
    }
    let metrics = quantities()
        .into_iter()
        .map(|(id, group, usual, scatter, error)| {
            let is_speed = group == "speed";
            let is_exact = group == "clocks";
            let wakes = bad == Bad::Noisy && group == "wakeup";
            let fallback = bad == Bad::ClockFallback && group == "reading";
            let factor = if wakes {
                3.0
            } else if fallback {
                20.0
            } else {
                1.0
            };
            let own = if is_speed {
                -speed
            } else if is_exact {
                0.0
            } else {
                speed
            };
            let error = error * quiet;
            let truth = own + scatter * source.student(5);
            let value = usual * factor * (truth + error * source.normal()).exp();
            // Ten repetitions: t(0.975; 9) = 2.262.
            let half = 2.262 * error * (source.chi_square(9) / 9.0).sqrt();
            Metric {
                id: id.clone(),
                group: group.into(),
                name: format!("{id}, in words"),
                estimate: Estimate {
                    value,
                    interval: Interval::new(value * (-half).exp(), value * half.exp()),
                    level: 0.95,
                    unit: if is_speed { "GHz" } else { "ns" }.into(),
                    method: "median of 10 repetitions".into(),
                    n: 10_000,
                    n_effective: 10.0,
                    notes: vec![],
                },
                includes: "made up".into(),
                better: if is_speed {
                    Better::Higher
                } else {
                    Better::Lower
                },
                scale: Scale::Ratio,
                cpu: None,
                once_a_second: None,
            }
        });
    Survey {
        schema_version: 1,
        kind: SURVEY.into(),
        host: Machine {
            name: name.into(),
            cpus: 64,
            cpu_model: model.into(),
            arch: "x86_64".into(),
            kernel: "6.1".into(),
            hypervisor: None,
            memory_bytes: None,
            clock: "tsc".into(),
            tool_version: "0.1.0".into(),
        },
        begun_unix_s: 1.7e9,
        took_s: 60.0,
        confidence: 0.95,
        interrupted: false,
        metrics: metrics.collect(),
        warnings: vec![],
        missing: vec![],
    }
}

pub(super) fn gathered(surveys: impl IntoIterator<Item = Survey>) -> Gathered {
    let hosts = surveys.into_iter().map(|survey| Host {
        name: survey.host.name.clone(),
        file: format!("{}.json", survey.host.name),
        survey,
    });
    Gathered {
        directory: "made up".into(),
        hosts: hosts.collect(),
        ..Gathered::default()
    }
}
