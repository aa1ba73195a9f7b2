//! The fuzz targets on stable: every seed unchanged, and with a number of random changes. The seeds
//! include what libFuzzer found (`cargo xtask fuzz`).
//!
//! For more changes, or others: UNDERTICK_FUZZ_CHANGES=100000 UNDERTICK_FUZZ_SEED=7.

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

#[path = "../../../fuzz/src/lib.rs"]
#[allow(dead_code, reason = "libFuzzer uses the rest")]
mod targets;

/// Number of changed seeds for each target.
const CHANGES: u64 = 1500;
/// No target needs longer for a few kilobytes, even on a busy machine.
const LONGEST: Duration = Duration::from_secs(20);

fn seeds(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let mut all: Vec<_> = std::fs::read_dir(dir.join(target))
        .expect("seeds of each target")
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect();
    all.sort();
    all
}

/// Runs a target; a failure reports the input.
fn tried(name: &str, target: fn(&[u8]), bytes: &[u8], what: &str) {
    let started = Instant::now();
    let ran = catch_unwind(|| target(bytes));
    let took = started.elapsed();
    if ran.is_err() || took > LONGEST {
        let kept = std::env::temp_dir().join(format!("undertick-fuzz-{name}"));
        std::fs::write(&kept, bytes).unwrap();
        panic!(
            "{name}: {what}: {} ({took:?}); the bytes are in {}",
            if ran.is_err() {
                "panicked"
            } else {
                "took too long"
            },
            kept.display()
        );
    }
}

#[test]
fn every_seed() {
    for (name, target) in targets::TARGETS {
        let seeds = seeds(name);
        assert!(!seeds.is_empty(), "{name} has no seed");
        for (path, bytes) in seeds {
            tried(name, target, &bytes, &path.display().to_string());
        }
    }
}

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().expect("a number"))
}

#[test]
fn changed_seeds() {
    let changes = number("UNDERTICK_FUZZ_CHANGES", CHANGES);
    let first = number("UNDERTICK_FUZZ_SEED", 0);
    for (name, target) in targets::TARGETS {
        let seeds = seeds(name);
        for change in 0..changes {
            let seed = first.wrapping_mul(1 << 32) + change;
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let (path, whole) = &seeds[random.random_range(0..seeds.len())];
            let (_, other) = &seeds[random.random_range(0..seeds.len())];
            let bytes = changed(whole, other, &mut random);
            let what = format!("{} changed, seed {seed}", path.display());
            tried(name, target, &bytes, &what);
        }
    }
}

/// Numbers at which programs break.
const EDGES: [u64; 12] = [
    0,
    1,
    15,
    16,
    0x7f,
    0xff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    i64::MAX as u64,
    1 << 63,
    u64::MAX,
];
/// Such values as text.
const WORDS: [&str; 14] = [
    "0",
    "-1",
    "1e308",
    "-1e308",
    "NaN",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551616",
    "null",
    "[",
    "{",
    "\"",
    "\n",
    "\u{fffd}",
];

fn changed(whole: &[u8], other: &[u8], random: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    for _ in 0..random.random_range(1..8) {
        let at = random.random_range(0..=bytes.len());
        let length = random.random_range(0..=(bytes.len() - at).min(64));
        match random.random_range(0..8) {
            0 if at < bytes.len() => bytes[at] = random.random(),
            1 if at < bytes.len() => bytes[at] ^= 1 << random.random_range(0..8),
            2 => bytes.truncate(at),
            3 => drop(bytes.splice(at..at + length, [])),
            4 => {
                let edge = EDGES[random.random_range(0..EDGES.len())].to_le_bytes();
                let width = 1 << random.random_range(0..4);
                let end = (at + width).min(bytes.len());
                bytes.splice(at..end, edge[..width].iter().copied());
            }
            5 => {
                let word = WORDS[random.random_range(0..WORDS.len())];
                bytes.splice(at..at + length.min(4), word.bytes());
            }
            _ if !other.is_empty() => {
                let from = random.random_range(0..other.len());
                let to = random.random_range(from..=other.len().min(from + 4096));
                bytes.splice(at..at, other[from..to].iter().copied());
            }
            _ => {}
        }
    }
    bytes.truncate(1 << 16);
    bytes
}
