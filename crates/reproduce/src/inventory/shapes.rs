//! Curves of Cm* of which the text prints no figure but says how they run.

use undertick_report::reproduce::Reproduction;

use super::InventoryLine;
use crate::cmstar::pairs_in_words;
use crate::verdict::NEAR;

/// Numbers of Cms of the histograms.
const FEW: &str = "1";
const MANY: &str = "30";
/// By this share a latency may grow that does not grow.
const GROWS: f64 = 0.01;
/// By this share a curve may change that hardly changes.
const FLAT: f64 = 0.1;
/// Numbers of Cms between which Medusa's deviation is largest.
const LARGEST: [f64; 2] = [16.0, 20.0];

/// Whether the curves of a figure run as the text says, and how they do; empty where it says nothing, or
/// where they were not simulated.
pub(super) fn judged(found: &Reproduction, place: &InventoryLine) -> Vec<(bool, String)> {
    let value = |id: String| {
        let item = found.items.iter().find(|item| item.id == id)?;
        Some(item.simulated.as_ref()?.value)
    };
    let figure = |n: u32, what: &str| {
        let at = |cms: &str| value(format!("figure-{n}/{cms}/{what}"));
        Some((at(FEW)?, at(MANY)?))
    };
    let shapes = match (place.source, place.name) {
        ("cmstar", "Figure 3") => {
            let each = |cms: f64| Some(value(format!("rate/medusa/1-Read/{cms}"))? / cms);
            let both = each(8.0).zip(each(28.0));
            vec![both.map(|both| flat("references a second of each Cm, 8 and 28", both, "1/s"))]
        }
        ("cmstar", "Figure 4") => vec![
            figure(4, "mean").map(|both| grows("mean", both)),
            figure(4, "sd").map(|both| grows("deviation", both)),
        ],
        ("cmstar", "Figure 5") => {
            vec![figure(5, "mean").map(|both| flat("mean, 1 and 30 Cms", both, "us"))]
        }
        ("cmstar", "Figure 6") => vec![
            figure(6, "mean").map(|both| grows("mean", both)),
            largest(found),
        ],
        ("cmstar", "Figure 7") => {
            vec![figure(7, "mean").map(|both| flat("mean, 1 and 30 Cms", both, "us"))]
        }
        ("cmstar", "Figure 16") => (1..=3)
            .map(|pairs| {
                let at = |words: u32| value(format!("latency/{pairs}/{words}"));
                let both = at(0).zip(at(200))?;
                Some(falls(pairs, both))
            })
            .collect(),
        _ => Vec::new(),
    };
    shapes.into_iter().flatten().collect()
}

fn grows(what: &str, (few, many): (f64, f64)) -> (bool, String) {
    let holds = many > (1.0 + NEAR) * few;
    let verb = if holds { "grows" } else { "does not grow" };
    (
        holds,
        format!("the {what} {verb}: {few:.0} to {many:.0} us"),
    )
}

fn flat(what: &str, (few, many): (f64, f64), unit: &str) -> (bool, String) {
    let holds = (many / few - 1.0).abs() <= FLAT;
    let verb = if holds { "alike" } else { "not alike" };
    (
        holds,
        format!("{what}, {verb}: {few:.0} and {many:.0} {unit}"),
    )
}

/// Whether the latency is the same or falls as more words are accessed.
fn falls(pairs: usize, (none, most): (f64, f64)) -> (bool, String) {
    let holds = most <= (1.0 + GROWS) * none;
    let verb = if holds { "does not grow" } else { "grows" };
    let pairs = pairs_in_words(pairs);
    (
        holds,
        format!("with {pairs} it {verb} with the words: {none:.0} to {most:.0} us"),
    )
}

/// Where Medusa's deviation is largest, up to 20 Cms: beyond, it rises again.
fn largest(found: &Reproduction) -> Option<(bool, String)> {
    let of = |id: &str| {
        let cms = id.strip_prefix("figure-6/")?.strip_suffix("/sd")?;
        cms.parse::<f64>().ok()
    };
    let at = (found.items.iter())
        .filter_map(|item| Some((of(&item.id)?, item.simulated.as_ref()?.value)))
        .filter(|(cms, _)| *cms <= LARGEST[1])
        .max_by(|a, b| a.1.total_cmp(&b.1))?
        .0;
    let holds = (LARGEST[0]..=LARGEST[1]).contains(&at);
    Some((
        holds,
        format!("the deviation is largest at {at:.0} Cms, published between 16 and 20"),
    ))
}
