//! Hand-made traces in files.

use std::path::Path;

use undertick_format::files::KERNEL_FILE;
use undertick_format::manifest::{Clock, Host, Kernel, KernelSource, Name, OtherThread, Part};
use undertick_format::read::Trace;
use undertick_record::kernel::rows::{Row, Sink};
use undertick_record::output::{checksum, rewrite_manifest};
use undertick_record::synthetic::{self, SyntheticRing, SyntheticTrace};
use undertick_ring::{DeschedFlag, Kind, Record};

/// One thread's records; a tick is a nanosecond, and a record takes 20.
pub struct Thread {
    pub records: Vec<Record>,
    pub now: i64,
    chance: u64,
}

impl Thread {
    pub fn new(seed: u64) -> Self {
        Self {
            records: Vec::new(),
            now: 1_000,
            chance: seed,
        }
    }

    /// A number from 0 to 1 (the high bits of a linear congruential generator).
    pub fn uniform(&mut self) -> f64 {
        self.chance = (self.chance)
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.chance >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub fn record(&mut self, event: u16, kind: Kind, payload: u32) {
        self.records.push(Record {
            ts: self.now as u64,
            payload,
            event,
            cpu: 0,
            kind,
            descheduled: DeschedFlag::No,
        });
        self.now += 20;
    }

    /// Time passes: `ns` in the mean, and 10 % more or less.
    pub fn spend(&mut self, ns: f64) {
        self.now += (ns * (0.9 + 0.2 * self.uniform())) as i64;
    }

    pub fn span(&mut self, event: u16, ns: f64) {
        self.record(event, Kind::Begin, 0);
        self.spend(ns);
        self.record(event, Kind::End, 0);
    }

    pub fn ring(self, tid: i32, name: &str) -> SyntheticRing {
        SyntheticRing {
            pid: 1,
            tid,
            name: name.to_owned(),
            records: self.records,
            true_ns: Vec::new(),
        }
    }
}

/// Writes a trace of these rings, with the names of the events from 1 on and a tick of a nanosecond.
pub fn write(path: &Path, names: &[&str], rings: &[SyntheticRing]) {
    write_at(path, 1_000_000_000, names, rings);
}

/// As [`write`], with that many ticks per second.
pub fn write_at(path: &Path, ticks_per_second: u64, names: &[&str], rings: &[SyntheticRing]) {
    let names = names.iter().zip(1..).map(|(name, event)| Name {
        pid: None,
        event,
        name: (*name).to_owned(),
    });
    let made = SyntheticTrace {
        host: Host {
            name: "made".into(),
            kernel: "none".into(),
            arch: "none".into(),
            cpus: 2,
            cpu_model: "none".into(),
        },
        command: vec!["made".into()],
        clock: Clock {
            name: "made".into(),
            ticks_per_second_numerator: ticks_per_second,
            ticks_per_second_denominator: 1,
            rate_source: "made".into(),
            rate_error_ppb: 0.0,
            granularity_ticks: 1.0,
            read_cost_ns_median: 0.0,
            anchors: Vec::new(),
            across_cpus: None,
        },
        names: names.collect(),
        started_unix_ns: 0,
        duration_ns: 1_000_000_000,
        warnings: Vec::new(),
    };
    synthetic::write(path, made, rings, &mut |_| {}).unwrap();
}

/// Adds rows of the kernel to a trace, with the names of threads of other programs.
pub fn add_kernel(path: &Path, mut rows: Vec<Row>, others: &[(i32, &str)]) {
    rows.sort_by_key(|row| row.ticks);
    let file = path.join(KERNEL_FILE);
    let mut sink = Sink::create(&file).unwrap();
    rows.into_iter().for_each(|row| sink.push(row));
    let rows = sink.finish().unwrap();
    let (bytes, crc32) = checksum(&file).unwrap();
    let mut manifest = Trace::open(path).unwrap().manifest;
    manifest.parts.insert(
        0,
        Part {
            file: KERNEL_FILE.to_owned(),
            rows,
            bytes,
            crc32,
            by_ring: false,
        },
    );
    manifest.kernel = Some(Kernel {
        sources: vec![KernelSource {
            name: "made".into(),
            used: true,
            why: String::new(),
            tells: vec!["switches".into()],
            records: rows,
            lost: 0,
            clock: "ns".into(),
            error_ns: 0.0,
        }],
        rows,
        others: (others.iter())
            .map(|&(tid, name)| OtherThread {
                tid,
                name: name.into(),
            })
            .collect(),
        ..Kernel::default()
    });
    rewrite_manifest(path, &manifest).unwrap();
}
