//! Collects what the workers of a pass find in the second that is shown.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{Array as _, RecordBatch};
use undertick_format::schema::Kind;

use super::cells::{Cells, Window};
use crate::columns::Columns;
use crate::error::Failed;
use crate::parallel::{ShardSpans, SpanSink};

/// Deeper spans are drawn in one row.
const MOST_DEEP: u32 = 15;
/// The row of points that are not spans.
pub(super) const POINTS: u32 = 900;
/// Their name.
const POINT: &str = "points";
/// Most spans stored one by one, 48 bytes each; of more, the longest are.
const MOST_SINGLE: usize = 1 << 21;

/// A span by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Single {
    pub(super) ring: i32,
    pub(super) row: u32,
    pub(super) name: u32,
    pub(super) start: i64,
    pub(super) ticks: i64,
    /// Number of the reason why it is dropped; 0: it is not.
    pub(super) dropped: u32,
}

/// Words by number, in the order in which they came.
#[derive(Clone, Debug, Default)]
pub(super) struct Words {
    pub(super) list: Vec<String>,
    places: HashMap<String, u32>,
}

impl Words {
    pub(super) fn number(&mut self, word: &str) -> u32 {
        if let Some(&place) = self.places.get(word) {
            return place;
        }
        let place = self.list.len() as u32;
        self.list.push(word.to_owned());
        self.places.insert(word.to_owned(), place);
        place
    }

    /// Returns the numbers here of the words of another.
    fn numbers(&mut self, of: &Self) -> Vec<u32> {
        of.list.iter().map(|word| self.number(word)).collect()
    }
}

/// The longest spans.
#[derive(Clone, Debug, Default)]
pub(super) struct Longest {
    pub(super) spans: Vec<Single>,
    /// All spans shorter than this have been left out.
    pub(super) shortest: Option<i64>,
}

impl Longest {
    pub(super) fn add(&mut self, span: Single) {
        if self.shortest.is_some_and(|shortest| span.ticks < shortest) {
            return;
        }
        self.spans.push(span);
        if self.spans.len() >= 2 * MOST_SINGLE {
            self.thin(MOST_SINGLE);
        }
    }

    /// Keeps only the `most` longest.
    pub(super) fn thin(&mut self, most: usize) {
        if self.spans.len() <= most {
            return;
        }
        let order = |s: &Single| (-s.ticks, s.start, s.ring, s.row);
        self.spans.select_nth_unstable_by_key(most, order);
        let shortest = (self.spans[..most].iter().map(|s| s.ticks)).min();
        self.spans.truncate(most);
        // Some of those as long as the shortest one may be gone.
        self.shortest = self.shortest.max(shortest.map(|ticks| ticks + 1));
    }
}

/// A thread, according to its ring.
#[derive(Clone, Debug, Default)]
pub(super) struct ThreadLane {
    pub(super) tid: i32,
    pub(super) host: i16,
    pub(super) cells: Cells,
}

/// The content of the window.
#[derive(Clone, Debug, Default)]
pub(super) struct WindowContents {
    pub(super) names: Words,
    pub(super) dropped: Words,
    pub(super) lanes: BTreeMap<i32, ThreadLane>,
    pub(super) longest: Longest,
    /// The span furthest over its median, and by how much, ns.
    pub(super) slowest: Option<(f64, Single)>,
    pub(super) instants: u64,
}

impl WindowContents {
    fn absorb(&mut self, mut other: Self) {
        let names = self.names.numbers(&other.names);
        let dropped = self.dropped.numbers(&other.dropped);
        let here = |span: Single| Single {
            name: names[span.name as usize],
            dropped: dropped[span.dropped as usize],
            ..span
        };
        for (ring, lane) in other.lanes {
            let into = self.lanes.entry(ring).or_insert_with(|| ThreadLane {
                cells: Cells::default(),
                ..lane
            });
            into.cells.absorb(lane.cells, &names);
        }
        let shortest = self.longest.shortest.max(other.longest.shortest);
        let more = other.longest.spans.drain(..).map(here);
        self.longest.spans.extend(more);
        self.longest.shortest = shortest;
        let least = shortest.unwrap_or(i64::MIN);
        self.longest.spans.retain(|span| span.ticks >= least);
        self.longest.thin(MOST_SINGLE);
        let slowest = other.slowest.map(|(over, span)| (over, here(span)));
        self.slowest = further(self.slowest, slowest);
        self.instants += other.instants;
    }
}

/// Returns the one further over its median; of equal ones the earlier.
fn further(a: Option<(f64, Single)>, b: Option<(f64, Single)>) -> Option<(f64, Single)> {
    let (Some(x), Some(y)) = (a, b) else {
        return a.or(b);
    };
    let later = x.0.total_cmp(&y.0).then(y.1.start.cmp(&x.1.start)).is_lt();
    if later { b } else { a }
}

/// Collects what the workers find.
pub(super) struct Collecting {
    pub(super) window: Window,
    /// Medians of intervals with more than one sample, ns.
    pub(super) medians: HashMap<String, f64>,
    pub(super) contents: Mutex<WindowContents>,
}

impl SpanSink for Collecting {
    fn shard(&self, _: usize) -> Result<Box<dyn ShardSpans + '_>, Failed> {
        let mut contents = WindowContents::default();
        contents.dropped.number("");
        Ok(Box::new(Collector { of: self, contents }))
    }

    fn window(&self) -> Option<(i64, i64)> {
        Some((self.window.from, self.window.to))
    }
}

struct Collector<'a> {
    of: &'a Collecting,
    contents: WindowContents,
}

impl ShardSpans for Collector<'_> {
    /// Takes points and losses.
    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Failed> {
        let columns = Columns::from_batch(batch)?;
        let window = &self.of.window;
        let (instant, gap) = (Kind::Instant as i8, Kind::Gap as i8);
        for i in 0..columns.n_rows() {
            let (ts, kind) = (columns.rows.ts[i], columns.rows.kind[i]);
            if !window.holds(ts) || (kind != instant && kind != gap) || columns.mode[i] != 0 {
                continue;
            }
            let whose = (columns.tid[i], columns.host[i]);
            let lane = lane(&mut self.contents.lanes, columns.ring[i], whose);
            if kind == gap {
                let lost = columns.rows.payload[i].max(0).unsigned_abs();
                lane.cells.lost(window, ts, lost);
            } else {
                let name = self.contents.names.number(POINT);
                lane.cells.point(window, POINTS, name, ts);
                self.contents.instants += 1;
            }
        }
        Ok(())
    }

    fn spans(&mut self, batch: &RecordBatch) -> Result<(), Failed> {
        let window = &self.of.window;
        let names = batch.column(0).as_dictionary::<Int32Type>();
        let kinds = batch.column(1).as_dictionary::<Int32Type>();
        let kind_words = kinds.values().as_string::<i32>();
        let dropped = batch.column(11).as_dictionary::<Int32Type>();
        let words = |of: &arrow_array::ArrayRef, into: &mut Words| -> Vec<u32> {
            let of = of.as_string::<i32>();
            (0..of.len()).map(|i| into.number(of.value(i))).collect()
        };
        let name_of = words(names.values(), &mut self.contents.names);
        let why_of = words(dropped.values(), &mut self.contents.dropped);
        let medians: Vec<Option<f64>> = (self.contents.names.list.iter())
            .map(|name| self.of.medians.get(name).copied())
            .collect();
        let int = |column: usize| batch.column(column).as_primitive::<Int32Type>().values();
        let long = |column: usize| batch.column(column).as_primitive::<Int64Type>().values();
        let ns = batch.column(8).as_primitive::<Float64Type>().values();
        let (rings, tids, depths) = (int(2), int(4), int(9));
        let (starts, ticks) = (long(5), long(7));
        let hosts = batch
            .column(12)
            .as_primitive::<arrow_array::types::Int16Type>();
        for i in 0..batch.num_rows() {
            let kind = kind_words.value(kinds.keys().value(i) as usize);
            // Messages and periods may overlap others.
            if rings[i] < 0 || !matches!(kind, "nested" | "stage" | "pair") {
                continue;
            }
            let whose = (tids[i], hosts.value(i));
            let lane = lane(&mut self.contents.lanes, rings[i], whose);
            let span = Single {
                ring: rings[i],
                row: u32::try_from(depths[i]).unwrap_or(0).min(MOST_DEEP),
                name: name_of[names.keys().value(i) as usize],
                start: starts[i],
                ticks: ticks[i],
                dropped: match dropped.is_null(i) {
                    true => 0,
                    false => why_of[dropped.keys().value(i) as usize],
                },
            };
            let end = span.start.saturating_add(span.ticks.max(0));
            lane.cells.add(window, span.row, span.name, span.start, end);
            self.contents.longest.add(span);
            let over = medians[span.name as usize].map(|median| ns[i] - median);
            if let Some(over) = over.filter(|over| *over > 0.0) {
                self.contents.slowest = further(self.contents.slowest, Some((over, span)));
            }
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), Failed> {
        let mut all = (self.of.contents.lock()).unwrap_or_else(PoisonError::into_inner);
        all.absorb(self.contents);
        Ok(())
    }
}

fn lane(
    lanes: &mut BTreeMap<i32, ThreadLane>,
    ring: i32,
    (tid, host): (i32, i16),
) -> &mut ThreadLane {
    lanes.entry(ring).or_insert_with(|| ThreadLane {
        tid,
        host,
        cells: Cells::default(),
    })
}
