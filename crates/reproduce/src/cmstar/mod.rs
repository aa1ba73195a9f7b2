//! Reproduces *Measuring Time in Cm\** (Kong, Spector, Siewiorek, 1986): its figures and tables on
//! the simulated machine, by the estimators that are used on real machines, compared with the
//! truth.

mod beyond;
mod checks;
mod here;
mod knee;
mod loads;
mod messages;
mod pairs;
mod published;
mod readings;
mod script;
mod speeds;
mod sweeps;
#[cfg(test)]
mod tests;
mod zero;

pub use here::{scripts_here, spread_of_cpus, with_measured};
pub(crate) use script::pairs_in_words;
pub use script::{MACHINE, message_scripts, with_messages};

use undertick_cmstar::Parameters;
use undertick_document::figures::figure;
use undertick_estimate::Numbers;
use undertick_experiment::jobs::{self, Stopped};
use undertick_report::plot::Plot;
use undertick_report::reproduce::{Item, Reproduction, Table, Verdict};
use undertick_units::Estimate;

use super::Run;
use super::verdict::near;

/// What to simulate.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Extent of the experiment.
    pub run: Run,
    /// Level of the intervals.
    pub level: f64,
}

impl Request {
    /// Number of machines of each kind, which differ only by their seed.
    const fn seeds(&self) -> u64 {
        match self.run {
            Run::Full => 10,
            Run::Quick => 3,
        }
    }

    /// Virtual duration of a run of readers, ns.
    const fn reading_ns(&self) -> u64 {
        match self.run {
            Run::Full => 2_000_000_000,
            Run::Quick => 500_000_000,
        }
    }
}

/// Simulates everything. Calls `go_on` with the share done; when it returns false the document
/// holds what was done so far.
#[must_use]
pub fn simulated(request: &Request, mut go_on: impl FnMut(f64) -> bool) -> Reproduction {
    let mut found = Reproduction::new(
        "cmstar",
        "Kong, Spector, Siewiorek, Measuring Time in Cm*, Carnegie Mellon University, 1986",
    );
    found.findings.push(
        "Simulated: a model of Cm* whose parameters were fitted to some of the published figures \
         (the chapter on Cm* says which); intervals are of machines that differ by their seed."
            .to_owned(),
    );
    let parameters = Parameters::published();
    let parts: [(Part, f64); 10] = [
        (readings::rates, 0.1),
        (readings::curves, 0.05),
        (readings::distributions, 0.1),
        (knee::knee, 0.12),
        (speeds::speeds, 0.03),
        (zero::tests, 0.15),
        (loads::of_zero_tests, 0.12),
        (messages::messages, 0.13),
        (beyond::beyond, 0.1),
        (sweeps::sweeps, 0.1),
    ];
    let mut done = 0.0;
    for (part, share) in parts {
        let mut go_on_in_part = |of_part: f64| go_on(done + share * of_part);
        let mut context = Context {
            request,
            parameters: &parameters,
            found: &mut found,
            go_on: &mut go_on_in_part,
        };
        if part(&mut context).is_err() {
            found.interrupted = true;
            break;
        }
        done += share;
    }
    found
}

/// A function that makes one part of the document.
type Part = fn(&mut Context<'_>) -> Result<(), Stopped>;

/// The context of each part.
struct Context<'a> {
    request: &'a Request,
    parameters: &'a Parameters,
    found: &'a mut Reproduction,
    go_on: &'a mut dyn FnMut(f64) -> bool,
}

impl Context<'_> {
    /// Runs jobs on all CPUs; results are in the order of the jobs.
    fn run<J: Sync, T: Send>(
        &mut self,
        all: &[J],
        job: impl Fn(&J) -> T + Sync,
    ) -> Result<Vec<T>, Stopped> {
        jobs::run(all, job, self.go_on)
    }

    /// The mean over machines.
    fn mean(&self, values: Vec<f64>, unit: &str) -> Option<Estimate> {
        let mut mean = Numbers::new(values).mean(self.request.level)?;
        unit.clone_into(&mut mean.unit);
        "mean of machines that differ by their seed".clone_into(&mut mean.method);
        Some(mean)
    }

    /// Adds a figure and returns its cells: published, simulated.
    fn item(&mut self, item: Item) -> [String; 2] {
        let cells = [
            item.published.map_or_else(|| "–".to_owned(), number),
            item.simulated
                .as_ref()
                .map_or_else(|| "–".to_owned(), stated),
        ];
        self.found.items.push(item);
        cells
    }

    fn table(&mut self, title: &str, text: &[&str], columns: &[&str], rows: Vec<Vec<String>>) {
        self.found.tables.push(Table {
            title: title.to_owned(),
            text: text.iter().map(|t| (*t).to_owned()).collect(),
            columns: columns.iter().map(|c| (*c).to_owned()).collect(),
            rows,
        });
    }

    fn plot(&mut self, plot: Plot) {
        self.found.plots.push(plot);
    }
}

/// Adds a figure with a published value, a simulated one, and a remark.
fn item(
    id: String,
    quantity: String,
    unit: &str,
    published: Option<f64>,
    simulated: Option<Estimate>,
    note: String,
) -> Item {
    Item {
        id,
        quantity,
        unit: unit.to_owned(),
        published,
        simulated,
        note,
        ..Item::default()
    }
}

/// Adds a figure whose published value has no stated scatter, with the verdict on it before the note.
fn item_near(
    id: String,
    quantity: String,
    unit: &str,
    published: Option<f64>,
    simulated: Option<Estimate>,
    note: &str,
) -> Item {
    let judged = published
        .zip(simulated.as_ref())
        .map(|(published, simulated)| near(published, simulated));
    judged_item(
        item(id, quantity, unit, published, simulated, note.to_owned()),
        judged,
    )
}

/// Gives a figure its verdict, which is said before its note.
fn judged_item(item: Item, judged: Option<(Verdict, String)>) -> Item {
    let (verdict, said) = judged.unzip();
    let said = said.into_iter().chain([item.note]);
    Item {
        verdict,
        note: said
            .filter(|s| !s.is_empty())
            .collect::<Vec<_>>()
            .join("; "),
        ..item
    }
}

fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 1e4 => format!("{:.1} k", value / 1e3),
        v if v >= 100.0 || value == value.round() => format!("{value:.0}"),
        _ => format!("{value:.2}"),
    }
}

/// Value and interval of an estimate for a cell whose heading has the unit.
fn stated(estimate: &Estimate) -> String {
    let bare = Estimate {
        unit: "".into(),
        ..estimate.clone()
    };
    let figure = figure(&bare);
    format!("{} {}", figure.value, figure.interval())
}
