//! Figures 1 to 7: the duration of a reading of the clock, by the number of Cms that read it.

use undertick_cmstar::load::{ReadingLoops, ReadingRun, reading_loops};
use undertick_cmstar::{Os, Parameters, Reading, Routine};
use undertick_estimate::{ModeOptions, modes_of_bins};
use undertick_report::plot::{Axis, Curve, Plot, Point, Style};

use super::pairs::{elapsed_us, standard_deviation, true_us};
use super::published::{HIT_US, LEAST_US, RATES, WORD_SD_US};
use super::{Context, item, item_near, judged_item};
use crate::verdict::beside;
use undertick_experiment::jobs::Stopped;

/// Numbers of Cms in the histograms of Figures 4 to 7.
const READERS: [usize; 8] = [1, 4, 8, 12, 16, 20, 24, 30];
/// Width of a bin of these histograms, us.
const BIN_US: f64 = 10.0;
/// Upper ends of the figures, us.
const LONGEST_US: f64 = 2000.0;

/// Simulates the published numbers of readers.
fn loops(
    context: &Context<'_>,
    os: Os,
    routine: Routine,
    readers: usize,
    seed: u64,
) -> ReadingLoops {
    let length_ns = context.request.reading_ns();
    ReadingLoops {
        length_ns,
        ramp_ns: length_ns / 10,
        seed,
        ..ReadingLoops::new(os, routine, readers)
    }
}

fn run(context: &mut Context<'_>, all: &[ReadingLoops]) -> Result<Vec<ReadingRun>, Stopped> {
    let parameters = context.parameters;
    context.run(all, |loops| of_loops(parameters, loops))
}

/// Simulates one machine.
pub(super) fn of_loops(parameters: &Parameters, loops: &ReadingLoops) -> ReadingRun {
    reading_loops(parameters, loops).expect("the published numbers of Cms are there")
}

/// References per second, and the cost of a word under a very light load.
pub(super) fn rates(context: &mut Context<'_>) -> Result<(), Stopped> {
    let seeds = context.request.seeds();
    let all: Vec<ReadingLoops> = (RATES.iter())
        .flat_map(|(routine, readers, _)| (1..=seeds).map(move |seed| (*routine, *readers, seed)))
        .map(|(routine, readers, seed)| loops(context, Os::Medusa, routine, readers, seed))
        .collect();
    let runs = run(context, &all)?;
    let mut rows = Vec::new();
    for ((routine, readers, published), runs) in RATES.iter().zip(runs.chunks(seeds as usize)) {
        let rates = runs.iter().map(|run| run.plateau.far_per_s()).collect();
        let busy = runs.iter().map(|run| run.plateau.kmap_busy(1)).sum::<f64>() / seeds as f64;
        let rate = context.mean(rates, "1/s");
        let note = format!("the clock's Kmap is busy {:.0} % of the time", 100.0 * busy);
        let item = item_near(
            format!("rate/medusa/{}/{readers}", routine.name()),
            format!(
                "references a second, {readers} Cms read by {}",
                routine.name()
            ),
            "1/s",
            Some(*published),
            rate,
            &note,
        );
        let note = item.note.clone();
        let [printed, simulated] = context.item(item);
        rows.push(vec![
            routine.name().to_owned(),
            readers.to_string(),
            printed,
            simulated,
            note,
        ]);
    }
    context.table(
        "References a second (Medusa)",
        &["Cms of clusters 2 to 5 read the clock of cluster 1; between the ramps at start and end."],
        &["routine", "Cms", "published, 1/s", "simulated, 1/s", "remark"],
        rows,
    );
    words(context)
}

/// The standard deviation of reading one word when hardly any other Cm does.
fn words(context: &mut Context<'_>) -> Result<(), Stopped> {
    let seeds = context.request.seeds();
    let all: Vec<ReadingLoops> = (WORD_SD_US.iter())
        .flat_map(|(os, _)| (1..=seeds).map(move |seed| (*os, seed)))
        .map(|(os, seed)| loops(context, os, Routine::One, 1, seed))
        .collect();
    let runs = run(context, &all)?;
    let mut rows = Vec::new();
    for ((os, published), runs) in WORD_SD_US.iter().zip(runs.chunks(seeds as usize)) {
        let sds = runs.iter().map(|run| {
            let mut elapsed: Vec<f64> = run.passes.iter().map(true_us).collect();
            elapsed.sort_by(f64::total_cmp);
            // Readings that the line clock disturbed are dropped, as in the paper.
            let limit = elapsed[elapsed.len() / 2] + 100.0;
            elapsed.retain(|us| *us < limit);
            // There is one word at each end, so an elapsed time has the variance of one word.
            standard_deviation(&elapsed)
        });
        let sd = context.mean(sds.collect(), "us");
        let [printed, simulated] = context.item(item_near(
            format!("word-sd/{os}"),
            format!("standard deviation of reading a word, one Cm reads, {os}"),
            "us",
            Some(*published),
            sd,
            "interrupts left out",
        ));
        rows.push(vec![os.to_string(), printed, simulated]);
    }
    context.table(
        "One word under a very light load",
        &["Standard deviation of the time between two 1-Reads of a Cm that is alone."],
        &["system", "published, us", "simulated, us"],
        rows,
    );
    Ok(())
}

/// Figures 1 to 3: elapsed times over the run.
pub(super) fn curves(context: &mut Context<'_>) -> Result<(), Stopped> {
    let figures = [
        (1, Routine::Varying, [8, 30]),
        (2, Routine::Four, [8, 30]),
        (3, Routine::One, [8, 28]),
    ];
    let all: Vec<ReadingLoops> = (figures.iter())
        .flat_map(|(_, routine, readers)| readers.map(|readers| (*routine, readers)))
        .map(|(routine, readers)| ReadingLoops {
            ramp_ns: context.request.reading_ns() / 4,
            ..loops(context, Os::Medusa, routine, readers, 1)
        })
        .collect();
    let runs = run(context, &all)?;
    let tick_us = context.parameters.clock.tick_us;
    for ((figure, routine, readers), runs) in figures.iter().zip(runs.chunks(2)) {
        let curve = |(readers, run): (&usize, &ReadingRun)| Curve {
            name: format!("{readers} Cms"),
            style: Style::Line,
            is_of_previous: false,
            points: (run.passes.iter())
                .filter_map(|pair| {
                    let x = pair[0].called.ns() as f64 / 1e9;
                    Some(Point::new(x, elapsed_us(pair, tick_us)?))
                })
                .collect(),
        };
        let curves: Vec<Curve> = readers.iter().zip(runs).map(curve).collect();
        let text = match routine {
            Routine::Varying => vec![
                "Published: about 300 us flat with 8 Cms; with 30 from 300 us to over 800 us and back as \
                 they start and finish, with peaks and troughs where the low word wraps."
                    .to_owned(),
                wraps(&runs[1]),
            ],
            _ => Vec::new(),
        };
        context.plot(Plot {
            title: format!("Figure {figure}: {} under Medusa", routine.name()),
            text,
            x: Axis::new("time since the beginning", "s"),
            y: Axis::new("elapsed between two readings", "us"),
            curves,
        });
    }
    let middle = |run: &ReadingRun| {
        let (from, to) = (run.passes.len() * 2 / 5, run.passes.len() * 3 / 5);
        let mut elapsed: Vec<f64> = (run.passes[from..to].iter())
            .filter_map(|pair| elapsed_us(pair, tick_us))
            .collect();
        elapsed.sort_by(f64::total_cmp);
        elapsed.get(elapsed.len() / 2).copied().unwrap_or(f64::NAN)
    };
    for (index, name, published) in [
        (0, "8 Cms, Varying-Read", Some(300.0)),
        (1, "30 Cms, Varying-Read", Some(800.0)),
    ] {
        let values = vec![middle(&runs[index])];
        let simulated = context.mean(values, "us");
        let middle = item_near(
            format!("figure-1/{name}"),
            format!("middle elapsed time in the middle fifth of the run, {name}"),
            "us",
            published,
            simulated,
            match index {
                0 => "published: about 300 us, flat",
                _ => "published: over 800 us",
            },
        );
        context.item(middle);
    }
    Ok(())
}

/// How many passes show a wrap, and in which way.
fn wraps(run: &ReadingRun) -> String {
    // Varying-Read takes the last of its low words: where it has read two, the value shifts.
    let late = |reading: &Reading| {
        let whole = reading.returned.ns_since(reading.called);
        whole > 0 && reading.returned.ns_since(reading.sampled) * 4 < whole
    };
    let (mut peaks, mut troughs) = (0, 0);
    for [first, second] in &run.passes {
        peaks += usize::from(late(second) && !late(first));
        troughs += usize::from(late(first) && !late(second));
    }
    format!(
        "Simulated, 30 Cms: {peaks} of {} passes with a wrap in their second reading (a peak), {troughs} with \
         one in their first (a trough).",
        run.passes.len()
    )
}

/// Figures 4 to 7: histograms by the number of Cms.
pub(super) fn distributions(context: &mut Context<'_>) -> Result<(), Stopped> {
    let figures = [
        (4, Os::StarOs, Routine::Four),
        (5, Os::StarOs, Routine::One),
        (6, Os::Medusa, Routine::Four),
        (7, Os::Medusa, Routine::One),
    ];
    let seeds = context.request.seeds();
    let all: Vec<ReadingLoops> = (figures.iter())
        .flat_map(|&(_, os, routine)| READERS.map(|readers| (os, routine, readers)))
        .flat_map(|one| (1..=seeds).map(move |seed| (one, seed)))
        .map(|((os, routine, readers), seed)| loops(context, os, routine, readers, seed))
        .collect();
    let runs = run(context, &all)?;
    let per_figure = READERS.len() * seeds as usize;
    let tick_us = context.parameters.clock.tick_us;
    let mut rows = Vec::new();
    let mut spreads = Vec::new();
    for (&(figure, os, routine), runs) in figures.iter().zip(runs.chunks(per_figure)) {
        let mut curves = Vec::new();
        let mut spread = Vec::new();
        let mut light = Vec::new();
        for (readers, runs) in READERS.iter().zip(runs.chunks(seeds as usize)) {
            let all: Vec<Vec<f64>> = (runs.iter()).map(|run| plateau(run, tick_us)).collect();
            let together = all.concat();
            curves.push(histogram(&format!("{readers} Cms"), &together));
            if *readers <= 4 {
                light.extend(together);
            }
            let means = all.iter().map(|v| v.iter().sum::<f64>() / v.len() as f64);
            let mean = context.mean(means.collect(), "us");
            let sd = context.mean(all.iter().map(|v| standard_deviation(v)).collect(), "us");
            let name = format!("figure-{figure}/{readers}");
            let what = format!("{os}, {}, {readers} Cms", routine.name());
            if let Some(sd) = &sd {
                spread.push(Point::from_estimate(*readers as f64, sd));
            }
            let [_, mean] = context.item(item(
                format!("{name}/mean"),
                format!("mean elapsed time, {what}"),
                "us",
                None,
                mean,
                String::new(),
            ));
            let [_, sd] = context.item(item(
                format!("{name}/sd"),
                format!("its standard deviation, {what}"),
                "us",
                None,
                sd,
                String::new(),
            ));
            rows.push(vec![
                os.to_string(),
                routine.name().to_owned(),
                readers.to_string(),
                mean,
                sd,
            ]);
        }
        least_and_second(context, os, routine, &light);
        spreads.push(Curve::line(format!("{os}, {}", routine.name()), spread));
        context.plot(Plot {
            title: format!("Figure {figure}: {os}, {}", routine.name()),
            text: vec![format!(
                "Densities in bins of {BIN_US:.0} us, {seeds} machines each."
            )],
            x: Axis::new("elapsed between two readings", "us"),
            y: Axis::new("share of a bin", "1"),
            curves,
        });
    }
    context.table(
        "Elapsed time between two readings, by the number of Cms that read",
        &[
            "Published: under StarOS mean and standard deviation grow with 4-Read and hardly change with 1-Read; \
             under Medusa the standard deviation of 4-Read falls again from 16 to 20 Cms on.",
        ],
        &["system", "routine", "Cms", "mean, us", "standard deviation, us"],
        rows,
    );
    context.plot(Plot {
        title: "Standard deviation of an elapsed time against the number of Cms".to_owned(),
        text: Vec::new(),
        x: Axis::new("Cms that read", "1"),
        y: Axis::new("standard deviation", "us"),
        curves: spreads,
    });
    Ok(())
}

/// Elapsed times on the plateau, between the ramps, us.
pub(super) fn plateau(run: &ReadingRun, tick_us: f64) -> Vec<f64> {
    let (from, to) = (run.plateau.from, run.plateau.to);
    (run.passes.iter())
        .filter(|[first, second]| first.called >= from && second.returned <= to)
        .filter_map(|pair| elapsed_us(pair, tick_us))
        .collect()
}

fn histogram(name: &str, values: &[f64]) -> Curve {
    let bins = (LONGEST_US / BIN_US) as usize;
    let mut counts = vec![0_u32; bins];
    for value in values {
        if let Some(count) = counts.get_mut((value / BIN_US).max(0.0) as usize) {
            *count += 1;
        }
    }
    let last = counts.iter().rposition(|c| *c > 0).unwrap_or(0);
    let first = counts.iter().position(|c| *c > 0).unwrap_or(0);
    let share =
        |i: usize| f64::from(counts.get(i).copied().unwrap_or(0)) / values.len().max(1) as f64;
    Curve {
        name: name.to_owned(),
        style: Style::Steps,
        is_of_previous: false,
        points: (first..=last + 1)
            .map(|i| Point::new(i as f64 * BIN_US, share(i)))
            .collect(),
    }
}

/// The minimum time of a 4-Read, and the range of the results that the line clock disturbed.
fn least_and_second(context: &mut Context<'_>, os: Os, routine: Routine, light: &[f64]) {
    let least = light.iter().copied().fold(f64::INFINITY, f64::min);
    let published = LEAST_US
        .iter()
        .find(|(of, _)| *of == os && routine == Routine::Four);
    if let Some((_, published)) = published {
        let simulated = context.mean(vec![least], "us");
        context.item(item_near(
            format!("least/{os}"),
            format!("least time of a 4-Read, {os}"),
            "us",
            Some(*published),
            simulated,
            "the shortest of all with at most 4 Cms",
        ));
    }
    let hit = HIT_US
        .iter()
        .find(|(of, ..)| os == Os::StarOs && *of == routine);
    if let Some((_, from, to)) = hit {
        let found = second_mode(light);
        let simulated = found.and_then(|(place, ..)| context.mean(vec![place], "us"));
        let note = found.map_or_else(
            || "no second mode is proven".to_owned(),
            |(_, share)| {
                format!(
                    "published: from {from:.0} to {to:.0} us; {:.1} % of the results",
                    100.0 * share
                )
            },
        );
        let (middle, half) = (f64::midpoint(*from, *to), (to - from) / 2.0);
        let judged = (simulated.as_ref()).map(|peak| beside(middle, peak, half, " us"));
        let peak = item(
            format!("second-peak/{os}/{}", routine.name()),
            format!("second peak, {os}, {}", routine.name()),
            "us",
            Some(middle),
            simulated,
            note,
        );
        context.item(judged_item(peak, judged));
    }
}

/// Middle and share of the second mode.
fn second_mode(values: &[f64]) -> Option<(f64, f64)> {
    let bins = (LONGEST_US / BIN_US) as usize;
    let edges: Vec<f64> = (0..=bins).map(|i| i as f64 * BIN_US).collect();
    let mut counts = vec![0_u64; bins];
    for value in values {
        if let Some(count) = counts.get_mut((value / BIN_US).max(0.0) as usize) {
            *count += 1;
        }
    }
    let options = ModeOptions {
        axis: undertick_estimate::Axis::Linear,
        ..ModeOptions::default()
    };
    let found = modes_of_bins(&edges, &counts, values.len() as f64, &options);
    let second = found.modes.get(1)?;
    Some((second.place.value, second.share.value))
}
