//! The analysis kernel: batches in, report out.

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::Arc;

use arrow_array::RecordBatch;
use undertick_document::{IntervalKind, Report};
use undertick_estimate::{Cost, Moments, normal_quantile};
use undertick_evidence::{Evidence, Timer};
use undertick_format::manifest::Manifest;

use crate::clocks::Clocks;
use crate::columns::Columns;
use crate::cost::{CostTable, PairCorrection};
use crate::error::Error;
use crate::match_context::{MatchContext, Nearest};
use crate::matching::{RowCounts, settle_messages};
use crate::names::Names;
use crate::options::{Compensate, Cull, Options};
use crate::perturbation::Perturbation;
use crate::reading::Recorded;
use crate::roles::Roles;
use crate::rules::rules;
use crate::sampled;
use crate::shard::{RingAccount, ShardResult, Worker};
use crate::span_rows::SpanRows;
use crate::summary::Summary;
use crate::table::{Matching, Table};
use crate::tally::{Dropping, Tally};
use crate::tree::Tree;
use crate::watch::{Watch, Watched};

/// One analysis of one trace. Feed every batch in the order of the trace, [`Analysis::passes`]
/// times, and report the end of each pass.
///
/// Or run several workers in parallel: pass the rows of the kernel to the analysis
/// ([`Analysis::push`]) and those of the program to workers ([`Analysis::worker`]), each of which
/// has different rings. Then merge their results ([`Analysis::absorb`]).
#[derive(Debug)]
pub struct Analysis {
    manifest: Manifest,
    options: Options,
    /// The table, if it defines intervals or frequencies.
    table: Option<Arc<Table>>,
    /// What is known of the trace before there are samples.
    known: MatchContext,
    /// What has been merged in this pass.
    whole: MatchContext,
    /// Analyses the rows that are pushed here.
    worker: Option<Box<Worker>>,
    rings: Vec<RingAccount>,
    rows: RowCounts,
    /// First and last reading, ticks.
    span: Option<(i64, i64)>,
    passes_done: usize,
    /// The calls that workers have looked at.
    watched: Watched,
}

/// A stretch of a trace, ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    /// First and last event of the trace.
    pub(crate) first: i64,
    pub(crate) last: i64,
    /// The beginning of the stretch.
    pub(crate) from: i64,
    pub(crate) to: i64,
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
        let mut context = MatchContext::default();
        context.set_names(Names::new(&manifest.names, renames));
        context.roles = Arc::new(Roles::from_threads(&manifest.threads));
        context.tree = Tree::with_roles(context.roles.names().len());
        if let Some(table) = &table {
            add_rules(&mut context, table)?;
        }
        subtracting(&mut context, manifest, options.compensate)?;
        context.dropping = Some(match options.cull {
            // Until there are rows of the kernel.
            Cull::Auto => Dropping::Descheduled,
            Cull::Kernel => Dropping::Evidence,
            Cull::Ratio(_) => Dropping::OverLimit,
            Cull::None => Dropping::Nothing,
        });
        let error_ns = manifest.kernel.as_ref().map_or(0.0, |k| k.error_ns);
        context.evidence = Evidence::with_error(
            (error_ns / ns_per_tick).ceil() as i64,
            (1e3 / ns_per_tick) as i64,
        )
        .with_timer(
            (manifest.calibration.as_ref())
                .and_then(|calibration| calibration.interrupt.as_ref())
                .map(|cost| Timer::new(cost, ns_per_tick)),
        );
        context.perturbation = (manifest.perturbation.as_ref())
            .filter(|about| about.pairs > 0)
            .map(|about| Perturbation::new(about, ns_per_tick));
        context.clocks = Arc::new(Clocks::from_manifest(manifest));
        context.never_wait = (manifest.rings.iter())
            .filter(|ring| ring.spans_wait == Some(false))
            .map(|ring| ring.ring)
            .collect::<HashSet<i32>>()
            .into();
        context.interposed = Arc::new(manifest.interposed_rings());
        context.pairs.gathering = needs_pairs(options.compensate);
        context.scanning = matches!(options.cull, Cull::Ratio(_)) || context.pairs.gathering;
        Ok(Self {
            manifest: manifest.clone(),
            options,
            table: table.map(Arc::new),
            whole: context.clone(),
            known: context,
            worker: None,
            rings: Vec::new(),
            rows: RowCounts::default(),
            span: None,
            passes_done: 0,
            watched: Watched::default(),
        })
    }

    /// How often the trace must be read: 2 if samples are dropped by their ratio to the smallest,
    /// or compensated by pairs that the trace holds, otherwise 1.
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
    /// A batch without the columns of [`undertick_format::schema`], or more rings than a trace can
    /// have. Rows with meaningless codes are not errors: they are counted and reported.
    pub fn push(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        let columns = Columns::from_batch(batch)?;
        let mut at = 0;
        while at < columns.n_rows() {
            if columns.mode[at] != 0 {
                self.push_kernel(&columns, at);
                at += 1;
                continue;
            }
            let mut worker = match self.worker.take() {
                Some(worker) => worker,
                None => Box::new(self.worker(false)),
            };
            at += worker.push_from(&columns, at)?;
            self.worker = Some(worker);
        }
        Ok(())
    }

    /// Takes a row of the kernel; these come before all others, in the first pass.
    fn push_kernel(&mut self, columns: &Columns<'_>, at: usize) {
        self.rows.kernel += 1;
        if self.passes_done == 0 {
            let (rows, tid) = (&columns.rows, columns.tid[at]);
            let (kind, ts, payload) = (rows.kind[at], rows.ts[at], rows.payload[at]);
            let known = &mut self.known;
            known.evidence.push(kind, rows.event[at], tid, ts, payload);
            if let Some(perturbation) = &mut known.perturbation {
                perturbation.push(kind, rows.event[at], ts, payload);
            }
            if self.options.cull == Cull::Auto && known.evidence.is_there() {
                known.dropping = Some(Dropping::Evidence);
            }
        }
    }

    /// Analyses the rows of a subset of rings in this pass, once all rows of the kernel have
    /// come. `by_ring`: the rows of each ring come together.
    #[must_use]
    pub fn worker(&mut self, by_ring: bool) -> Worker {
        self.known.settle();
        Worker::new(self.known.clone(), self.table.clone(), by_ring)
    }

    /// Stores spans as rows in the next pass, which is the last: all spans, or those that touch a
    /// time.
    pub(crate) fn keep_spans(&mut self, window: Option<(i64, i64)>) {
        let clock = &self.manifest.clock;
        let origin = clock.anchors.first().map_or(0, |anchor| anchor.ticks);
        self.known.spans = Some(Box::new(SpanRows::new(clock.ns_per_tick(), origin, window)));
    }

    /// Watches calls, or joins samples to spans, in the next pass.
    pub(crate) fn watch(&mut self, watch: Watch) {
        self.known.watch = Some(Box::new(watch));
    }

    /// The calls that were looked at, the kernel's rows, and the time of the first event.
    pub(crate) fn watched(self) -> (Watched, Evidence, i64) {
        let first = self.span.map_or(0, |(first, _)| first);
        (self.watched, self.known.evidence, first)
    }

    /// The stretch of the trace in which samples took longest; `None` without events.
    pub(crate) fn stretch(&self) -> Option<Stretch> {
        let (first, last) = self.span?;
        let rows = self.whole.tallies.iter().map(|tally| tally.row);
        let (from, to) = (self.whole.slices.slowest(rows)).unwrap_or((first, last));
        Some(Stretch {
            first,
            last,
            from: from.max(first),
            to: to.min(last),
        })
    }

    /// Merges the results of a shard. The same shards in the same order give the same
    /// report, whichever worker made them.
    pub fn absorb(&mut self, mut result: ShardResult) {
        if self.rings.is_empty() {
            // The kernel's rows of the trace are complete now.
            self.known.settle();
            self.whole = self.known.clone();
        }
        if let Some(watched) = result.watched.take() {
            self.watched.append(watched);
        }
        self.rows.add(&result.rows);
        self.rings.append(&mut result.rings);
        if let Some((lo, hi)) = result.span {
            self.span = Some(self.span.map_or((lo, hi), |(l, h)| (l.min(lo), h.max(hi))));
        }
        self.whole.absorb(result);
    }

    /// Reports that the trace has been read to its end once.
    pub fn finish_pass(&mut self) {
        let Ok(()) = self.finish_pass_into(|_| Ok::<(), Infallible>(()));
    }

    /// As [`Self::finish_pass`]; `spans` receives the spans between threads, if spans are stored.
    pub(crate) fn finish_pass_into<E>(
        &mut self,
        spans: impl FnMut(RecordBatch) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Some(worker) = self.worker.take() {
            self.absorb(worker.finish());
        }
        if self.rings.is_empty() {
            self.whole = self.known.clone();
        }
        settle_messages(&mut self.whole, spans)?;
        self.passes_done += 1;
        if self.passes_done < self.passes() {
            self.prepare_second_pass();
        }
        Ok(())
    }

    /// Prepares the second pass from the results of the first.
    fn prepare_second_pass(&mut self) {
        let step = self.step();
        let mut whole = std::mem::take(&mut self.whole);
        match self.options.cull {
            Cull::Ratio(ratio) => whole.restart(|tally| limit(tally, ratio, step)),
            _ => whole.restart(|_| i64::MAX),
        }
        self.known = whole;
        if self.known.pairs.gathering {
            self.known.pairs.settle();
            self.use_pairs();
        }
        self.rings.clear();
        self.rows = RowCounts::default();
        self.span = None;
    }

    /// Uses the pairs after the pass that gathered them.
    fn use_pairs(&mut self) {
        if self.options.compensate == Compensate::LongTerm {
            let ns = self.manifest.clock.ns_per_tick();
            let cost = |ticks: &Moments| mean_cost(ticks, self.options.confidence, ns);
            let pairs = &self.known.pairs.gathered;
            let (plain, ordered) = (cost(&pairs.plain_ticks), cost(&pairs.ordered_ticks));
            self.known.costs = CostTable::long_term(plain, ordered, ns);
        }
    }

    /// The clock's step, at least one tick.
    fn step(&self) -> f64 {
        self.manifest.clock.granularity_ticks.max(1.0)
    }

    /// Returns the report.
    ///
    /// # Errors
    /// The trace was not read [`Analysis::passes`] times.
    pub fn finish(mut self) -> Result<Report, Error> {
        if self.passes_done != self.passes() {
            return Err(Error::Passes {
                needed: self.passes(),
                done: self.passes_done,
            });
        }
        if self.options.cull == Cull::Kernel && !self.whole.evidence.is_there() {
            return Err(Error::NotAvailable {
                method: "--cull kernel".into(),
                why: "it holds no kernel events: record it with --kernel on, which says what is \
                      missing; or use auto, which culls by the descheduled flag",
            });
        }
        let pairs = &self.whole.pairs.gathered;
        if needs_pairs(self.options.compensate)
            && pairs.plain_ticks.n() + pairs.ordered_ticks.n() == 0
        {
            return Err(Error::NotAvailable {
                method: format!("--compensate {}", self.options.compensate),
                why: "it holds no pairs of readings: record some with ut_pair, or with \
                      ut_begin_paired and ut_end_paired; or use auto or none",
            });
        }
        let table = self.table.as_deref();
        sampled::settle(&mut self.whole, &self.rings, &self.manifest, table);
        Ok(Summary {
            manifest: self.manifest,
            options: self.options,
            has_table: self.table.is_some(),
            rings: self.rings,
            rows: self.rows,
            span: self.span,
        }
        .report(self.whole))
    }
}

/// Whether the pairs of the whole trace must be known before any sample.
fn needs_pairs(compensate: Compensate) -> bool {
    matches!(
        compensate,
        Compensate::LongTerm | Compensate::Pairs | Compensate::Sampler
    )
}

/// What the match context has to subtract, as far as that is known before the trace is read.
fn subtracting(
    context: &mut MatchContext,
    manifest: &Manifest,
    compensate: Compensate,
) -> Result<(), Error> {
    let ns = manifest.clock.ns_per_tick();
    let measured = manifest.calibration.as_ref();
    // A neighbour, or the core's frequency, can make readings dearer for the program than they
    // were when the cost was measured.
    let change = measured.and_then(|measured| measured.change_to(manifest.read_ns().as_ref()));
    let calibration = &measured.map(|measured| match &change {
        Some(change) => measured.after(change),
        None => measured.clone(),
    });
    let paired = measured.and_then(|c| c.paired.as_ref());
    let recorded = Recorded::by(&manifest.names, &manifest.rings);
    let costs = &mut context.costs;
    match compensate {
        Compensate::None | Compensate::LongTerm => {}
        Compensate::Auto => {
            if let Some(calibration) = calibration {
                *costs = CostTable::new(calibration, recorded, ns);
                costs.read_ratio = change.map(|change| change.ratio);
            }
            costs.pair_correction = paired.map(|paired| match paired.chosen.as_str() {
                "long-term" => PairCorrection::constant(paired, ns),
                _ => PairCorrection::fitted(paired, ns),
            });
        }
        Compensate::Pairs => {
            costs.pair_correction = Some(PairCorrection::published(paired));
            costs.set_ns_per_tick(ns);
            context.nearest = Nearest::Own;
        }
        Compensate::Sampler => {
            let calibrated = (calibration.as_ref())
                .map(|calibration| CostTable::new(calibration, recorded, ns).span_costs());
            costs.pair_correction = Some(PairCorrection::of_sampler(calibrated));
            costs.set_ns_per_tick(ns);
            context.nearest = Nearest::Sampler;
        }
        Compensate::ControlVariate => {
            let paired = paired.ok_or(Error::NotAvailable {
                method: "--compensate control-variate".into(),
                why: "it holds no calibration to fit the shares; use auto, pairs or none, or \
                      record again without --no-calibration, where less runs beside it",
            })?;
            if let Some(calibration) = calibration {
                *costs = CostTable::new(calibration, recorded, ns);
            }
            costs.pair_correction = Some(PairCorrection::fitted(paired, ns));
        }
    }
    Ok(())
}

/// Mean of all pairs as the cost of one reading, ns; its confidence interval is that of
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

/// Samples above `ratio` times the smallest are dropped. A smallest sample below one step counts
/// as one step, because a multiple of 0 is 0.
fn limit(tally: &Tally, ratio: f64, step: f64) -> i64 {
    let least = tally
        .least
        .map_or(f64::INFINITY, |least| (least as f64).max(step));
    (least * ratio) as i64
}

fn add_rules(context: &mut MatchContext, table: &Table) -> Result<(), Error> {
    context.rules = rules(table, &context.names)?.into();
    for (interval, rule) in table.intervals.iter().zip(context.rules.iter()) {
        let kind = match rule.matching {
            Matching::Nested if rule.period => IntervalKind::Period,
            Matching::Nested => IntervalKind::Nested,
            Matching::Key => IntervalKind::Key,
            Matching::Message => IntervalKind::Message,
        };
        let row = context.slices.duration_row();
        context
            .tallies
            .push(Tally::new(interval.name.clone(), None, kind, row));
    }
    for frequency in &table.frequencies {
        let within = frequency.within.map(|w| w as u32);
        context.add_frequency(frequency.name.clone(), within);
    }
    Ok(())
}
