//! Questions of the paper's conclusion: when do pairs of readings track the load, and how does one
//! clock serve a thousand processors?

use std::sync::Arc;

use undertick_cmstar::load::{ReadingLoops, reading_loops};
use undertick_cmstar::{
    Act, ClockId, Machine, Moment, Os, Outcome, Parameters, Program, Reading, Routine, StepInput,
    spread,
};
use undertick_estimate::compensation::{Method, Paired, zero_test};
use undertick_report::plot::{Axis, Curve, Plot, Point};
use undertick_report::reproduce::Item;

use super::pairs::{self, of_clock_process, true_us};
use super::{Context, item};
use crate::Run;
use undertick_experiment::jobs::Stopped;

/// Mean durations of a phase of the load, ms: from shorter than a reading to much longer.
const PHASES_MS: [f64; 9] = [0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0];
/// Number of Cms that read while the load is on.
const LOAD: usize = 24;
/// Numbers of Cms in the study of scale, ten in each cluster.
const CMS: [usize; 7] = [10, 20, 50, 100, 200, 500, 1000];
/// As many of them are simulated in a quick run: the largest take longest.
const QUICK_CMS: usize = 5;

pub(super) fn sweeps(context: &mut Context<'_>) -> Result<(), Stopped> {
    granularity(context)?;
    scale(context)
}

/// The on-phases of the load, common to all of its Cms.
struct Phases(Vec<(Moment, Moment)>);

impl Phases {
    /// Phases that are on and off equally long on average, with exponential durations.
    fn new(mean_ms: f64, until: Moment, seed: u64) -> Self {
        use rand::{RngExt as _, SeedableRng as _};
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let mut length = || {
            let u: f64 = random.random();
            (-(1.0 - u).ln() * mean_ms * 1e6) as u64 + 1
        };
        let (mut phases, mut at) = (Vec::new(), Moment::START);
        while at < until {
            let on = at.plus_ns(length());
            let off = on.plus_ns(length());
            phases.push((on, off));
            at = off;
        }
        Self(phases)
    }

    /// Whether the load is on at `now`, and until when this state lasts.
    fn at(&self, now: Moment) -> (bool, Moment) {
        let next = self.0.partition_point(|(_, off)| *off <= now);
        match self.0.get(next) {
            Some((on, off)) if now >= *on => (true, *off),
            Some((on, _)) => (false, *on),
            None => (false, now.plus_ns(1_000_000_000)),
        }
    }
}

/// The role of a Cm in this experiment.
enum Player {
    /// Takes four readings, repeatedly, with some work between.
    Measured(Vec<Reading>),
    /// Takes pairs of readings repeatedly: a clock process.
    Sampler(Vec<Reading>),
    /// Refers to the clock's low word while the load is on, with the local work of a reading between
    /// two references; whether it did that work. A load of whole readings could not change within
    /// one.
    Load(Arc<Phases>, bool),
}

/// Local work between two references of the load, about as in a 4-Read, ns.
const BETWEEN_NS: u64 = 100_000;

/// Work between two measurements, and between two pairs of the clock process, ns.
const PAUSE_NS: u64 = 400_000;

impl Program for Player {
    fn next(&mut self, told: StepInput) -> Act {
        let read = Act::Read {
            clock: ClockId(0),
            routine: Routine::Four,
        };
        let keep = |all: &mut Vec<Reading>, of: usize| {
            if let Outcome::Read(reading) = told.outcome {
                all.push(reading);
                if all.len().is_multiple_of(of) {
                    return Act::Work { ns: PAUSE_NS };
                }
            }
            read
        };
        match self {
            Self::Measured(all) => keep(all, 4),
            Self::Sampler(all) => keep(all, 2),
            Self::Load(phases, has_worked) => match phases.at(told.now) {
                (true, _) if *has_worked => {
                    *has_worked = false;
                    Act::Fetch {
                        clock: ClockId(0),
                        word: 0,
                    }
                }
                (true, _) => {
                    *has_worked = true;
                    Act::Work { ns: BETWEEN_NS }
                }
                (false, until) => Act::SleepUntil { until },
            },
        }
    }
}

/// Improvement factors on one machine, for each method.
fn factors(parameters: &Parameters, mean_ms: f64, length: Moment, seed: u64) -> Option<[f64; 3]> {
    let clusters = &parameters.workload.reader_clusters;
    let places = spread(&parameters.topology, clusters, LOAD + 2).ok()?;
    let mut machine = Machine::new(parameters, Os::Medusa, seed);
    let phases = Arc::new(Phases::new(mean_ms, length, seed));
    let measured = machine.start(places[0], Moment::START, Player::Measured(Vec::new()));
    let beside = machine.start(places[1], Moment::START, Player::Sampler(Vec::new()));
    for (i, place) in places[2..].iter().enumerate() {
        let at = Moment::from_us(97 * i as u64);
        machine.start(*place, at, Player::Load(Arc::clone(&phases), false));
    }
    machine.run(length);
    let (Player::Measured(own), Player::Sampler(sampled)) =
        (machine.program(measured), machine.program(beside))
    else {
        return None;
    };
    let sampled = sampled.as_chunks::<2>().0;
    let (pairs, beside): (Vec<Paired>, Vec<Paired>) = (own.as_chunks::<4>().0.iter())
        .filter_map(|readings| {
            let beside = of_clock_process(&readings[1], &readings[2], sampled)?;
            Some((pairs::own(readings)?, beside))
        })
        .unzip();
    let tested = zero_test(&pairs, Some(&beside), 0.95, 1.0)?;
    let k = |method| {
        let of = tested.methods.iter().find(|m| m.method == method)?;
        Some(of.k.as_ref()?.value)
    };
    Some([
        k(Method::Pairs)?,
        k(Method::Sampler)?,
        k(Method::ControlVariate)?,
    ])
}

fn granularity(context: &mut Context<'_>) -> Result<(), Stopped> {
    let (parameters, seeds) = (context.parameters, context.request.seeds());
    let length = match context.request.run {
        Run::Full => Moment::from_s(20),
        Run::Quick => Moment::from_s(3),
    };
    let all: Vec<(f64, u64)> = (PHASES_MS.iter())
        .flat_map(|phase| (1..=seeds).map(move |seed| (*phase, seed)))
        .collect();
    let found = context.run(&all, |(phase, seed)| {
        factors(parameters, *phase, length, *seed)
    })?;
    let names = [
        "Method I: own pairs",
        "Method II: clock process",
        "control variates",
    ];
    let mut curves = names.map(|name| Curve::line(name, Vec::new()));
    let mut rows = Vec::new();
    for (phase, machines) in PHASES_MS.iter().zip(found.chunks(seeds as usize)) {
        let mut cells = vec![format!("{phase}")];
        for (m, name) in names.iter().enumerate() {
            let ks: Vec<f64> = machines.iter().flatten().map(|k| k[m]).collect();
            let k = context.mean(ks, "1");
            if let Some(k) = &k {
                curves[m].points.push(Point::from_estimate(*phase, k));
            }
            let [_, cell] = context.item(item(
                format!(
                    "granularity/{phase}/{}",
                    ["pairs", "sampler", "control-variate"][m]
                ),
                format!("improvement factor, {name}, phases of the load of {phase} ms"),
                "1",
                None,
                k,
                String::new(),
            ));
            cells.push(cell);
        }
        rows.push(cells);
    }
    context.table(
        "When pairs track the load (Medusa, 4-Read)",
        &[
            "24 Cms refer to the clock while the load is on, word by word; it is on and off for exponential times of this mean. \
             k: variance of measured nothing over that after correction. What changes faster than a reading \
             takes, no pair can follow.",
        ],
        &["phases, ms", names[0], names[1], names[2]],
        rows,
    );
    context.plot(Plot {
        title: "Improvement factor against how slowly the load changes".to_owned(),
        text: vec![
            "1: as good as long-term averaging; 0.67: the pairs have nothing to do with it."
                .to_owned(),
        ],
        x: Axis::log("mean length of a phase of the load", "ms"),
        y: Axis::log("improvement factor k", "1"),
        curves: curves.into(),
    });
    Ok(())
}

/// What the clock's Kmap serves with the most readers whose rate is published, as simulated.
fn served(context: &Context<'_>) -> String {
    let of = |item: &&Item| item.id == "rate/medusa/4-Read/30";
    let rate = context.found.items.iter().find(of);
    match rate.and_then(|rate| Some((rate.simulated.as_ref()?.value, rate.published?))) {
        Some((simulated, published)) => format!(
            ", which serves {:.0} thousand references a second with 30 that ask (published {:.0})",
            simulated / 1e3,
            published / 1e3
        ),
        None => String::new(),
    }
}

fn scale(context: &mut Context<'_>) -> Result<(), Stopped> {
    let seeds = context.request.seeds().min(3);
    let least_ns = context.request.reading_ns() / 4;
    let sizes = match context.request.run {
        Run::Full => &CMS[..],
        Run::Quick => &CMS[..QUICK_CMS],
    };
    // Until every Cm has read about twenty times, even if many wait for the clock's Kmap.
    let length_ns = |cms: usize| least_ns.max(cms as u64 * 1_500_000);
    let routines = [
        Routine::Four,
        Routine::One,
        Routine::Latched,
        Routine::Broadcast,
    ];
    let all: Vec<(Parameters, ReadingLoops)> = (routines.iter())
        .flat_map(|routine| sizes.iter().map(|cms| (*routine, *cms)))
        .flat_map(|one| (1..=seeds).map(move |seed| (one, seed)))
        .map(|((routine, readers), seed)| {
            let mut parameters = context.parameters.clone();
            parameters.topology.clusters = (readers / 10 + 2).max(5);
            parameters.workload.reader_clusters = (2..=parameters.topology.clusters).collect();
            let loops = ReadingLoops {
                length_ns: length_ns(readers),
                ramp_ns: length_ns(readers) / 5,
                seed,
                ..ReadingLoops::new(Os::Medusa, routine, readers)
            };
            (parameters, loops)
        })
        .collect();
    let machines = context.run(&all, |(parameters, loops)| {
        let run = reading_loops(parameters, loops).expect("as many clusters as it takes");
        let between = |[first, second]: &&[Reading; 2]| {
            first.called >= run.plateau.from && second.returned <= run.plateau.to
        };
        let mut times: Vec<f64> = run.passes.iter().filter(between).map(true_us).collect();
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
    })?;
    let mut each = machines.chunks(seeds as usize);
    let mut curves = Vec::new();
    for routine in routines {
        let mut points = Vec::new();
        for &cms in sizes {
            let Some(machines) = each.next() else {
                continue;
            };
            let middle = context.mean(machines.to_vec(), "us");
            if let Some(middle) = &middle {
                points.push(Point::new(cms as f64, middle.value));
            }
            context.item(item(
                format!("scale/{}/{cms}", routine.name()),
                format!(
                    "median true time between two readings, {cms} Cms, {}",
                    routine.name()
                ),
                "us",
                None,
                middle,
                String::new(),
            ));
        }
        curves.push(Curve::line(routine.name(), points));
    }
    context.plot(Plot {
        title: "One clock for many processors (Medusa)".to_owned(),
        text: vec![format!(
            "Ten Cms in each cluster, one clock, all read it, through one Kmap{}.",
            served(context)
        )],
        x: Axis::log("Cms that read", "1"),
        y: Axis::log("time between two readings", "us"),
        curves,
    });
    Ok(())
}
