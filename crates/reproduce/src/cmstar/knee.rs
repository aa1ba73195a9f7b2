//! Medusa's deviation is largest at 12 Cms here, and between 16 and 20 in the paper's figure: how that
//! depends on the time for which the clock's Kmap is busy with a reference, the one parameter that
//! decides it.

use undertick_cmstar::load::ReadingLoops;
use undertick_cmstar::{Os, Parameters, Routine};
use undertick_experiment::jobs::Stopped;
use undertick_report::plot::{Axis, Curve, Plot, Point};

use super::pairs::standard_deviation;
use super::published::RATES;
use super::readings::{of_loops, plateau};
use super::{Context, item, number};

/// Numbers of Cms that read.
const READERS: [usize; 11] = [1, 4, 8, 10, 12, 14, 16, 18, 20, 24, 30];
/// Times of the clock's Kmap, as shares of the fitted one.
const SHARES: [f64; 4] = [1.0, 0.8, 0.7, 0.6];

pub(super) fn knee(context: &mut Context<'_>) -> Result<(), Stopped> {
    let (published, length_ns) = (context.parameters, context.request.reading_ns());
    let seeds = context.request.seeds();
    let tick_us = published.clock.tick_us;
    let all: Vec<(Parameters, usize, u64)> = (SHARES.iter())
        .flat_map(|share| READERS.map(move |readers| (share, readers)))
        .flat_map(|one| (1..=seeds).map(move |seed| (one, seed)))
        .map(|((share, readers), seed)| {
            let mut parameters = published.clone();
            parameters.reference.far_kmap *= share;
            (parameters, readers, seed)
        })
        .collect();
    let machines = context.run(&all, |(parameters, readers, seed)| {
        let loops = ReadingLoops {
            length_ns,
            ramp_ns: length_ns / 10,
            seed: *seed,
            ..ReadingLoops::new(Os::Medusa, Routine::Four, *readers)
        };
        let run = of_loops(parameters, &loops);
        (
            standard_deviation(&plateau(&run, tick_us)),
            run.plateau.far_per_s(),
        )
    })?;
    let at_30 = (RATES.iter())
        .find(|(routine, readers, _)| (*routine, *readers) == (Routine::Four, 30))
        .map(|(.., rate)| *rate);
    let mut each = machines.chunks(seeds as usize);
    let (mut rows, mut curves) = (Vec::new(), Vec::new());
    for share in SHARES {
        let kmap_us = published.reference.far_kmap * share;
        let (mut points, mut rate) = (Vec::new(), None);
        for readers in READERS {
            let Some(machines) = each.next() else {
                continue;
            };
            let sd = context.mean(machines.iter().map(|m| m.0).collect(), "us");
            points.extend(sd.map(|sd| Point::from_estimate(readers as f64, &sd)));
            rate = context.mean(machines.iter().map(|m| m.1).collect(), "1/s");
        }
        let largest = |a: &&Point, b: &&Point| a.y.total_cmp(&b.y);
        // Beyond the paper's 20 it rises again.
        let peak = (points.iter().filter(|p| p.x <= 20.0)).max_by(largest);
        if let (Some(peak), Some(rate), Some(printed)) = (peak, &rate, at_30)
            && peak.x >= 16.0
        {
            context.found.findings.push(format!(
                "A clock's Kmap that is busy for {kmap_us:.1} us has the largest deviation at {:.0} Cms (the paper \
                 between 16 and 20), and 30 Cms read at {:+.0} % of the published rate.",
                peak.x,
                100.0 * (rate.value / printed - 1.0),
            ));
        }
        let [_, rate] = context.item(item(
            format!("knee/{share}/rate"),
            format!("rate of 30 Cms with 4-Read, a clock's Kmap busy for {kmap_us:.1} us"),
            "1/s",
            None,
            rate,
            String::new(),
        ));
        rows.push(vec![
            format!("{kmap_us:.1}"),
            peak.map_or_else(|| "–".to_owned(), |p| format!("{:.0}", p.x)),
            rate,
            at_30.map_or_else(|| "–".to_owned(), number),
        ]);
        curves.push(Curve::line(format!("{kmap_us:.1} us"), points));
    }
    context.table(
        "Where Medusa's deviation is largest (4-Read)",
        &[
            "The paper's is largest between 16 and 20 Cms. The time for which the clock's Kmap is busy decides \
             where that is, and the rate of many Cms, too; the first row is the fitted one.",
        ],
        &["Kmap busy, us", "largest at, Cms", "rate of 30 Cms", "published"],
        rows,
    );
    context.plot(Plot {
        title: "Deviation of an elapsed time by the time of the clock's Kmap (Medusa, 4-Read)"
            .to_owned(),
        text: Vec::new(),
        x: Axis::new("Cms that read", "1"),
        y: Axis::new("standard deviation of an elapsed time", "us"),
        curves,
    });
    Ok(())
}
