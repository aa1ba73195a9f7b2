//! Analyses one shard, a subset of the rings of a trace, and merges the results.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use serde::{Deserialize, Serialize};
use undertick_format::block::BlockHeader;
use undertick_format::palette_block::PaletteBlock;
use undertick_format::rows::RowsOfRing;

use crate::columns::{Columns, Writer, cut};
use crate::error::Error;
use crate::kinds::GAP;
use crate::match_context::{Frequency, MatchContext};
use crate::matching::{self, RowCounts};
use crate::messages::Messages;
use crate::pairs::Gathered;
use crate::palette_matcher::PaletteMatcher;
use crate::perturbation::SectionsOf;
use crate::ring::Ring;
use crate::slices::Slices;
use crate::strata::Begun;
use crate::table::Table;
use crate::tally::{Parent, Tally};
use crate::tree::TreeOf;
use crate::watch::Watched;

/// Most rings of a trace; each costs at least a few hundred bytes.
const MOST_RINGS: usize = 1 << 20;

/// Analyses the rows of a subset of rings. Made by [`crate::Analysis::worker`].
#[derive(Debug)]
pub struct Worker {
    context: MatchContext,
    table: Option<Arc<Table>>,
    /// The rows of each ring come together.
    by_ring: bool,
    rings: Vec<Ring>,
    place_of: HashMap<i32, usize>,
    last: Option<usize>,
    rows: RowCounts,
    /// First and last reading, ticks.
    span: Option<(i64, i64)>,
    /// Where blocks come in terms of their palettes.
    palette_matcher: Option<Box<PaletteMatcher>>,
}

/// The results of one shard, a subset of the rings of a trace. The shards of one trace are merged
/// by [`crate::Analysis::absorb`]; results can be sent to the process that merges them.
#[derive(Debug, Serialize, Deserialize)]
pub struct ShardResult {
    tallies: Vec<Tally>,
    frequencies: Vec<Frequency>,
    slices: Slices,
    tree: TreeOf,
    sections: SectionsOf,
    gathered: Gathered,
    messages: Messages,
    pub(crate) rings: Vec<RingAccount>,
    pub(crate) rows: RowCounts,
    pub(crate) span: Option<(i64, i64)>,
    pushed_out: u64,
    crowded: u64,
    /// Where calls were looked at; not sent to other processes.
    #[serde(skip)]
    pub(crate) watched: Option<Watched>,
}

/// What remains of a ring when all its rows have been seen.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RingAccount {
    pub(crate) id: i32,
    pub(crate) pid: i32,
    pub(crate) tid: i32,
    /// Executions that the begins of sampled spans stood for.
    pub(crate) begun: Begun,
}

impl Worker {
    /// Makes a worker; `context` knows the trace, and has no samples.
    pub(crate) fn new(context: MatchContext, table: Option<Arc<Table>>, by_ring: bool) -> Self {
        Self {
            context,
            table,
            by_ring,
            rings: Vec::new(),
            place_of: HashMap::new(),
            last: None,
            rows: RowCounts::default(),
            span: None,
            palette_matcher: None,
        }
    }

    /// Makes another worker, for other rings, if this one has not taken any rows yet.
    pub(crate) fn again(&self, by_ring: bool) -> Self {
        Self::new(self.context.clone(), self.table.clone(), by_ring)
    }

    /// Takes the next batch: rows of the program. Events of one ring must come in order; rings
    /// may be interleaved, unless `by_ring` was set.
    ///
    /// # Errors
    /// A batch without the columns of [`undertick_format::schema`], or more rings than a trace can
    /// have. Rows with meaningless codes are not errors: they are counted and reported.
    pub fn push(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        let columns = Columns::from_batch(batch)?;
        let mut at = 0;
        while at < columns.n_rows() {
            at += self.push_from(&columns, at)?;
        }
        Ok(())
    }

    /// Takes rows from `at` on, as long as they are of one ring and of the program; returns how
    /// many it took.
    pub(crate) fn push_from(&mut self, columns: &Columns<'_>, at: usize) -> Result<usize, Error> {
        if columns.mode[at] != 0 {
            return Ok(1); // of the kernel: told to all workers before
        }
        let id = columns.ring[at];
        let run = (columns.ring[at..].iter().zip(&columns.mode[at..]))
            .take_while(|&(&ring, &mode)| ring == id && mode == 0)
            .count();
        self.push_run(columns.writer(at), &cut(&columns.rows, at..at + run))?;
        Ok(run)
    }

    /// Takes rows of the ring that their block names.
    ///
    /// # Errors
    /// More rings than a trace can have.
    pub fn push_rows(&mut self, block: BlockHeader, rows: &RowsOfRing<'_>) -> Result<(), Error> {
        if rows.ts.is_empty() {
            return Ok(());
        }
        self.push_run(Writer::from_block(block), rows)
    }

    /// Takes rows of one ring from a position on, as long as this path can take them; returns the
    /// first that it cannot take: [`Self::push_rows`] takes it.
    ///
    /// # Errors
    /// More rings than a trace can have.
    pub fn push_palette_block(
        &mut self,
        header: BlockHeader,
        block: &PaletteBlock,
        from: usize,
    ) -> Result<usize, Error> {
        if self.is_interposed(header.ring as i32) {
            self.rows.events += (block.ts().len() - from) as u64;
            return Ok(block.ts().len());
        }
        let is_general = self.table.is_some() || self.context.perturbation.is_some();
        let span = block.span().filter(|_| from < block.ts().len());
        let Some(span) = span.filter(|_| !is_general && self.context.lets_wait()) else {
            return Ok(from);
        };
        let place = self.enter(Writer::from_block(header))?;
        self.reach(span);
        let palette_matcher = self
            .palette_matcher
            .get_or_insert_with(|| Box::new(PaletteMatcher::new()));
        let to = palette_matcher.rows(&mut self.rings[place], &mut self.context, block, from, span);
        self.rows.events += (to - from) as u64;
        Ok(to)
    }

    /// Whether a preloaded library wrote the ring: it has no spans.
    fn is_interposed(&self, ring: i32) -> bool {
        !self.context.interposed.is_empty() && self.context.interposed.contains(&ring)
    }

    /// The index of the ring whose rows come next.
    fn enter(&mut self, writer: Writer) -> Result<usize, Error> {
        let place = self.ring(writer)?;
        if self.last != Some(place) {
            self.tally_palette_blocks();
            if self.by_ring && self.last.is_some() {
                self.context.next_thread();
            }
            self.last = Some(place);
            self.context.pairs.ring = writer.ring;
            if let Some(spans) = &mut self.context.spans {
                let ring = &self.rings[place];
                spans.whose = (writer.ring, ring.pid, ring.tid, ring.host);
            }
            self.context.evidence.select(self.rings[place].tid);
        }
        Ok(place)
    }

    /// Notes the smallest and the largest of readings.
    fn reach(&mut self, (lo, hi): (i64, i64)) {
        self.span = Some(self.span.map_or((lo, hi), |(l, h)| (l.min(lo), h.max(hi))));
        self.context.slices.reach(lo, hi);
    }

    /// Tallies the samples that wait from blocks, because other rows come.
    fn tally_palette_blocks(&mut self) {
        if let Some(palette_matcher) = &mut self.palette_matcher {
            palette_matcher.tally(&mut self.context);
        }
    }

    /// Takes rows of one ring.
    fn push_run(&mut self, writer: Writer, rows: &RowsOfRing<'_>) -> Result<(), Error> {
        if self.is_interposed(writer.ring) {
            self.rows.events += rows.kind.iter().filter(|&&kind| kind != GAP).count() as u64;
            return Ok(());
        }
        let place = self.enter(writer)?;
        self.tally_palette_blocks();
        let first = rows.ts[0];
        self.reach((rows.ts.iter()).fold((first, first), |(lo, hi), &ts| (lo.min(ts), hi.max(ts))));
        let mut from = 0;
        while from < rows.ts.len() {
            let to = self.until_renewal(place, rows, from);
            if to == from {
                self.rings[place].renew(&mut self.context);
            } else {
                self.take(place, &cut(rows, from..to));
            }
            from = to;
        }
        Ok(())
    }

    /// Returns the position of the first row, from `from` on, that comes after points were
    /// switched on again.
    fn until_renewal(&self, place: usize, rows: &RowsOfRing<'_>, from: usize) -> usize {
        let renewal = (self.context.perturbation.as_ref())
            .and_then(|found| found.renewals().get(self.rings[place].renewals));
        let Some(&renewal) = renewal else {
            return rows.ts.len();
        };
        let earlier = rows.ts[from..].iter().take_while(|&&ts| ts < renewal);
        from + earlier.count()
    }

    fn take(&mut self, place: usize, rows: &RowsOfRing<'_>) {
        let table = self.table.as_deref();
        let seen = matching::rows(&mut self.rings[place], &mut self.context, rows, table);
        self.rows.add(&seen);
    }

    fn ring(&mut self, writer: Writer) -> Result<usize, Error> {
        let Writer {
            ring: id,
            pid,
            tid,
            host,
        } = writer;
        if let Some(&place) = self.place_of.get(&id) {
            return Ok(place);
        }
        if self.rings.len() >= MOST_RINGS {
            return Err(Error::Rings(MOST_RINGS));
        }
        self.rings.push(Ring {
            id,
            pid,
            tid,
            host,
            root: (self.context.tree).root(self.context.roles.role(pid, tid)),
            set: self.context.names.set_of(pid),
            never_waits: self.context.never_wait.contains(&id),
            ..Ring::default()
        });
        self.place_of.insert(id, self.rings.len() - 1);
        Ok(self.rings.len() - 1)
    }

    /// Returns spans matched since the last call, if they are stored ([`crate::keep_spans`]).
    pub(crate) fn take_spans(&mut self) -> Option<RecordBatch> {
        self.context.take_spans()
    }

    /// Ends the work: all rows of these rings have come.
    #[must_use]
    pub fn finish(mut self) -> ShardResult {
        self.tally_palette_blocks();
        for ring in &mut self.rings {
            ring.join_open(&mut self.context);
            ring.abandon(&mut self.context, false);
        }
        let tallies = &self.context.tallies;
        (self.context.tree).finish(|of| tallies[of as usize].samples());
        let watched = self.context.watch.take().map(|watch| {
            let intervals = tallies.iter().map(|tally| tally.name.clone());
            let events = self.context.frequencies.iter().map(|of| of.name.clone());
            let names = |path| self.context.path_names(path);
            watch.finish(intervals.collect(), events.collect(), names)
        });
        let perturbation = self.context.perturbation.as_mut();
        ShardResult {
            watched,
            sections: perturbation.map_or_else(SectionsOf::new, |p| p.take_sections()),
            tallies: self.context.tallies,
            frequencies: self.context.frequencies,
            slices: self.context.slices,
            tree: self.context.tree.take(),
            gathered: self.context.pairs.gathered,
            messages: self.context.messages,
            rings: (self.rings.into_iter())
                .map(|ring| RingAccount {
                    id: ring.id,
                    pid: ring.pid,
                    tid: ring.tid,
                    begun: ring.begun,
                })
                .collect(),
            rows: self.rows,
            span: self.span,
            pushed_out: self.context.pushed_out,
            crowded: self.context.crowded,
        }
    }
}

impl MatchContext {
    pub(crate) fn take_spans(&mut self) -> Option<RecordBatch> {
        self.spans.as_mut()?.take(&self.tallies)
    }

    /// Announces that all rows of the kernel have come.
    pub(crate) fn settle(&mut self) {
        self.evidence.settle();
        if let Some(perturbation) = &mut self.perturbation {
            perturbation.settle();
        }
    }

    /// Merges the results for some rings.
    pub(crate) fn absorb(&mut self, result: ShardResult) {
        let ShardResult {
            tallies,
            frequencies,
            slices,
            tree,
            sections,
            gathered,
            messages,
            pushed_out,
            crowded,
            ..
        } = result;
        self.pushed_out += pushed_out;
        self.crowded += crowded;
        self.messages.append(messages);
        self.pairs.gathered.merge(gathered);
        // The index here of each of its intervals and frequencies; those for which there is no
        // room any more go into one that is not shown.
        let places: Vec<Option<u32>> = (tallies.iter().enumerate())
            .map(|(place, tally)| match tally.family {
                None => Some(place as u32),
                Some(family) => self.place_of(&tally.name, family),
            })
            .collect();
        let rows: Vec<Option<u32>> = (frequencies.iter().enumerate())
            .map(|(row, frequency)| match self.rules.is_empty() {
                false => Some(row as u32),
                true => self.frequency_of(&frequency.name),
            })
            .collect();
        let durations: Vec<Option<u32>> = (places.iter())
            .map(|place| place.map(|place| self.tallies[place as usize].row))
            .collect();
        self.slices.merge(&slices, &rows, &durations);
        for (frequency, row) in frequencies.iter().zip(&rows) {
            match row {
                Some(row) => {
                    let ours = &mut self.frequencies[*row as usize];
                    ours.seen += frequency.seen;
                    ours.untold += frequency.untold;
                }
                None => self.crowded += slices.total(frequency.row),
            }
        }
        let here = |place: u32| places.get(place as usize).copied().flatten();
        self.tree.merge(tree, here);
        if let Some(perturbation) = &mut self.perturbation {
            perturbation.merge(sections, here);
        }
        for (mut tally, place) in tallies.into_iter().zip(&places) {
            tally.parent = match tally.parent {
                Parent::One(outer) => here(outer).map_or(Parent::Various, Parent::One),
                other => other,
            };
            match place {
                Some(place) => self.tallies[*place as usize].merge(tally),
                None => self.crowded += tally.kept.n() + tally.culled(),
            }
        }
    }
}
