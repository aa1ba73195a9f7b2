//! How often `compare --bench` calls equal programs different, and how often it finds a benchmark that
//! takes 3 % longer.

use serde_json::Value;

use super::peers_of_registries::{compile, installed};
use super::programs::Hogs;
use super::undertick;
use crate::run::{Scratch, command};

/// What runs beside a comparison: busy loops.
const SCENES: [(&str, usize); 3] = [
    ("quiet", 0),
    ("beside a busy loop", 1),
    ("beside two busy loops", 2),
];
/// The benchmark that differs, and by what ratio.
const CHANGED: &str = "BM_changed";
const RATIO: f64 = 1.03;

/// What came of some comparisons.
#[derive(Default)]
struct Counted {
    suites: u32,
    /// Suites in which a benchmark that does not differ is called different.
    red: u32,
    /// Suites in which the one that differs is found.
    found: u32,
    /// Intervals of that one that hold the ratio.
    held: u32,
    rounds: Vec<u64>,
}

/// `suites` of each kind in each scene, of `time` each, e.g. `60s`.
pub fn measure(suites: usize, time: &str) -> Result<(), String> {
    installed(&["libbenchmark-dev"])?;
    let scratch = Scratch::new("gate")?;
    let [old, same, new] = [(0, "old"), (0, "same"), (3, "new")].map(|(per_cent, name)| {
        let built = compile(
            &scratch,
            "suite.cpp",
            &["-lbenchmark", &format!("-DPER_CENT={per_cent}")],
        )?;
        let to = scratch.path(name);
        std::fs::rename(&built, &to).map_err(|e| format!("{to}: {e}"))?;
        Ok::<String, String>(to)
    });
    let (old, same, new) = (old?, same?, new?);
    println!(
        "{suites} comparisons of {time} of equal programs, and of one with a benchmark that takes 3 % longer, in turn; \
         20 benchmarks in each"
    );
    for (scene, loops) in SCENES {
        let (mut equal, mut changed) = (Counted::default(), Counted::default());
        for _ in 0..suites {
            let _beside = Hogs::start(loops)?;
            equal.add(&compared(&old, &same, time)?, 1.0);
            changed.add(&compared(&old, &new, time)?, RATIO);
        }
        println!(
            "{scene}: equal programs called different in {} of {} suites (target 1 %), {:?} rounds in the middle; 3 % found in {} \
             of {} (target 80 %), its interval holds 1.03 in {}, another called different in {}",
            equal.red,
            equal.suites,
            middle(&mut equal.rounds),
            changed.found,
            changed.suites,
            changed.held,
            changed.red
        );
    }
    Ok(())
}

/// The document of a comparison.
fn compared(a: &str, b: &str, time: &str) -> Result<Value, String> {
    let undertick = undertick();
    let words = [
        &undertick, "compare", "--bench", a, b, "--for", time, "--json", "--quiet",
    ];
    let said = command(&words)
        .output()
        .map_err(|e| format!("{undertick}: {e}"))?;
    serde_json::from_slice(&said.stdout)
        .map_err(|e| format!("{e}: {}", String::from_utf8_lossy(&said.stderr)))
}

impl Counted {
    fn add(&mut self, found: &Value, ratio: f64) {
        self.suites += 1;
        self.rounds.extend(found["sequential"]["rounds"].as_u64());
        let mut is_red = false;
        for row in found["rows"].as_array().into_iter().flatten() {
            let verdict = row["verdict"].as_str().unwrap_or_default();
            let differs = verdict == "slower" || verdict == "faster";
            if row["id"] == CHANGED {
                let bound = |at: usize| row["ratio"]["interval"][at].as_f64().unwrap_or(f64::NAN);
                self.held += u32::from(bound(0) <= ratio && ratio <= bound(1));
                if ratio > 1.0 {
                    self.found += u32::from(verdict == "slower");
                    continue;
                }
            }
            is_red |= differs;
        }
        self.red += u32::from(is_red);
    }
}

fn middle(of: &mut [u64]) -> Option<u64> {
    of.sort_unstable();
    of.get(of.len() / 2).copied()
}
