//! The list of every table and figure of the sources, and what became of each: how many of its figures
//! are printed, computed again, simulated and measured, and whether they agree.

use undertick_report::reproduce::{Item, Reproduction, TableOrFigure, Verdict};

use crate::compared::{OTHER_WORK, times};
use crate::verdict::complete;

mod shapes;

/// What is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Printed {
    Figures,
    /// Curves or histograms, of which only what the text says is a figure.
    Curves,
    /// Nothing that was measured or computed.
    Drawing,
    /// Nothing that can be read in the scan.
    Illegible,
}

/// A table or figure as `inventory.txt` has it.
#[derive(Clone, Copy, Debug)]
struct InventoryLine {
    source: &'static str,
    name: &'static str,
    shows: &'static str,
    printed: Printed,
    /// Number of the printed figures, if not each is one of the items.
    number: Option<usize>,
    /// Patterns of the ids of its figures.
    items: &'static str,
    /// How the title of its drawing here begins; empty if there is none.
    drawn: &'static str,
}

impl InventoryLine {
    fn parse(line: &'static str) -> Option<Self> {
        let mut fields = line.split('|').map(str::trim);
        let mut next = || fields.next();
        let (source, name, shows) = (next()?, next()?, next()?);
        let mut printed = next()?.split(' ');
        Some(Self {
            source,
            name,
            shows,
            printed: match printed.next()? {
                "figures" => Printed::Figures,
                "curves" => Printed::Curves,
                "drawing" => Printed::Drawing,
                "illegible" => Printed::Illegible,
                _ => return None,
            },
            number: printed.next().and_then(|number| number.parse().ok()),
            items: next()?,
            drawn: next().unwrap_or_default(),
        })
    }

    /// Whether a figure belongs to it.
    fn has(&self, id: &str) -> bool {
        self.items
            .split_whitespace()
            .any(|pattern| matches(pattern, id))
    }
}

fn places(source: &str) -> impl Iterator<Item = InventoryLine> {
    let lines = include_str!("inventory.txt").lines();
    (lines.filter(|line| !line.starts_with('#')))
        .map(|line| InventoryLine::parse(line).expect("every line has its fields"))
        .filter(move |place| place.source == source)
}

/// Whether an id is of a pattern, in which `*` stands for any text.
fn matches(pattern: &str, id: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == id,
        Some((before, after)) => id.strip_prefix(before).is_some_and(|rest| {
            let mut ends = rest.char_indices().map(|(i, _)| i).chain([rest.len()]);
            ends.any(|i| matches(after, &rest[i..]))
        }),
    }
}

/// Gives every published figure its verdict, and adds the list of the source's tables and figures.
pub fn conclude(found: &mut Reproduction) {
    complete(found);
    let source = found.source.clone();
    found.tables_and_figures = places(&source).map(|place| listed(found, &place)).collect();
}

fn listed(found: &Reproduction, place: &InventoryLine) -> TableOrFigure {
    let items: Vec<&Item> = (found.items.iter())
        .filter(|item| place.has(&item.id))
        .collect();
    let number = |is: fn(&Item) -> bool| items.iter().filter(|item| is(item)).count();
    let or_dash = |n: usize| match n {
        0 => "–".to_owned(),
        n => n.to_string(),
    };
    let published = place
        .number
        .unwrap_or_else(|| number(|item| item.published.is_some()));
    let is_drawn = !place.drawn.is_empty()
        && (found.plots.iter()).any(|plot| plot.title.starts_with(place.drawn));
    let simulated = number(|item| item.simulated.is_some());
    let with_curves = |n: usize| match (n, is_drawn) {
        (0, true) => "curves".to_owned(),
        (n, true) => format!("{n}, curves"),
        (n, false) => or_dash(n),
    };
    let measured = number(|item| item.measured.is_some());
    let is_simulated = simulated > 0 || measured == 0;
    TableOrFigure {
        source: place.source.to_owned(),
        name: place.name.to_owned(),
        shows: place.shows.to_owned(),
        published: match (place.printed, published) {
            (Printed::Figures, n) => or_dash(n),
            (Printed::Curves, 0) => "curves".to_owned(),
            (Printed::Curves, n) => format!("{n}, curves"),
            (Printed::Drawing, _) => "a drawing".to_owned(),
            (Printed::Illegible, 0) => "not legible".to_owned(),
            (Printed::Illegible, n) => format!("{n} in the text"),
        },
        formula: or_dash(number(|item| item.formula.is_some())),
        simulated: match is_simulated {
            true => with_curves(simulated),
            false => or_dash(simulated),
        },
        measured: match is_simulated {
            true => or_dash(measured),
            false => with_curves(measured),
        },
        verdict: verdict(place, &items, shapes::judged(found, place)),
        items: items.iter().map(|item| item.id.clone()).collect(),
    }
}

/// The most differing figures that a verdict names.
const NAMED: usize = 3;

/// What became of a table or figure, from the verdicts of its figures and from its shape.
fn verdict(place: &InventoryLine, items: &[&Item], shapes: Vec<(bool, String)>) -> String {
    if place.printed == Printed::Drawing {
        return "a drawing: there is no figure to reproduce".to_owned();
    }
    let of = |wanted: Verdict| -> Vec<&Item> {
        (items.iter().copied())
            .filter(|item| item.verdict == Some(wanted))
            .collect()
    };
    let (agree, differ, errata) = (
        of(Verdict::Agrees).len(),
        of(Verdict::Differs),
        of(Verdict::Erratum).len(),
    );
    let compared = agree + differ.len() + errata;
    let (other, missing) = (of(Verdict::OtherMachine), of(Verdict::Missing));
    let (holds, fails): (Vec<_>, Vec<_>) = shapes.into_iter().partition(|(holds, _)| *holds);
    let mut said = Vec::new();
    if compared > 0 || !holds.is_empty() || !fails.is_empty() {
        said.push(match (differ.len(), fails.len()) {
            (0, 0) => "reproduced".to_owned(),
            (0, _) => "reproduced but for its shape".to_owned(),
            (n, _) if n == compared => format!("not reproduced: {}", named(&differ)),
            (1, _) => format!(
                "{agree} of {compared} reproduced, one differs: {}",
                named(&differ)
            ),
            (n, _) => format!(
                "{agree} of {compared} reproduced, {n} differ: {}",
                named(&differ)
            ),
        });
    }
    if errata > 0 {
        said.push(format!("{errata} printed wrong"));
    }
    said.extend(fails.into_iter().chain(holds).map(|(_, shape)| shape));
    if !other.is_empty() {
        let all: Vec<f64> = other.iter().filter_map(|item| item.ratio).collect();
        let (least, most) = (all.iter().copied()).fold((f64::INFINITY, 0.0), |(lo, hi), ratio| {
            (ratio.min(lo), ratio.max(hi))
        });
        said.push(match all.is_empty() {
            true if other.iter().any(|item| item.note.contains(OTHER_WORK)) => {
                format!("measured here: {OTHER_WORK}")
            }
            true => "measured here".to_owned(),
            false if times(Some(least)) == times(Some(most)) => {
                format!("measured here, {} times faster", times(Some(most)))
            }
            false => format!(
                "measured here, {} to {} times faster",
                times(Some(least)),
                times(Some(most))
            ),
        });
    } else if said.is_empty() && items.iter().any(|item| item.measured.is_some()) {
        said.push("measured here".to_owned());
    }
    if let Some(first) = missing.first() {
        let why = (first.note.rsplit("; ")).find(|note| note.starts_with("not measured"));
        said.push(format!(
            "{} of {} {}",
            missing.len(),
            items.len(),
            why.unwrap_or("not measured")
        ));
    }
    match said.is_empty() {
        true => "not reproduced: the run ended before it".to_owned(),
        false => said.join("; "),
    }
}

/// Three significant digits at least.
fn short(value: f64) -> String {
    let digits = (2 - value.abs().max(1e-9).log10().floor() as i32).clamp(0, 6);
    format!("{value:.*}", digits as usize)
}

/// The differing figures, the first few in words.
fn named(differ: &[&Item]) -> String {
    let one = |item: &&Item| {
        let simulated = item.simulated.as_ref().map(|e| e.value);
        match item.published.zip(item.formula.or(simulated)) {
            Some((printed, computed)) => format!(
                "{} ({} for {})",
                item.quantity,
                short(computed),
                short(printed)
            ),
            None => item.quantity.clone(),
        }
    };
    let names: Vec<String> = differ.iter().take(NAMED).map(one).collect();
    let more = match differ.len().saturating_sub(NAMED) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    names.join("; ") + &more
}

#[cfg(test)]
pub(crate) mod tests;
