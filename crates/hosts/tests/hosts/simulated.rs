//! Simulated hosts, their traces and their exchanges, from a formula for each clock.

use std::path::{Path, PathBuf};

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use undertick_format::manifest::{Clock, Host, Name};
use undertick_hosts::exchanges::SyncFile;
use undertick_record::synthetic::{SyntheticRing, SyntheticTrace, write};
use undertick_ring::{DeschedFlag, Kind, Record};

/// A host: its clock's reading at each true time.
#[derive(Clone)]
pub(crate) struct Simulated {
    pub(crate) name: &'static str,
    /// Ticks per second that its trace claims, and the error of that.
    nominal_hz: u64,
    wrong: f64,
    /// Reading at true time 0.
    pub(crate) start: i64,
    pid: i32,
}

impl Simulated {
    pub(crate) fn shows(&self, true_s: f64) -> i64 {
        let hz = self.nominal_hz as f64 * (1.0 + self.wrong);
        self.start + (true_s * hz).floor() as i64
    }

    fn side(&self) -> serde_json::Value {
        serde_json::json!({
            "name": self.name,
            "clock": { "clock": "tsc" },
            "ticks_per_second_numerator": self.nominal_hz,
            "ticks_per_second_denominator": 1,
        })
    }

    /// Writes its trace, from second 1 to second 9: a row each 10 ms in two rings, whose payload is
    /// the number of the row.
    pub(crate) fn trace(&self, dir: &Path) -> PathBuf {
        let record = |ring: u32, i: u32| Record {
            ts: self.shows(moment(i)) as u64,
            payload: i,
            event: 7 + ring as u16,
            cpu: 1,
            kind: Kind::Instant,
            descheduled: DeschedFlag::No,
        };
        let ring = |ring: u32| SyntheticRing {
            pid: self.pid,
            tid: self.pid + ring as i32,
            name: format!("thread {ring} of {}", self.name),
            records: (0..800)
                .filter(|i| i % 2 == ring)
                .map(|i| record(ring, i))
                .collect(),
            true_ns: Vec::new(),
        };
        let made = SyntheticTrace {
            host: Host {
                name: self.name.to_owned(),
                kernel: String::new(),
                arch: "none".to_owned(),
                cpus: 2,
                cpu_model: String::new(),
            },
            command: vec![format!("work-{}", self.name)],
            clock: Clock {
                name: "tsc".to_owned(),
                ticks_per_second_numerator: self.nominal_hz,
                ticks_per_second_denominator: 1,
                rate_source: "definition".to_owned(),
                rate_error_ppb: 0.0,
                granularity_ticks: 1.0,
                read_cost_ns_median: 10.0,
                anchors: Vec::new(),
                across_cpus: None,
            },
            names: vec![
                Name {
                    pid: Some(self.pid),
                    event: 7,
                    name: format!("seven of {}", self.name),
                },
                Name {
                    pid: None,
                    event: 8,
                    name: format!("eight of {}", self.name),
                },
            ],
            started_unix_ns: 5,
            duration_ns: 8_000_000_000,
            warnings: vec![format!("mind {}", self.name)],
        };
        let path = dir.join(format!("{}.ut", self.name));
        write(&path, made, &[ring(0), ring(1)], &mut |_| {}).unwrap();
        path
    }
}

/// Returns the true time of a row, s.
pub(crate) fn moment(row: u32) -> f64 {
    1.0 + f64::from(row) * 0.01
}

/// Returns three hosts with one process number, different ticks, rates and offsets.
pub(crate) fn hosts() -> [Simulated; 3] {
    let host = |name, nominal_hz, wrong, start| Simulated {
        name,
        nominal_hz,
        wrong,
        start,
        pid: 4000,
    };
    [
        host("a", 2_000_000_000, 0.0, 1_000_000_000_000),
        host("b", 2_893_202_000, 60e-6, 900_000_000_000_000_000),
        host("c", 1_000_000_000, -40e-6, -3_000_000_000_000),
    ]
}

/// Writes exchanges of two hosts from second 0.5 to 9.5: one-way delays of 20 us plus a queue's.
pub(crate) fn exchanges(seed: u64, here: &Simulated, there: &Simulated, dir: &Path) -> PathBuf {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut wait = |mean: f64| -mean * (1.0 - random.random::<f64>()).ln();
    let mut stamps: Vec<[i64; 4]> = Vec::new();
    for i in 0..900 {
        let sent = 0.5 + 0.01 * f64::from(i);
        let received = sent + 20e-6 + wait(10e-6);
        let answered = received + 5e-6;
        let back = answered + 20e-6 + wait(40e-6);
        let clocks = [
            (here, sent),
            (there, received),
            (there, answered),
            (here, back),
        ];
        stamps.push(clocks.map(|(host, at)| host.shows(at)));
    }
    write_exchanges(here, there, &stamps, dir)
}

pub(crate) fn write_exchanges(
    here: &Simulated,
    there: &Simulated,
    stamps: &[[i64; 4]],
    dir: &Path,
) -> PathBuf {
    let file: SyncFile = serde_json::from_value(serde_json::json!({
        "kind": "undertick-sync",
        "schema_version": 1,
        "undertick_version": "0",
        "started_unix_ns": 5,
        "here": here.side(),
        "there": there.side(),
        "address": "10.0.0.1:7367",
        "sent": stamps.len(),
        "exchanges": stamps,
    }))
    .unwrap();
    let path = dir.join(format!("{}-{}.json", here.name, there.name));
    file.write(&path).unwrap();
    path
}
