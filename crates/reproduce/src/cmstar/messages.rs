//! Figures 16 and 17: latency of messages and time of remote calls, against the number of words
//! accessed and the number of pairs.

use undertick_cmstar::Reading;
use undertick_cmstar::load::{MessagePairs, PairsRun, message_pairs};
use undertick_estimate::compensation::{Correction, Paired};
use undertick_estimate::{Numbers, line};
use undertick_report::plot::{Axis, Curve, Plot, Point, Style};

use super::checks::Check;
use super::published::{CALL_US_PER_WORD, LATENCY_US, WORDS};
use super::readings::standard_deviation;
use super::{Context, item};
use undertick_experiment::jobs::Stopped;

/// Time between two pairs of readings of the clock process, ns: it reads nearly all the time, so that
/// a pair is never far from a reading ([`super::checks`] shows what becomes of pairs that are).
pub(super) const SAMPLE_EVERY_NS: u64 = 200_000;

/// The true and the measured time of a call, us.
pub(super) struct Times {
    pub(super) truth_us: f64,
    /// Less the nearest pairs of the clock process (Method II).
    pub(super) corrected_us: f64,
    /// Standard deviation of single results.
    sd_us: f64,
}

/// Mean latency and mean duration of a call on one machine.
pub(super) struct OfMachine {
    pub(super) latency: Times,
    call: Times,
    pub(super) check: Option<Check>,
}

pub(super) fn messages(context: &mut Context<'_>) -> Result<(), Stopped> {
    let (parameters, seeds) = (context.parameters, context.request.seeds());
    let repetitions = super::checks::repetitions(context);
    let all: Vec<MessagePairs> = (1..=LATENCY_US.len())
        .flat_map(|pairs| WORDS.map(|words| (pairs, words)))
        .flat_map(|(pairs, words)| (1..=seeds).map(move |seed| (pairs, words, seed)))
        .map(|(pairs, words, seed)| MessagePairs {
            repetitions,
            seed,
            sample_every_ns: Some(SAMPLE_EVERY_NS),
            checks: true,
            ..MessagePairs::new(pairs, words)
        })
        .collect();
    let tick_us = parameters.clock.tick_us;
    let machines = context.run(&all, |pairs| {
        let run = message_pairs(parameters, pairs).expect("the published Cms are there");
        of_machine(&run, tick_us)
    })?;
    let per_pairs = WORDS.len() * seeds as usize;
    let (mut rows, mut latencies, mut calls) = (Vec::new(), Vec::new(), Vec::new());
    for ((index, published), machines) in LATENCY_US
        .iter()
        .enumerate()
        .zip(machines.chunks(per_pairs))
    {
        let pairs = index + 1;
        let (mut latency, mut call) = (Vec::new(), Vec::new());
        for (words, machines) in WORDS.iter().zip(machines.chunks(seeds as usize)) {
            let of =
                |pick: &dyn Fn(&OfMachine) -> f64| machines.iter().map(pick).collect::<Vec<f64>>();
            let mut cells = vec![pairs.to_string(), words.to_string()];
            for (name, truth, measured, to) in [
                (
                    "latency",
                    of(&|m| m.latency.truth_us),
                    of(&|m| m.latency.corrected_us),
                    &mut latency,
                ),
                (
                    "call",
                    of(&|m| m.call.truth_us),
                    of(&|m| m.call.corrected_us),
                    &mut call,
                ),
            ] {
                let truth = context.mean(truth, "us");
                let measured = context.mean(measured, "us");
                let off = truth
                    .as_ref()
                    .zip(measured.as_ref())
                    .map(|(t, m)| m.value - t.value);
                let sd_us = match name {
                    "latency" => context.mean(of(&|m| m.latency.sd_us), "us"),
                    _ => context.mean(of(&|m| m.call.sd_us), "us"),
                }
                .map_or(f64::NAN, |sd| sd.value);
                if let Some(measured) = &measured {
                    // As printed: the bars are of single results.
                    to.push(Point {
                        x: f64::from(*words),
                        y: measured.value,
                        within: Some([measured.value - sd_us, measured.value + sd_us]),
                    });
                }
                let is_published = name == "latency" && *words == 0;
                let note = off.map_or_else(String::new, |off| {
                    format!("measured less true: {off:+.1} us")
                });
                let [_, cell] = context.item(item(
                    format!("{name}/{pairs}/{words}"),
                    format!("{name}, {pairs} pairs in each cluster, {words} words"),
                    "us",
                    is_published.then_some(*published),
                    measured,
                    note.clone(),
                ));
                cells.push(cell);
                cells.push(truth.map_or_else(|| "–".to_owned(), |t| format!("{:.0}", t.value)));
                cells.push(format!("{sd_us:.0}"));
            }
            rows.push(cells);
        }
        slope(context, pairs, &call);
        latencies.push(curve(pairs, latency));
        latencies.push(Curve {
            name: format!("published, {pairs} pairs"),
            style: Style::Published,
            points: vec![Point::new(0.0, *published)],
        });
        calls.push(curve(pairs, call));
    }
    context.table(
        "Messages and remote calls (StarOS)",
        &[
            "Published: a latency of 7050, 7960 and 9615 us with 1, 2 and 3 pairs in each cluster, that falls a \
             little as more words are accessed; the call takes 49.9 us more for each word. Measured: by the \
             simulated clock, corrected by Method II.",
        ],
        &["pairs", "words", "latency, us", "true", "sd", "call, us", "true", "sd"],
        rows,
    );
    let words = || Axis::new("words accessed", "1");
    context.plot(Plot {
        title: "Figure 16: latency of messages".to_owned(),
        text: vec!["The bars are one standard deviation of single results, as printed.".to_owned()],
        x: words(),
        y: Axis::new("latency", "us"),
        curves: latencies,
    });
    context.plot(Plot {
        title: "Figure 17: time of a remote call".to_owned(),
        text: Vec::new(),
        x: words(),
        y: Axis::new("call", "us"),
        curves: calls,
    });
    super::checks::running(context, &machines)
}

fn curve(pairs: usize, points: Vec<Point>) -> Curve {
    Curve::line(format!("{pairs} pairs in each cluster"), points)
}

/// The time that a word adds to a call.
fn slope(context: &mut Context<'_>, pairs: usize, call: &[Point]) {
    let x: Vec<f64> = call.iter().map(|p| p.x).collect();
    let y: Vec<f64> = call.iter().map(|p| p.y).collect();
    let simulated = line(&x, &y, context.request.level).map(|line| {
        let mut slope = line.slope;
        "us".clone_into(&mut slope.unit);
        slope
    });
    context.item(item(
        format!("call-slope/{pairs}"),
        format!("a remote call takes so much more for each word, {pairs} pairs in each cluster"),
        "us",
        Some(CALL_US_PER_WORD),
        simulated,
        String::new(),
    ));
}

pub(super) fn of_machine(run: &PairsRun, tick_us: f64) -> OfMachine {
    let mean =
        |values: Vec<f64>| (Numbers::new(values).mean(0.95)).map_or(f64::NAN, |mean| mean.value);
    // The latency is meaningful only if the server was waiting.
    let times = |truth: &dyn Fn(&undertick_cmstar::load::Call) -> i64, ends: [usize; 2]| {
        let calls = || {
            run.calls
                .iter()
                .filter(|call| ends[1] == 2 || call.server_was_blocked)
        };
        let measured: Vec<f64> = calls()
            .filter_map(|call| {
                let readings = call.readings?;
                corrected(&readings[ends[0]], &readings[ends[1]], &run.samples)
            })
            .map(|sample| Correction::pairs().apply(&sample) * tick_us)
            .collect();
        Times {
            truth_us: mean(calls().map(|call| truth(call) as f64 / 1e3).collect()),
            sd_us: standard_deviation(&measured),
            corrected_us: mean(measured),
        }
    };
    OfMachine {
        latency: times(&|call| call.latency_ns(), [0, 1]),
        call: times(&|call| call.call_ns(), [0, 2]),
        check: Check::from_run(run, tick_us),
    }
}

/// An elapsed time with the clock process's pairs nearest to its ends, ticks.
pub(super) fn corrected(from: &Reading, to: &Reading, samples: &[[Reading; 2]]) -> Option<Paired> {
    let ticks =
        |a: &Reading, b: &Reading| Some(b.ticks?.wrapping_sub(a.ticks?).cast_signed() as f64);
    // Nearest by what the clock shows, because the truth is not available to a measurement.
    let nearest = |to: &Reading| {
        let at = to.ticks?;
        let after = samples.partition_point(|[first, _]| first.ticks < Some(at));
        let candidates = samples.get(after.saturating_sub(1)..(after + 1).min(samples.len()))?;
        let distance = |pair: &&[Reading; 2]| pair[0].ticks.map_or(u64::MAX, |t| t.abs_diff(at));
        let pair = candidates.iter().min_by_key(distance)?;
        ticks(&pair[0], &pair[1])
    };
    Some(Paired {
        t1: nearest(from)?,
        tm: ticks(from, to)?,
        t4: nearest(to)?,
    })
}
