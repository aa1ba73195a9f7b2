//! Figures 12 to 15 and the eight zero tests: the measurement of nothing, by both methods.

use super::pairs::{of_repetition, standard_deviation};
use super::published::{LARGEST_MEAN_US, ZERO_TESTS, ZeroTest};
use super::{Context, item, item_near, judged_item};
use undertick_cmstar::Parameters;
use undertick_cmstar::load::{MethodOne, MethodTwo, Repetition, method_one, method_two};
use undertick_estimate::compensation::{Method, Paired, improvement, zero_test};
use undertick_experiment::jobs::Stopped;
use undertick_report::plot::{Axis, Curve, Plot, Point, Style};

use crate::verdict::beside;

/// Width of a bin of the figures, us.
const BIN_US: f64 = 20.0;
const ENDS_US: f64 = 1500.0;

/// The repetitions of a published test on one machine.
pub(super) fn repetitions(parameters: &Parameters, test: &ZeroTest, seed: u64) -> Vec<Repetition> {
    let found = match test.method {
        1 => method_one(
            parameters,
            &MethodOne {
                seed,
                ..MethodOne::new(parameters, test.os, test.routine)
            },
        ),
        _ => method_two(
            parameters,
            &MethodTwo {
                seed,
                ..MethodTwo::new(parameters, test.os, test.routine)
            },
        ),
    };
    found.expect("the published Cms are there").repetitions
}

/// The results of the estimators for the repetitions of one machine.
struct ZeroTestResult {
    /// Corrected by the published pairs: mean in us, and k.
    mean_us: f64,
    k: Option<f64>,
    chosen: Chosen,
    uncorrected_us: Vec<f64>,
    corrected_us: Vec<f64>,
}

/// The method that the test chooses, and its correction, on repetitions that it has not seen.
struct Chosen {
    method: &'static str,
    mean_us: f64,
    k: f64,
}

/// Half of the range of k in the paper's repeated zero tests (Section 5, without interrupts: 1.01 to
/// 1.22), over their middle.
pub(super) const K_SCATTER: f64 = 0.094;
/// The column of the verdict on k.
const VERDICT: usize = 7;
/// Number of repetitions of a published zero test, as printed for Method II.
const REPETITIONS: f64 = 1000.0;

/// Blocks of repetitions; they alternate between those for the choice and those for its assessment.
const BLOCKS: usize = 64;

impl ZeroTestResult {
    fn from_samples(samples: &[Paired], method: u8, tick_us: f64, level: f64) -> Option<Self> {
        let tested = zero_test(samples, None, level, 1.0)?;
        let pairs = tested.methods.iter().find(|m| m.method == Method::Pairs)?;
        // Nothing was chosen by these samples: all of them count.
        let before: Vec<f64> = samples.iter().map(|s| s.tm).collect();
        Some(Self {
            mean_us: pairs.bias.value * tick_us,
            k: improvement(&before, &pairs.corrected, level).map(|k| k.value),
            chosen: Chosen::from_samples(samples, method, tick_us, level)?,
            uncorrected_us: samples.iter().map(|s| s.tm * tick_us).collect(),
            corrected_us: pairs.corrected.iter().map(|t| t * tick_us).collect(),
        })
    }
}

impl Chosen {
    fn from_samples(samples: &[Paired], method: u8, tick_us: f64, level: f64) -> Option<Self> {
        let blocks = samples.chunks(samples.len().div_ceil(BLOCKS).max(1));
        let (mut seen, mut unseen) = (Vec::new(), Vec::new());
        for (i, block) in blocks.enumerate() {
            let to = if i % 2 == 0 { &mut seen } else { &mut unseen };
            to.extend_from_slice(block);
        }
        let choice = zero_test(&seen, None, level, 1.0)?.choice().clone();
        let corrected: Vec<f64> = unseen.iter().map(|s| choice.correction.apply(s)).collect();
        let before: Vec<f64> = unseen.iter().map(|s| s.tm).collect();
        let (spread, was) = (standard_deviation(&corrected), standard_deviation(&before));
        Some(Self {
            method: match (choice.method, method) {
                (Method::Pairs, 2) => "clock process's pairs",
                (chosen, _) => chosen.name(),
            },
            mean_us: tick_us * corrected.iter().sum::<f64>() / corrected.len() as f64,
            k: (was / spread).powi(2),
        })
    }
}

pub(super) fn tests(context: &mut Context<'_>) -> Result<(), Stopped> {
    let (parameters, level) = (context.parameters, context.request.level);
    let tick_us = parameters.clock.tick_us;
    let all: Vec<(&ZeroTest, u64)> = (ZERO_TESTS.iter())
        .flat_map(|test| (1..=context.request.seeds()).map(move |seed| (test, seed)))
        .collect();
    let machines = context.run(&all, |(test, seed)| {
        let all = repetitions(parameters, test, *seed);
        all.iter()
            .filter_map(of_repetition)
            .collect::<Vec<Paired>>()
    })?;
    let seeds = context.request.seeds() as usize;
    let jobs: Vec<(&ZeroTest, &Vec<Paired>)> =
        all.iter().map(|(test, _)| *test).zip(&machines).collect();
    let each = context.run(&jobs, |(test, samples)| {
        ZeroTestResult::from_samples(samples, test.method, tick_us, level)
    })?;
    let mut rows = Vec::new();
    for (test, machines) in ZERO_TESTS.iter().zip(each.chunks(seeds)) {
        let machines: Vec<&ZeroTestResult> = machines.iter().flatten().collect();
        let Some(first) = machines.first() else {
            (context.found.findings).push(format!(
                "{}: too few repetitions for a zero test",
                name(test)
            ));
            continue;
        };
        rows.push(row(context, test, &machines));
        if let Some(figure) = test.figure {
            context.plot(figure_of(test, figure, first));
        }
    }
    longest(context, &each);
    let differ: Vec<String> = (rows.iter())
        .filter(|row| row[VERDICT] != "agrees")
        .map(|row| {
            format!(
                "Method {}, {}, {} ({} published, {})",
                row[0], row[1], row[2], row[5], row[6]
            )
        })
        .collect();
    context.found.findings.push(format!(
        "Zero tests: {} of {} k agree within {:.0} %, by which the paper's own repeated tests scatter{}",
        rows.len() - differ.len(),
        rows.len(),
        100.0 * K_SCATTER,
        match differ.is_empty() {
            true => ".".to_owned(),
            false => format!("; the others are {}.", differ.join("; ")),
        }
    ));
    context.table(
        "Eight zero tests",
        &[
            "Nothing is measured; the ideal is a spike at 0. k: variance before correction over that after it. \
             Method I corrects by the process's own pairs of readings, Method II by those of a clock process \
             beside it. Chosen: by our test, from half of the repetitions; its mean and k are of the other half.",
        ],
        &[
            "method", "system", "routine", "published mean, us", "mean, us", "published k", "k", "verdict",
            "chosen", "its mean, us", "its k",
        ],
        rows,
    );
    Ok(())
}

pub(super) fn name(test: &ZeroTest) -> String {
    format!(
        "Method {}, {}, {}",
        test.method(),
        test.os,
        test.routine.name()
    )
}

/// The longest of all readings of nothing: the error without correction.
fn longest(context: &mut Context<'_>, each: &[Option<ZeroTestResult>]) {
    let all = each
        .iter()
        .flatten()
        .flat_map(|found| &found.uncorrected_us);
    let longest = all.copied().fold(0.0, f64::max);
    let simulated = context.mean(vec![longest], "us");
    context.item(item_near(
        "error/uncorrected".to_owned(),
        "largest error of a reading that is not corrected, all zero tests".to_owned(),
        "us",
        Some(2000.0),
        simulated,
        "published: up to 2 ms",
    ));
}

/// The figures of one test over all machines, and a row of the table.
fn row(context: &mut Context<'_>, test: &ZeroTest, machines: &[&ZeroTestResult]) -> Vec<String> {
    let of = |pick: &dyn Fn(&ZeroTestResult) -> Option<f64>| -> Vec<f64> {
        machines.iter().filter_map(|found| pick(found)).collect()
    };
    let [mean, k, chosen_mean, chosen_k] = [
        context.mean(of(&|f| Some(f.mean_us)), "us"),
        context.mean(of(&|f| f.k), "1"),
        context.mean(of(&|f| Some(f.chosen.mean_us)), "us"),
        context.mean(of(&|f| Some(f.chosen.k)), "1"),
    ];
    // Different machines may choose different methods.
    let mut methods: Vec<&str> = machines.iter().map(|f| f.chosen.method).collect();
    methods.sort_unstable();
    methods.dedup();
    let methods = methods.join(" or ");
    let (id, what) = (format!("zero/{}", test.id()), name(test));
    // The paper's own scatter: repeated zero tests of its Section 5 gave k from 1.01 to 1.22, and a
    // mean has the standard error of its repetitions.
    let k_judged = (k.as_ref()).map(|k| beside(test.k, k, K_SCATTER * test.k, ""));
    let k_verdict = k_judged.as_ref().map_or("", |(_, said)| said.as_str());
    let k_verdict = k_verdict.split(':').next().unwrap_or_default().to_owned();
    let sd = context.mean(of(&|f| Some(standard_deviation(&f.corrected_us))), "us");
    let mean_judged = (test.mean_us.zip(mean.as_ref()).zip(sd)).map(|((published, mean), sd)| {
        beside(published, mean, 2.0 * sd.value / REPETITIONS.sqrt(), " us")
    });
    let mean_item = item(
        format!("{id}/mean"),
        format!("mean of nothing after correction, {what}"),
        "us",
        test.mean_us,
        mean,
        format!("published: all within {LARGEST_MEAN_US} us of 0"),
    );
    let [printed_mean, mean] = context.item(judged_item(mean_item, mean_judged));
    let k_item = item(
        format!("{id}/k"),
        format!("improvement factor, {what}"),
        "1",
        Some(test.k),
        k,
        String::new(),
    );
    let [printed_k, k] = context.item(judged_item(k_item, k_judged));
    let [_, chosen_mean] = context.item(item(
        format!("{id}/chosen/mean"),
        format!("mean of nothing by the method that the test chooses, {what}"),
        "us",
        None,
        chosen_mean,
        methods.clone(),
    ));
    let [_, chosen_k] = context.item(item(
        format!("{id}/chosen/k"),
        format!("its improvement factor, {what}"),
        "1",
        None,
        chosen_k,
        methods.clone(),
    ));
    vec![
        test.method().to_owned(),
        test.os.to_string(),
        test.routine.name().to_owned(),
        printed_mean,
        mean,
        printed_k,
        k,
        k_verdict,
        methods,
        chosen_mean,
        chosen_k,
    ]
}

fn figure_of(test: &ZeroTest, figure: u8, found: &ZeroTestResult) -> Plot {
    let or_none =
        |x: Option<f64>| x.map_or_else(|| "not printed".to_owned(), |x| format!("{x:.2}"));
    Plot {
        title: format!("Figure {figure}: zero elapsed time, {}", name(test)),
        text: vec![format!(
            "One machine. Corrected by the published method: mean {:.2} us, k {} (published: {}, {}). Chosen by \
             our test: {}, mean {:.2} us, k {:.2} on repetitions that it had not seen.",
            found.mean_us,
            or_none(found.k),
            or_none(test.mean_us),
            test.k,
            found.chosen.method,
            found.chosen.mean_us,
            found.chosen.k,
        )],
        x: Axis::new("elapsed time", "us"),
        y: Axis::new("share of a bin of 20 us", "1"),
        curves: vec![
            density("corrected", &found.corrected_us),
            density("before correction", &found.uncorrected_us),
        ],
    }
}

fn density(name: &str, values: &[f64]) -> Curve {
    let bins = (2.0 * ENDS_US / BIN_US) as usize;
    let mut counts = vec![0_u32; bins + 1];
    for value in values {
        let bin = ((value + ENDS_US) / BIN_US).round();
        if bin >= 0.0
            && let Some(count) = counts.get_mut(bin as usize)
        {
            *count += 1;
        }
    }
    let used = |i: &usize| counts[*i] > 0;
    let first = (0..counts.len()).find(used).unwrap_or(0);
    let last = (0..counts.len()).rfind(used).unwrap_or(0);
    let share =
        |i: usize| f64::from(counts.get(i).copied().unwrap_or(0)) / values.len().max(1) as f64;
    Curve {
        name: name.to_owned(),
        style: Style::Steps,
        is_of_previous: false,
        points: (first..=last + 1)
            .map(|i| Point::new((i as f64 - 0.5) * BIN_US - ENDS_US, share(i)))
            .collect(),
    }
}
