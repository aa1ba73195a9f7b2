//! Figure 11: the same code on each of 34 Cms.

use undertick_cmstar::Os;
use undertick_cmstar::load::speeds as run_speeds;
use undertick_report::plot::{Axis, Curve, Plot, Point, Style};

use super::pairs::elapsed_us;
use super::published::{SPEED_CMS, SPEED_RANGE};
use super::{Context, item_near};
use undertick_experiment::jobs::Stopped;

/// Duration of the code, ns.
const WORK_NS: u64 = 200_000_000;
const BINS: usize = 12;

pub(super) fn speeds(context: &mut Context<'_>) -> Result<(), Stopped> {
    let parameters = context.parameters;
    let tick_us = parameters.clock.tick_us;
    let seeds: Vec<u64> = (1..=context.request.seeds()).collect();
    let runs = context.run(&seeds, |seed| {
        run_speeds(parameters, Os::Medusa, SPEED_CMS, WORK_NS, *seed).expect("34 Cms are there")
    })?;
    let measured = |run: &[undertick_cmstar::load::Timed]| -> Vec<f64> {
        run.iter()
            .filter_map(|timed| Some(elapsed_us(&timed.readings, tick_us)? / 1e3))
            .collect()
    };
    let range = |times: &[f64]| {
        let least = times.iter().copied().fold(f64::INFINITY, f64::min);
        times.iter().copied().fold(0.0, f64::max) / least - 1.0
    };
    let ranges: Vec<f64> = runs.iter().map(|run| range(&measured(run))).collect();
    let simulated = context.mean(ranges, "1");
    context.item(item_near(
        "figure-11/range".to_owned(),
        format!("slowest of {SPEED_CMS} Cms over the fastest, less 1"),
        "1",
        Some(SPEED_RANGE),
        simulated,
        "published: within 4.6 % of each other",
    ));
    let times = measured(&runs[0]);
    let least = times.iter().copied().fold(f64::INFINITY, f64::min);
    let width = least * SPEED_RANGE * 1.2 / BINS as f64;
    let mut counts = [0_u32; BINS];
    for time in &times {
        let bin = ((time - least) / width) as usize;
        counts[bin.min(BINS - 1)] += 1;
    }
    let mut points: Vec<Point> = (counts.iter().enumerate())
        .map(|(i, count)| Point::new(least + i as f64 * width, f64::from(*count)))
        .collect();
    points.push(Point::new(least + BINS as f64 * width, 0.0));
    context.plot(Plot {
        title: format!("Figure 11: execution time of {SPEED_CMS} Cms"),
        text: vec!["The same code in local memory; one machine.".to_owned()],
        x: Axis::new("execution time", "ms"),
        y: Axis::new("Cms", "1"),
        curves: vec![Curve {
            name: "Cms".to_owned(),
            style: Style::Steps,
            points,
            is_of_previous: false,
        }],
    });
    Ok(())
}
