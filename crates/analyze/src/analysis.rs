//! The kernel: batches in, report out.

use std::collections::HashMap;

use arrow_array::RecordBatch;
use undertick_report::document::{IntervalKind, Report};
use undertick_trace::manifest::Manifest;

use crate::columns::Columns;
use crate::cost::CostTable;
use crate::engine::Engine;
use crate::error::Error;
use crate::matching::{self, RowCounts};
use crate::names::Names;
use crate::options::{Compensate, Cull, Options};
use crate::ring::Ring;
use crate::rules::rules;
use crate::summary::Summary;
use crate::table::{Matching, Table};
use crate::tally::{Dropping, Tally};

/// Most rings of a trace; each costs a few hundred bytes at least.
const MOST_RINGS: usize = 1 << 20;

/// One analysis of one trace. Feed every batch in the order of the trace,
/// [`Analysis::passes`] times, and say after each time that the pass is over.
#[derive(Debug)]
pub struct Analysis {
    manifest: Manifest,
    options: Options,
    /// The table, if it defines intervals or frequencies.
    table: Option<Table>,
    engine: Engine,
    rings: Vec<Ring>,
    place_of: HashMap<i32, usize>,
    rows: RowCounts,
    /// First and last reading, ticks.
    span: Option<(i64, i64)>,
    passes_done: usize,
}

impl Analysis {
    /// Prepares an analysis.
    ///
    /// # Errors
    /// Options that this trace does not support, a table that does not fit it,
    /// a clock without a rate.
    pub fn new(manifest: &Manifest, options: Options) -> Result<Self, Error> {
        options.check()?;
        let ns_per_tick = manifest.clock.ns_per_tick();
        if !(ns_per_tick.is_finite() && ns_per_tick > 0.0) {
            return Err(Error::Manifest("the clock has no rate"));
        }
        let renames = options.table.as_ref().map_or(&[][..], |t| &t.names);
        let table = options.table.clone().filter(|t| !t.only_renames());
        let mut engine = Engine::default();
        engine.set_names(Names::new(&manifest.names, renames));
        if let Some(table) = &table {
            add_rules(&mut engine, table)?;
        }
        if let (Compensate::Auto, Some(calibration)) = (options.compensate, &manifest.calibration) {
            engine.costs = CostTable::new(calibration, ns_per_tick);
        }
        engine.dropping = Some(match options.cull {
            Cull::Auto | Cull::Kernel => Dropping::Descheduled,
            Cull::Ratio(_) => Dropping::OverLimit,
            Cull::None => Dropping::Nothing,
        });
        engine.scanning = matches!(options.cull, Cull::Ratio(_));
        Ok(Self {
            manifest: manifest.clone(),
            options,
            table,
            engine,
            rings: Vec::new(),
            place_of: HashMap::new(),
            rows: RowCounts::default(),
            span: None,
            passes_done: 0,
        })
    }

    /// How often the trace must be read: 2 if samples are culled by their ratio
    /// to the least, else 1.
    #[must_use]
    pub fn passes(&self) -> usize {
        if matches!(self.options.cull, Cull::Ratio(_)) {
            2
        } else {
            1
        }
    }

    /// Takes the next batch. Events of one ring must come in order; rings may
    /// be interleaved.
    ///
    /// # Errors
    /// A batch without the columns of [`undertick_trace::schema`], or more
    /// rings than a trace can have. Rows with meaningless codes are counted and
    /// reported, not errors.
    pub fn push(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        let columns = Columns::of(batch)?;
        let mut at = 0;
        while at < columns.len() {
            let id = columns.ring[at];
            let run = columns.ring[at..].iter().take_while(|&&r| r == id).count();
            let rows = columns.rows(at..at + run);
            self.push_run(id, &rows)?;
            at += run;
        }
        Ok(())
    }

    /// Rows of one ring.
    fn push_run(&mut self, id: i32, rows: &Columns<'_>) -> Result<(), Error> {
        let place = self.ring(id, rows)?;
        let first = rows.ts[0];
        let (lo, hi) = (rows.ts.iter()).fold((first, first), |(lo, hi), &t| (lo.min(t), hi.max(t)));
        self.span = Some(self.span.map_or((lo, hi), |(l, h)| (l.min(lo), h.max(hi))));
        self.engine.slices.reach(lo, hi);
        let table = self.table.as_ref();
        let seen = matching::rows(&mut self.rings[place], &mut self.engine, rows, table);
        self.rows.events += seen.events;
        self.rows.bad += seen.bad;
        self.rows.kernel += seen.kernel;
        self.rows.gaps += seen.gaps;
        self.rows.lost_in_gaps = self.rows.lost_in_gaps.saturating_add(seen.lost_in_gaps);
        Ok(())
    }

    fn ring(&mut self, id: i32, rows: &Columns<'_>) -> Result<usize, Error> {
        if let Some(&place) = self.place_of.get(&id) {
            return Ok(place);
        }
        if self.rings.len() >= MOST_RINGS {
            return Err(Error::Rings(MOST_RINGS));
        }
        let (pid, tid) = (rows.pid[0], rows.tid[0]);
        self.rings.push(Ring {
            pid,
            tid,
            set: self.engine.names.set_of(pid),
            ..Ring::default()
        });
        self.place_of.insert(id, self.rings.len() - 1);
        Ok(self.rings.len() - 1)
    }

    /// Says that the trace has been read to its end once.
    pub fn finish_pass(&mut self) {
        self.passes_done += 1;
        for ring in &mut self.rings {
            ring.abandon(&mut self.engine, false);
        }
        for (rule, is_start) in self.engine.messages.drain() {
            self.engine.unmatched(rule, is_start);
        }
        if self.passes_done < self.passes()
            && let Cull::Ratio(ratio) = self.options.cull
        {
            let step = self.step();
            self.engine.restart(|tally| limit(tally, ratio, step));
            self.rings.clear();
            self.place_of.clear();
            self.rows = RowCounts::default();
            self.span = None;
        }
    }

    /// The clock's step, at least one tick.
    fn step(&self) -> i64 {
        i64::try_from(self.manifest.clock.granularity_ticks.max(1)).unwrap_or(i64::MAX)
    }

    /// The report.
    ///
    /// # Errors
    /// If the trace was not read [`Analysis::passes`] times.
    pub fn finish(self) -> Result<Report, Error> {
        if self.passes_done != self.passes() {
            return Err(Error::Passes {
                needed: self.passes(),
                done: self.passes_done,
            });
        }
        Ok(Summary {
            manifest: self.manifest,
            options: self.options,
            has_table: self.table.is_some(),
            rings: self.rings,
            rows: self.rows,
            span: self.span,
        }
        .report(self.engine))
    }
}

/// Samples above `ratio` times the least are dropped; a least of no step at all
/// counts as one step, as nothing is a multiple of nothing.
fn limit(tally: &Tally, ratio: f64, step: i64) -> i64 {
    let least = tally.least.map_or(i64::MAX, |least| least.max(step));
    (least as f64 * ratio) as i64
}

fn add_rules(engine: &mut Engine, table: &Table) -> Result<(), Error> {
    engine.rules = rules(table, &engine.names)?;
    for (interval, rule) in table.intervals.iter().zip(&engine.rules) {
        let kind = match rule.matching {
            Matching::Nested if rule.period => IntervalKind::Period,
            Matching::Nested => IntervalKind::Nested,
            Matching::Key => IntervalKind::Key,
            Matching::Message => IntervalKind::Message,
        };
        let row = engine.slices.duration_row();
        engine
            .tallies
            .push(Tally::new(interval.name.clone(), kind, row));
    }
    for frequency in &table.frequencies {
        let within = frequency.within.map(|w| w as u32);
        engine.add_frequency(frequency.name.clone(), within);
    }
    Ok(())
}
