//! What the authors recommended but could not try: a latched clock, a broadcast clock, longer
//! ticks.

use undertick_cmstar::load::ReadingLoops;
use undertick_cmstar::{Os, Parameters, Routine};
use undertick_report::plot::{Axis, Curve, Plot, Point};

use super::pairs::standard_deviation;
use super::readings::{of_loops, plateau};
use super::{Context, item, number};
use undertick_experiment::jobs::Stopped;

const READERS: [usize; 6] = [1, 8, 16, 20, 24, 30];
/// Ticks, us.
const TICKS_US: [f64; 8] = [0.5, 2.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

pub(super) fn beyond(context: &mut Context<'_>) -> Result<(), Stopped> {
    routines(context)?;
    ticks(context)
}

/// Compares all ways of reading, against the number of Cms.
fn routines(context: &mut Context<'_>) -> Result<(), Stopped> {
    let (parameters, seeds) = (context.parameters, context.request.seeds());
    let length_ns = context.request.reading_ns();
    let systems = [Os::StarOs, Os::Medusa];
    let all: Vec<ReadingLoops> = (systems.iter())
        .flat_map(|os| Routine::ALL.map(move |routine| (*os, routine)))
        .flat_map(|one| READERS.map(move |readers| (one, readers)))
        .flat_map(|one| (1..=seeds).map(move |seed| (one, seed)))
        .map(|(((os, routine), readers), seed)| ReadingLoops {
            os,
            routine,
            readers,
            length_ns,
            ramp_ns: length_ns / 10,
            seed,
        })
        .collect();
    let tick_us = parameters.clock.tick_us;
    let machines = context.run(&all, |loops| {
        let values = plateau(&of_loops(parameters, loops), tick_us);
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        (mean, standard_deviation(&values))
    })?;
    let mut each = machines.chunks(seeds as usize);
    let mut rows = Vec::new();
    for os in systems {
        let mut curves = Vec::new();
        for routine in Routine::ALL {
            let mut points = Vec::new();
            for readers in READERS {
                let Some(machines) = each.next() else {
                    continue;
                };
                let mean = context.mean(machines.iter().map(|m| m.0).collect(), "us");
                let sd = context.mean(machines.iter().map(|m| m.1).collect(), "us");
                if let Some(sd) = &sd {
                    points.push(Point::from_estimate(readers as f64, sd));
                }
                if ![8, 30].contains(&readers) {
                    continue;
                }
                let what = format!("{os}, {}, {readers} Cms", routine.name());
                let id = format!("recommended/{os}/{}/{readers}", routine.name());
                let mut cells = vec![
                    os.to_string(),
                    routine.name().to_owned(),
                    readers.to_string(),
                ];
                for (name, figure) in [("mean", mean), ("sd", sd)] {
                    let [_, cell] = context.item(item(
                        format!("{id}/{name}"),
                        format!("{name} of an elapsed time, {what}"),
                        "us",
                        None,
                        figure,
                        String::new(),
                    ));
                    cells.push(cell);
                }
                rows.push(cells);
            }
            curves.push(Curve::line(routine.name(), points));
        }
        context.plot(Plot {
            title: format!("Every way of reading the clock, {os}"),
            text: vec![
                "Latched: all words by one reference. Broadcast: from the Cm's own memory, as if the clock's \
                 value came to every Cm."
                    .to_owned(),
            ],
            x: Axis::new("Cms that read", "1"),
            y: Axis::new("standard deviation of an elapsed time", "us"),
            curves,
        });
    }
    context.table(
        "A latched clock and a broadcast clock, as the authors recommend",
        &["Elapsed time between two readings. Every Cm reads in the same way."],
        &[
            "system",
            "routine",
            "Cms",
            "mean, us",
            "standard deviation, us",
        ],
        rows,
    );
    Ok(())
}

/// The range of the low word alone, s: the time after which it wraps.
fn range_s(parameters: &Parameters, tick_us: f64) -> f64 {
    2_f64.powi(parameters.clock.word_bits as i32) * tick_us / 1e6
}

/// The cost of a longer tick: the spread of an elapsed time, read from the low word alone.
fn ticks(context: &mut Context<'_>) -> Result<(), Stopped> {
    let seeds = context.request.seeds();
    let length_ns = context.request.reading_ns();
    let loads = [(Os::Medusa, 1), (Os::Medusa, 30), (Os::StarOs, 30)];
    let all: Vec<(Parameters, f64, Os, usize, u64)> = (loads.iter())
        .flat_map(|load| TICKS_US.map(|tick| (*load, tick)))
        .flat_map(|one| (1..=seeds).map(move |seed| (one, seed)))
        .map(|(((os, readers), tick_us), seed)| {
            let mut parameters = context.parameters.clone();
            parameters.clock.tick_us = tick_us;
            (parameters, tick_us, os, readers, seed)
        })
        .collect();
    let machines = context.run(&all, |(parameters, tick_us, os, readers, seed)| {
        let loops = ReadingLoops {
            os: *os,
            routine: Routine::Four,
            readers: *readers,
            length_ns,
            ramp_ns: length_ns / 10,
            seed: *seed,
        };
        standard_deviation(&plateau(&of_loops(parameters, &loops), *tick_us))
    })?;
    let mut each = machines.chunks(seeds as usize);
    let (mut curves, mut rows) = (Vec::new(), Vec::new());
    for (os, readers) in loads {
        let mut points = Vec::new();
        for tick_us in TICKS_US {
            let Some(machines) = each.next() else {
                continue;
            };
            let sd = context.mean(machines.to_vec(), "us");
            if let Some(sd) = &sd {
                points.push(Point::new(tick_us, sd.value));
            }
            let [_, cell] = context.item(item(
                format!("tick/{os}/{readers}/{tick_us}"),
                format!("standard deviation of an elapsed time with a tick of {tick_us} us, {os}, {readers} Cms"),
                "us",
                None,
                sd,
                String::new(),
            ));
            rows.push(vec![
                os.to_string(),
                readers.to_string(),
                format!("{tick_us}"),
                cell,
                number(range_s(context.parameters, tick_us)),
            ]);
        }
        curves.push(Curve::line(format!("{os}, {readers} Cms"), points));
    }
    context.table(
        "Longer ticks",
        &[
            "The paper: the tick should be commensurate with the uncertainty of the delay. The last column is how \
             long the low word lasts, which alone one reference can read.",
        ],
        &["system", "Cms", "tick, us", "standard deviation, us", "range of the low word, s"],
        rows,
    );
    context.plot(Plot {
        title: "Standard deviation of an elapsed time against the tick".to_owned(),
        text: Vec::new(),
        x: Axis::log("tick", "us"),
        y: Axis::log("standard deviation", "us"),
        curves,
    });
    Ok(())
}
