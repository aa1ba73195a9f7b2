//! Prints the model's figures beside the published ones.
//!
//!     cargo run --release -p undertick-cmstar --example figures [SEEDS [PARAMETERS.toml [PARTS]]]
//!
//! PARTS: some of rates, curves, pairs, zero, speeds, separated by commas.

use undertick_cmstar::load::{
    MessagePairs, MethodOne, MethodTwo, ReadingLoops, Repetition, message_pairs, method_one,
    method_two, reading_loops, speeds,
};
use undertick_cmstar::{Os, Parameters, Reading, Routine};

fn us(readings: &[Reading; 2]) -> f64 {
    let [first, second] = readings.map(|r| r.ticks.unwrap_or(0) as f64);
    2.0 * (second - first)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0)
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let seeds: u64 = words.first().and_then(|n| n.parse().ok()).unwrap_or(1);
    let parameters = match words.get(1) {
        None => Parameters::published(),
        Some(path) => {
            let text = std::fs::read_to_string(path).expect("the parameters can be read");
            Parameters::parse(&text).unwrap_or_else(|bad| panic!("{path}: {bad}"))
        }
    };
    let wanted = |part: &str| words.get(2).is_none_or(|parts| parts.contains(part));
    if wanted("rates") {
        rates(&parameters);
    }
    if wanted("curves") {
        curves(&parameters);
    }
    if wanted("pairs") {
        latencies(&parameters);
    }
    if wanted("zero") {
        (1..=seeds).for_each(|seed| zero(&parameters, seed));
    }
    if wanted("speeds") {
        let all = speeds(&parameters, Os::Medusa, 34, 1_000_000_000, 1).unwrap();
        let times: Vec<f64> = all.iter().map(|t| t.truth_ns as f64).collect();
        let least = times.iter().copied().fold(f64::MAX, f64::min);
        let most = times.iter().copied().fold(0.0, f64::max);
        println!(
            "speeds of 34 Cms within {:.2} % (4.6)",
            100.0 * (most / least - 1.0)
        );
    }
}

fn rates(parameters: &Parameters) {
    for (routine, readers, published) in [
        (Routine::Varying, 8, 53.0),
        (Routine::Varying, 30, 90.0),
        (Routine::Four, 8, 64.0),
        (Routine::Four, 30, 96.0),
        (Routine::One, 8, 23.0),
        (Routine::One, 28, 76.0),
    ] {
        let run = reading_loops(parameters, &ReadingLoops::new(Os::Medusa, routine, readers));
        let run = run.unwrap();
        let rate = run.plateau.far_per_s() / 1e3;
        println!(
            "{} {readers}: {rate:.1} k/s ({published}; {:+.1} %), clock's Kmap {:.2} busy, {:.2} there",
            routine.name(),
            100.0 * (rate / published - 1.0),
            run.plateau.kmap_busy(1),
            run.plateau.kmap_present(1),
        );
    }
}

fn curves(parameters: &Parameters) {
    for os in [Os::StarOs, Os::Medusa] {
        for routine in [Routine::Four, Routine::One, Routine::Varying] {
            if std::env::var("ONLY").is_ok_and(|o| o != format!("{os} {}", routine.name())) {
                continue;
            }
            println!(
                "{os} {}: readers, mean, sd, least, 1 %, median, 99 %, most, oldest",
                routine.name()
            );
            for readers in [
                1, 2, 4, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34,
            ] {
                let loops = ReadingLoops {
                    ramp_ns: 0,
                    length_ns: 4_000_000_000,
                    ..ReadingLoops::new(os, routine, readers)
                };
                let run = reading_loops(parameters, &loops).unwrap();
                let skip = run.passes.len() / 10;
                if run.passes.len() < 10 {
                    println!("  {readers:2}: {} passes", run.passes.len());
                    continue;
                }
                let mut all: Vec<f64> = run.passes[skip..].iter().map(us).collect();
                let ages = run.passes.iter().flatten().map(Reading::age_ns);
                let (mean, sd) = (mean(&all), variance(&all).sqrt());
                all.sort_by(f64::total_cmp);
                let at = |q: f64| all[((all.len() - 1) as f64 * q) as usize];
                println!(
                    "  {readers:2}: {mean:7.1} {sd:7.1} {:6} {:6} {:6} {:6} {:6} {:6.0}",
                    at(0.0),
                    at(0.01),
                    at(0.5),
                    at(0.99),
                    at(1.0),
                    ages.max().unwrap_or(0) as f64 / 1e3,
                );
            }
        }
    }
}

fn latencies(parameters: &Parameters) {
    for (pairs, published) in [(1, 7050.0), (2, 7960.0), (3, 9615.0)] {
        let (mut calls_us, mut words_all) = (Vec::new(), Vec::new());
        for words in [0, 50, 100, 150, 200] {
            let run = message_pairs(parameters, &MessagePairs::new(pairs, words)).unwrap();
            let latency: Vec<f64> = run
                .calls
                .iter()
                .map(|c| c.latency_ns() as f64 / 1e3)
                .collect();
            let call: Vec<f64> = run.calls.iter().map(|c| c.call_ns() as f64 / 1e3).collect();
            let blocked = run.calls.iter().filter(|c| c.server_was_blocked).count();
            println!(
                "{pairs} pairs, {words} words: latency {:.0} ({published}), sd {:.0}, call {:.0}, blocked {blocked} of {}, Kmap {:.2} busy",
                mean(&latency),
                variance(&latency).sqrt(),
                mean(&call),
                run.calls.len(),
                run.window.kmap_busy(2),
            );
            calls_us.push(mean(&call));
            words_all.push(f64::from(words));
        }
        let (x, y) = (mean(&words_all), mean(&calls_us));
        let sxy: f64 = words_all
            .iter()
            .zip(&calls_us)
            .map(|(a, b)| (a - x) * (b - y))
            .sum();
        let sxx: f64 = words_all.iter().map(|a| (a - x).powi(2)).sum();
        println!(
            "{pairs} pairs: slope {:.2} us/word (49.9 with one)",
            sxy / sxx
        );
    }
}

fn zero(parameters: &Parameters, seed: u64) {
    let k = |name: &str, all: &[Repetition], published: f64| {
        let measured: Vec<f64> = all.iter().map(|r| us(&r.measured)).collect();
        let corrected: Vec<f64> = (all.iter())
            .map(|r| us(&r.measured) - (us(&r.before) + us(&r.after)) / 2.0)
            .collect();
        let k = variance(&measured) / variance(&corrected);
        let verdict = if (k > 1.0) == (published > 1.0) {
            ""
        } else {
            "  WRONG SIDE"
        };
        println!(
            "seed {seed} {name}: k {k:.2} ({published}), error {:+.2}, before {:.1}, after {:.1}, measured {:.1} sd {:.1}, corrected sd {:.1}, n {}{verdict}",
            mean(&corrected),
            mean(&all.iter().map(|r| us(&r.before)).collect::<Vec<_>>()),
            mean(&all.iter().map(|r| us(&r.after)).collect::<Vec<_>>()),
            mean(&measured),
            variance(&measured).sqrt(),
            variance(&corrected).sqrt(),
            all.len(),
        );
    };
    for (os, routine, one, two) in [
        (Os::StarOs, Routine::Four, 0.80, 1.14),
        (Os::StarOs, Routine::One, 0.81, 1.98),
        (Os::Medusa, Routine::Four, 3.57, 1.11),
        (Os::Medusa, Routine::One, 0.68, 0.81),
    ] {
        let test = MethodOne {
            seed,
            ..MethodOne::new(parameters, os, routine)
        };
        let run = method_one(parameters, &test).unwrap();
        k(
            &format!("I  {os} {}", routine.name()),
            &run.repetitions,
            one,
        );
        let test = MethodTwo {
            seed,
            ..MethodTwo::new(parameters, os, routine)
        };
        let run = method_two(parameters, &test).unwrap();
        k(
            &format!("II {os} {}", routine.name()),
            &run.repetitions,
            two,
        );
    }
}
