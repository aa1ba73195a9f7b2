//! Measures the speed of each CPU, at several times spread over the survey.

use undertick_clock::{Source, best, cpus, rate};
use undertick_estimate::{Numbers, versus};
use undertick_report::survey::{Better, Metric, Scale};
use undertick_units::Estimate;

use super::SurveyResults;
use undertick_calibrate::core_speed::CoreSpeedBlocks;

/// Number of blocks on a CPU in a visit, 0.15 ms each.
const BLOCKS: usize = 16;
const METHOD: &str =
    "mean of visits spread over the survey, each the middle of blocks of dependent additions";

/// Results of the visits to every CPU.
pub(super) struct Speeds {
    cpus: Vec<usize>,
    /// Per visit and CPU: core cycles per tick of the counter.
    visits: Vec<Vec<Option<f64>>>,
}

impl Speeds {
    pub(super) fn new() -> Self {
        Self {
            cpus: cpus::allowed(),
            visits: Vec::new(),
        }
    }

    /// Visits each CPU in turn.
    pub(super) fn visit(&mut self) {
        let on = |cpu: usize| {
            let measured = std::thread::spawn(move || {
                cpus::pin(cpu).ok()?;
                let mut blocks = CoreSpeedBlocks::none();
                blocks.run(BLOCKS);
                let all = blocks.cycles_per_tick();
                (!all.is_empty()).then(|| median(all.to_vec()))
            });
            measured.join().ok().flatten()
        };
        self.visits
            .push(self.cpus.iter().map(|&cpu| on(cpu)).collect());
    }

    pub(super) fn add(&self, found: &mut SurveyResults, level: f64) {
        let Some(ghz) = ghz() else {
            found.lack(
                "speed.*",
                "the CPU has no counter that may be used here, so nothing to state its speed against",
            );
            return;
        };
        for metric in metrics(&self.of_cpu(ghz), level) {
            found.add(metric);
        }
        if self.cpus.len() < 2 {
            found.lack(
                "speed.spread",
                "one CPU only: there is none that it could differ from",
            );
        }
    }

    /// Speeds of each CPU at its visits, GHz.
    fn of_cpu(&self, ghz: f64) -> Vec<(usize, Vec<f64>)> {
        (self.cpus.iter().enumerate())
            .map(|(i, &cpu)| {
                let visits = self.visits.iter().filter_map(|v| v[i]);
                (cpu, visits.map(|s| s * ghz).collect())
            })
            .collect()
    }
}

/// Returns by what share the fastest CPU is faster than the slowest, from this many visits to each, with
/// an interval of `level`; `None` with one CPU, or without a counter.
pub fn spread_of_cpus(visits: usize, level: f64) -> Option<Estimate> {
    let mut speeds = Speeds::new();
    (0..visits).for_each(|_| speeds.visit());
    let metrics = metrics(&speeds.of_cpu(ghz()?), level);
    let spread = metrics.into_iter().find(|m| m.id == "speed.spread")?;
    Some(spread.estimate)
}

/// Factor from cycles per tick to cycles per nanosecond.
fn ghz() -> Option<f64> {
    let source = Source::open(best().clock)
        .ok()
        .filter(|s| s.clock().is_counter())?;
    let rate = rate::find(source, rate::SHORTEST_SPAN).ok()?.claim.rate;
    Some(rate.ticks_per_s() / 1e9)
}

/// Metrics from the speeds of each CPU at its visits, GHz.
fn metrics(of_cpu: &[(usize, Vec<f64>)], level: f64) -> Vec<Metric> {
    let mut each: Vec<(usize, Estimate)> = (of_cpu.iter())
        .filter_map(|(cpu, visits)| Some((*cpu, estimate(visits, level)?)))
        .collect();
    let visits = of_cpu.iter().map(|(_, v)| v.len()).min().unwrap_or(0);
    let typical: Vec<f64> = (0..visits)
        .map(|i| median(of_cpu.iter().map(|(_, v)| v[i]).collect()))
        .collect();
    let mut all = Vec::new();
    if let Some(typical) = estimate(&typical, level) {
        let includes = "cycles in a nanosecond by the CPU in the middle; an addition is taken to last one cycle";
        all.push(metric("speed.typical", "typical CPU", typical, includes));
    }
    let of_cpus = each.iter().map(|(cpu, speed)| Metric {
        cpu: Some(*cpu),
        ..metric(
            &format!("speed.cpu.{cpu}"),
            &format!("CPU {cpu}"),
            speed.clone(),
            "cycles in a nanosecond; an addition is taken to last one cycle",
        )
    });
    let of_cpus: Vec<Metric> = of_cpus.collect();
    each.sort_by(|a, b| a.1.value.total_cmp(&b.1.value));
    if let [(_, slowest), .., (_, fastest)] = &each[..] {
        all.push(metric(
            "speed.slowest",
            "slowest CPU",
            slowest.clone(),
            "cycles in a nanosecond by the slowest of all",
        ));
        all.extend(spread(slowest, fastest, level));
    }
    all.extend(of_cpus);
    all
}

/// How much faster the fastest CPU is than the slowest.
fn spread(slowest: &Estimate, fastest: &Estimate, level: f64) -> Option<Metric> {
    let mut ratio = versus(slowest, fastest, level).ratio?;
    ratio.value -= 1.0;
    let less = |bound: Option<f64>| bound.map(|bound| bound - 1.0);
    ratio.interval.lo = less(ratio.interval.lo);
    ratio.interval.hi = less(ratio.interval.hi);
    Some(Metric {
        better: Better::Lower,
        scale: Scale::Difference,
        ..metric(
            "speed.spread",
            "fastest CPU over slowest, less 1",
            ratio,
            "by how much CPUs differ; the two are chosen for being the ends, so it is never below 0",
        )
    })
}

fn metric(id: &str, name: &str, estimate: Estimate, includes: &str) -> Metric {
    Metric {
        better: Better::Higher,
        ..Metric::new(id, "speed", name, estimate, includes)
    }
}

fn estimate(visits: &[f64], level: f64) -> Option<Estimate> {
    let mean = Numbers::new(visits.to_vec()).mean(level)?;
    Some(Estimate {
        unit: "GHz".to_owned(),
        method: METHOD.to_owned(),
        n: (visits.len() * BLOCKS) as u64,
        n_effective: visits.len() as f64,
        ..mean
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let n = values.len();
    match n {
        0 => f64::NAN,
        _ => f64::midpoint(values[(n - 1) / 2], values[n / 2]),
    }
}

#[cfg(test)]
mod tests;
