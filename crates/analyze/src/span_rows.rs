//! Collects spans as rows, while they are matched.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, Int16Array, Int32Array, Int64Array, RecordBatch,
    StringArray,
};
use undertick_document::IntervalKind;

use crate::spans::span_schema;

use crate::tally::Tally;
use undertick_evidence::{CAUSES, Cause};

/// Reason for dropping a span, in addition to those of [`Cause`].
const DESCHEDULED: i32 = CAUSES as i32;
const RATIO: i32 = DESCHEDULED + 1;
/// The span is not dropped, or has no parent.
const NONE: i32 = -1;

/// One span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpanRow {
    pub(crate) interval: u32,
    pub(crate) start: i64,
    pub(crate) ticks: i64,
    /// Duration without the cost of recording.
    pub(crate) value: i64,
    pub(crate) parent: Option<u32>,
    pub(crate) dropped: Option<Dropped>,
}

/// Why a span counts in no figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dropped {
    By(Cause),
    Descheduled,
    Ratio,
}

/// Rows that have not been written.
#[derive(Clone, Debug, Default)]
pub(crate) struct SpanRows {
    /// Ring, process, thread and host of the next rows.
    pub(crate) whose: (i32, i32, i32, i16),
    /// Number of spans open around the one that is ending.
    pub(crate) depth: i32,
    ns_per_tick: f64,
    /// Ticks from which `start_ns` counts.
    origin: i64,
    /// Only spans that touch this time are wanted.
    window: Option<(i64, i64)>,
    name: Vec<i32>,
    whose_rows: [Vec<i32>; 3],
    host: Vec<i16>,
    start: Vec<i64>,
    ticks: Vec<i64>,
    value: Vec<i64>,
    depths: Vec<i32>,
    parent: Vec<i32>,
    dropped: Vec<i32>,
}

impl SpanRows {
    pub(crate) fn new(ns_per_tick: f64, origin: i64, window: Option<(i64, i64)>) -> Self {
        Self {
            whose: (-1, -1, -1, 0),
            ns_per_tick,
            origin,
            window,
            ..Self::default()
        }
    }

    pub(crate) fn push(&mut self, row: &SpanRow) {
        if let Some((from, to)) = self.window
            && (row.start >= to || row.start.saturating_add(row.ticks.max(0)) < from)
        {
            return;
        }
        let (ring, pid, tid, host) = self.whose;
        self.name.push(row.interval as i32);
        for (column, value) in self.whose_rows.iter_mut().zip([ring, pid, tid]) {
            column.push(value);
        }
        self.host.push(host);
        self.start.push(row.start);
        self.ticks.push(row.ticks);
        self.value.push(row.value);
        self.depths.push(self.depth);
        self.parent
            .push(row.parent.map_or(NONE, |place| place as i32));
        self.dropped.push(match row.dropped {
            None => NONE,
            Some(Dropped::By(cause)) => cause as i32,
            Some(Dropped::Descheduled) => DESCHEDULED,
            Some(Dropped::Ratio) => RATIO,
        });
    }

    /// Takes the rows so far; `tallies` are their intervals.
    pub(crate) fn take(&mut self, tallies: &[Tally]) -> Option<RecordBatch> {
        if self.name.is_empty() {
            return None;
        }
        let names: ArrayRef = Arc::new(StringArray::from_iter_values(
            tallies.iter().map(|tally| &tally.name),
        ));
        let kinds = Arc::new(StringArray::from_iter_values(KINDS.map(|(_, name)| name)));
        let causes = Cause::ALL.map(Cause::name).into_iter();
        let causes = causes.chain(["descheduled", "ratio"]);
        let causes = Arc::new(StringArray::from_iter_values(causes));
        let name = std::mem::take(&mut self.name);
        let kind: Int32Array = (name.iter())
            .map(|&place| kind_code(tallies[place as usize].kind))
            .collect();
        let words = |codes: Int32Array, words: ArrayRef| -> ArrayRef {
            Arc::new(DictionaryArray::<Int32Type>::new(codes, words))
        };
        let or_null = |codes: &mut Vec<i32>| -> Int32Array {
            (std::mem::take(codes).into_iter())
                .map(|code| (code != NONE).then_some(code))
                .collect()
        };
        let start = std::mem::take(&mut self.start);
        let ns = |ticks: i64| ticks as f64 * self.ns_per_tick;
        let start_ns: Int64Array = (start.iter())
            .map(|&start| ns(start.saturating_sub(self.origin)).round() as i64)
            .collect();
        let value: Float64Array = self.value.drain(..).map(ns).collect();
        let [ring, pid, tid] = std::mem::take(&mut self.whose_rows).map(Int32Array::from);
        let columns: Vec<ArrayRef> = vec![
            words(name.into(), Arc::clone(&names)),
            words(kind, kinds),
            Arc::new(ring),
            Arc::new(pid),
            Arc::new(tid),
            Arc::new(Int64Array::from(start)),
            Arc::new(start_ns),
            Arc::new(Int64Array::from(std::mem::take(&mut self.ticks))),
            Arc::new(value),
            Arc::new(Int32Array::from(std::mem::take(&mut self.depths))),
            words(or_null(&mut self.parent), names),
            words(or_null(&mut self.dropped), causes),
            Arc::new(Int16Array::from(std::mem::take(&mut self.host))),
        ];
        Some(RecordBatch::try_new(span_schema(), columns).expect("columns as the schema says"))
    }
}

/// The kinds, by their index.
const KINDS: [(IntervalKind, &str); 6] = [
    (IntervalKind::Nested, "nested"),
    (IntervalKind::Stage, "stage"),
    (IntervalKind::Pair, "pair"),
    (IntervalKind::Period, "period"),
    (IntervalKind::Key, "key"),
    (IntervalKind::Message, "message"),
];

fn kind_code(kind: IntervalKind) -> i32 {
    let place = KINDS.iter().position(|(known, _)| *known == kind);
    place.map_or(0, |place| place as i32)
}
