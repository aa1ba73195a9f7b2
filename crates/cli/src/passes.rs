//! `undertick run --passes-table`: the traffic controller's table.

use std::path::Path;

use clap::Args;
use undertick_document::Report;
use undertick_experiment::{Experiment, Outcome};
use undertick_format::read::Trace;
use undertick_meter::traffic;
use undertick_report::traffic::render;

use crate::Failure;
use crate::options::Kernel;

/// The option for the table.
#[derive(Args)]
pub struct PassesTable {
    /// Print the first N passes step by step, with those out of place marked and explained (turns
    /// on --kernel auto, which costs about 1 us a wake-up)
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "3", value_parser = clap::value_parser!(u32).range(1..=12))]
    pub passes_table: Option<u32>,
}

impl PassesTable {
    /// Returns which kernel events to record: the table needs them.
    pub fn kernel(&self, asked: Kernel) -> Kernel {
        match (self.passes_table, asked) {
            (Some(_), Kernel::Off) => Kernel::Auto,
            (_, asked) => asked,
        }
    }

    /// Adds the passes to the document.
    pub fn add(
        &self,
        experiment: &Experiment,
        outcome: &mut Outcome,
        trace: &Path,
    ) -> Result<(), Failure> {
        let Some(shown) = self.passes_table else {
            return Ok(());
        };
        let trace = Trace::open(trace)?;
        let passes = traffic::passes(experiment, &outcome.performed, &trace, shown as usize)
            .map_err(Failure::machine)?;
        if passes.is_empty() {
            return Err(Failure::usage(
                "--passes-table: no setting was performed whose clock is read between two steps; it needs stamps = \"between\"",
            ));
        }
        outcome.report.passes = passes;
        Ok(())
    }

    /// Returns the tables as text, empty if there are none.
    pub fn drawn(report: &Report) -> String {
        match report.passes.is_empty() {
            true => String::new(),
            false => render(&report.passes, COLUMNS) + "\n",
        }
    }
}

/// Number of columns: room for three passes.
const COLUMNS: usize = 120;
