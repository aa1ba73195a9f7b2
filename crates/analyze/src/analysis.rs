//! The kernel: batches in, report out.

use std::collections::HashMap;

use arrow_array::RecordBatch;
use undertick_estimate::{Cost, Moments, normal_quantile};
use undertick_report::document::{IntervalKind, Report};
use undertick_trace::manifest::Manifest;

use crate::beside::Beside;
use crate::columns::Columns;
use crate::cost::CostTable;
use crate::engine::{Engine, Nearest};
use crate::error::Error;
use crate::evidence::Evidence;
use crate::matching::{self, RowCounts};
use crate::names::Names;
use crate::options::{Compensate, Cull, Options};
use crate::perturbation::Perturbation;
use crate::ring::Ring;
use crate::rules::rules;
use crate::sampled;
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
        subtracting(&mut engine, manifest, options.compensate)?;
        engine.dropping = Some(match options.cull {
            // Until there are rows of the kernel.
            Cull::Auto => Dropping::Descheduled,
            Cull::Kernel => Dropping::Evidence,
            Cull::Ratio(_) => Dropping::OverLimit,
            Cull::None => Dropping::Nothing,
        });
        let error_ns = manifest.kernel.as_ref().map_or(0.0, |k| k.error_ns);
        engine.evidence = Evidence::with_error((error_ns / ns_per_tick).ceil() as i64);
        engine.perturbation = (manifest.perturbation.as_ref())
            .filter(|about| about.pairs > 0)
            .map(|about| Perturbation::new(about, ns_per_tick));
        engine.pairs.gathering = needs_pairs(options.compensate);
        engine.scanning = matches!(options.cull, Cull::Ratio(_)) || engine.pairs.gathering;
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
    /// to the least, or compensated by pairs that the trace holds, else 1.
    #[must_use]
    pub fn passes(&self) -> usize {
        if matches!(self.options.cull, Cull::Ratio(_)) || needs_pairs(self.options.compensate) {
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
            if columns.mode[at] != 0 {
                self.push_kernel(&columns, at);
                at += 1;
                continue;
            }
            let id = columns.ring[at];
            let run = (columns.ring[at..].iter().zip(&columns.mode[at..]))
                .take_while(|&(&ring, &mode)| ring == id && mode == 0)
                .count();
            let rows = columns.rows(at..at + run);
            self.push_run(id, &rows)?;
            at += run;
        }
        Ok(())
    }

    /// A row of the kernel; these come before all others, in the first pass.
    fn push_kernel(&mut self, columns: &Columns<'_>, at: usize) {
        self.rows.kernel += 1;
        if self.passes_done == 0 {
            let (tid, ts) = (columns.tid[at], columns.ts[at]);
            (self.engine.evidence).push(columns.kind[at], tid, ts, columns.payload[at]);
            if let Some(perturbation) = &mut self.engine.perturbation {
                let (event, payload) = (columns.event[at], columns.payload[at]);
                perturbation.push(columns.kind[at], event, ts, payload);
            }
            if self.options.cull == Cull::Auto && self.engine.evidence.is_there() {
                self.engine.dropping = Some(Dropping::Evidence);
            }
        }
    }

    /// Rows of one ring.
    fn push_run(&mut self, id: i32, rows: &Columns<'_>) -> Result<(), Error> {
        let place = self.ring(id, rows)?;
        self.engine.pairs.ring = place as u32;
        self.engine.evidence.select(self.rings[place].tid);
        let first = rows.ts[0];
        let (lo, hi) = (rows.ts.iter()).fold((first, first), |(lo, hi), &t| (lo.min(t), hi.max(t)));
        self.span = Some(self.span.map_or((lo, hi), |(l, h)| (l.min(lo), h.max(hi))));
        self.engine.slices.reach(lo, hi);
        if let Some(perturbation) = &mut self.engine.perturbation {
            perturbation.settle();
        }
        let mut from = 0;
        while from < rows.len() {
            let to = self.until_renewal(place, rows, from);
            if to == from {
                self.rings[place].renew(&mut self.engine);
            } else {
                self.take(place, &rows.rows(from..to));
            }
            from = to;
        }
        Ok(())
    }

    /// Up to the first row, from `from` on, that comes after points were switched on
    /// again.
    fn until_renewal(&self, place: usize, rows: &Columns<'_>, from: usize) -> usize {
        let renewal = (self.engine.perturbation.as_ref())
            .and_then(|found| found.renewals().get(self.rings[place].renewals));
        let Some(&renewal) = renewal else {
            return rows.len();
        };
        let earlier = rows.ts[from..].iter().take_while(|&&ts| ts < renewal);
        from + earlier.count()
    }

    fn take(&mut self, place: usize, rows: &Columns<'_>) {
        let table = self.table.as_ref();
        let seen = matching::rows(&mut self.rings[place], &mut self.engine, rows, table);
        self.rows.events += seen.events;
        self.rows.bad += seen.bad;
        self.rows.gaps += seen.gaps;
        self.rows.lost_in_gaps = self.rows.lost_in_gaps.saturating_add(seen.lost_in_gaps);
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
            id,
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
        if self.passes_done < self.passes() {
            let step = self.step();
            match self.options.cull {
                Cull::Ratio(ratio) => self.engine.restart(|tally| limit(tally, ratio, step)),
                _ => self.engine.restart(|_| i64::MAX),
            }
            if self.engine.pairs.gathering {
                self.engine.pairs.settle();
                self.use_pairs();
            }
            self.rings.clear();
            self.place_of.clear();
            self.rows = RowCounts::default();
            self.span = None;
        }
    }

    /// After the pass that gathered them.
    fn use_pairs(&mut self) {
        if self.options.compensate == Compensate::LongTerm {
            let ns = self.manifest.clock.ns_per_tick();
            let cost = |ticks: &Moments| mean_cost(ticks, self.options.confidence, ns);
            let pairs = &self.engine.pairs;
            let (plain, ordered) = (cost(&pairs.plain_ticks), cost(&pairs.ordered_ticks));
            self.engine.costs = CostTable::long_term(plain, ordered, ns);
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
    pub fn finish(mut self) -> Result<Report, Error> {
        if self.passes_done != self.passes() {
            return Err(Error::Passes {
                needed: self.passes(),
                done: self.passes_done,
            });
        }
        if self.options.cull == Cull::Kernel && !self.engine.evidence.is_there() {
            return Err(Error::NotAvailable {
                method: "--cull kernel".into(),
                why: "it holds no kernel events: record it with --kernel on, which says what is \
                      missing; or use auto, which culls by the descheduled flag",
            });
        }
        let pairs = &self.engine.pairs;
        if needs_pairs(self.options.compensate)
            && pairs.plain_ticks.n() + pairs.ordered_ticks.n() == 0
        {
            return Err(Error::NotAvailable {
                method: format!("--compensate {}", self.options.compensate),
                why: "it holds no pairs of readings: record some with ut_pair, or with \
                      ut_begin_paired and ut_end_paired; or use auto or none",
            });
        }
        let table = self.table.as_ref();
        sampled::settle(&mut self.engine, &self.rings, &self.manifest, table);
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

/// Whether the pairs of the whole trace must be known before any sample.
fn needs_pairs(compensate: Compensate) -> bool {
    matches!(
        compensate,
        Compensate::LongTerm | Compensate::Pairs | Compensate::Sampler
    )
}

/// What the engine is to subtract, as far as that is known before the trace is
/// read.
fn subtracting(
    engine: &mut Engine,
    manifest: &Manifest,
    compensate: Compensate,
) -> Result<(), Error> {
    let ns = manifest.clock.ns_per_tick();
    let calibration = manifest.calibration.as_ref();
    let paired = calibration.and_then(|c| c.paired.as_ref());
    let costs = &mut engine.costs;
    match compensate {
        Compensate::None | Compensate::LongTerm => {}
        Compensate::Auto => {
            if let Some(calibration) = calibration {
                *costs = CostTable::new(calibration, ns);
            }
            costs.beside = paired.map(|paired| match paired.chosen.as_str() {
                "long-term" => Beside::constant(paired, ns),
                _ => Beside::fitted(paired, ns),
            });
        }
        Compensate::Pairs => {
            costs.beside = Some(Beside::published("pairs", paired));
            costs.set_ns_per_tick(ns);
            engine.nearest = Nearest::Own;
        }
        Compensate::Sampler => {
            costs.beside = Some(Beside::published("sampler", None));
            costs.set_ns_per_tick(ns);
            engine.nearest = Nearest::Sampler;
        }
        Compensate::ControlVariate => {
            let paired = paired.ok_or(Error::NotAvailable {
                method: "--compensate control-variate".into(),
                why: "it was recorded without the calibration that fits the shares; \
                      use auto, pairs or none, or record again without --no-calibration",
            })?;
            if let Some(calibration) = calibration {
                *costs = CostTable::new(calibration, ns);
            }
            costs.beside = Some(Beside::fitted(paired, ns));
        }
    }
    Ok(())
}

/// Mean of all pairs as the cost of one reading, ns; its interval that of
/// independent pairs.
fn mean_cost(ticks: &Moments, level: f64, ns_per_tick: f64) -> Cost {
    let (Some(mean), Some(variance)) = (ticks.mean(), ticks.variance()) else {
        return Cost::default();
    };
    let half = normal_quantile(level) * (variance / ticks.n() as f64).sqrt();
    Cost {
        value: mean * ns_per_tick,
        below: half * ns_per_tick,
        above: half * ns_per_tick,
        systematic: false,
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
