//! Converts records of a ring to rows of a trace.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int8Array, Int16Array, Int32Array, Int64Array, RecordBatch};
use undertick_ring::{DeschedFlag, Kind as RecordKind, Record};

use crate::block::{self, BlockHeader, Group, Keys, Next, Sink};
use crate::palette_block::PaletteBlock;
use crate::schema::{Kind, event_schema};

/// The rows of a ring: columns of equal length.
#[derive(Clone, Copy, Debug)]
pub struct RowsOfRing<'a> {
    /// [`crate::schema::TS`].
    pub ts: &'a [i64],
    /// [`crate::schema::KIND`].
    pub kind: &'a [i8],
    /// [`crate::schema::DESCHEDULED`].
    pub descheduled: &'a [i8],
    /// [`crate::schema::EVENT`].
    pub event: &'a [i32],
    /// [`crate::schema::PAYLOAD`].
    pub payload: &'a [i64],
}

/// The meaning of a palette word of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Key {
    /// [`crate::schema::KIND`].
    pub kind: i8,
    /// [`crate::schema::DESCHEDULED`].
    pub descheduled: i8,
    cpu: i16,
    /// [`crate::schema::EVENT`].
    pub event: i32,
}

impl Key {
    /// Decodes a word; `None` for a continuation, which is not a row by itself.
    pub(crate) fn from_word(word: u32) -> Option<Self> {
        let record = Record::from_words([0, u64::from(word) << 32]);
        (record.kind != RecordKind::Continuation).then(|| Self {
            kind: record.kind as i8,
            descheduled: flag(&record),
            cpu: cpu(&record),
            event: i32::from(record.event),
        })
    }
}

fn flag(record: &Record) -> i8 {
    match record.descheduled {
        DeschedFlag::No => 0,
        DeschedFlag::Yes => 1,
        DeschedFlag::Unknown => -1,
    }
}

fn cpu(record: &Record) -> i16 {
    match record.cpu {
        Record::CPU_UNKNOWN => -1,
        cpu => cpu as i16,
    }
}

/// Columns of rows under construction.
#[derive(Default)]
pub struct Rows {
    ts: Vec<i64>,
    /// Which rows belong to which ring: made into columns only with a batch.
    of: Vec<(usize, BlockHeader)>,
    cpu: Vec<i16>,
    kind: Vec<i8>,
    descheduled: Vec<i8>,
    event: Vec<i32>,
    payload: Vec<i64>,
    /// Working memory.
    records: Vec<Record>,
}

impl Rows {
    /// Number of rows so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ts.len()
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ts.is_empty()
    }

    /// Returns the rows, all of one ring.
    #[must_use]
    pub fn of_ring(&self) -> RowsOfRing<'_> {
        RowsOfRing {
            ts: &self.ts,
            kind: &self.kind,
            descheduled: &self.descheduled,
            event: &self.event,
            payload: &self.payload,
        }
    }

    /// Removes all rows.
    pub fn clear(&mut self) {
        self.cut(0);
    }

    /// Keeps only the first `rows` rows.
    fn cut(&mut self, rows: usize) {
        self.ts.truncate(rows);
        self.of.retain(|&(end, _)| end <= rows);
        self.cpu.truncate(rows);
        self.kind.truncate(rows);
        self.descheduled.truncate(rows);
        self.event.truncate(rows);
        self.payload.truncate(rows);
    }

    /// Decodes the block at the start of `bytes` and adds its rows; returns how many of them are
    /// events. Never panics, whatever the bytes are.
    pub fn push_block(&mut self, bytes: &[u8]) -> (Next, u64) {
        let next = block::check(bytes);
        let Next::Block(header, length) = next else {
            return (next, 0);
        };
        let (block, before) = (&bytes[..length], self.len());
        let mut plain = Plain {
            rows: self,
            keys: [Key::default(); 256],
        };
        if block::decode_into(block, header.records, &mut plain).is_some() {
            self.belong_to(header);
            return (next, (self.len() - before) as u64);
        }
        // There are continuations, or the block is not valid.
        self.cut(before);
        let mut records = std::mem::take(&mut self.records);
        records.clear();
        let decoded = block::decode_records(block, header.records, &mut records);
        let found = match decoded {
            Some(()) => (next, self.push(header, &records)),
            None => (Next::Damaged, 0),
        };
        self.records = records;
        found
    }

    /// Adds some rows of the block with this header.
    ///
    /// # Panics
    /// The block has fewer rows.
    pub fn push_palette_block(
        &mut self,
        header: BlockHeader,
        block: &PaletteBlock,
        rows: Range<usize>,
    ) {
        self.ts.extend_from_slice(&block.ts()[rows.clone()]);
        let payloads = block.payload()[rows.clone()].iter();
        self.payload
            .extend(payloads.map(|&payload| i64::from(payload)));
        for &code in &block.code()[rows] {
            self.key(block.keys()[usize::from(code)]);
        }
        self.belong_to(header);
    }

    #[inline]
    fn key(&mut self, key: Key) {
        self.cpu.push(key.cpu);
        self.kind.push(key.kind);
        self.descheduled.push(key.descheduled);
        self.event.push(key.event);
    }

    /// Assigns all rows that have no ring yet to this one.
    fn belong_to(&mut self, header: BlockHeader) {
        let rows = self.len();
        let whose = |of: &BlockHeader| (of.ring, of.pid, of.tid);
        match self.of.last_mut() {
            Some((end, of)) if whose(of) == whose(&header) => *end = rows,
            _ => self.of.push((rows, header)),
        }
    }

    /// Adds a block's records; returns how many events (not gaps) these are. A wide event and its
    /// continuation make one row. A gap makes a separate row, at the time of the event after it.
    /// A continuation that belongs to nothing is dropped.
    pub fn push(&mut self, header: BlockHeader, records: &[Record]) -> u64 {
        let mut events = 0;
        let mut may_widen = false;
        for (i, record) in records.iter().enumerate() {
            if record.kind == RecordKind::Continuation {
                match record.payload {
                    Record::WIDE if may_widen => {
                        *self.payload.last_mut().expect("the record before") = record.ts as i64;
                    }
                    Record::GAP => self.gap(record, &records[i + 1..]),
                    _ => {}
                }
                may_widen = false;
                continue;
            }
            let kind = Kind::from_code(record.kind as i8).expect("a row kind for every event kind");
            self.row(record, record.ts, kind, i64::from(record.payload));
            events += 1;
            may_widen = record.kind == RecordKind::Instant;
        }
        self.belong_to(header);
        events
    }

    /// Adds the row of a gap. A gap record has no time. The collector keeps it together with the
    /// event that comes after. If a writer is killed between the two, the gap is left alone and
    /// stands only in the ring's account.
    fn gap(&mut self, record: &Record, after: &[Record]) {
        let next = after
            .iter()
            .find(|record| record.kind != RecordKind::Continuation);
        if let Some(next) = next {
            self.row(record, next.ts, Kind::Gap, record.ts as i64);
        }
    }

    fn row(&mut self, record: &Record, ts: u64, kind: Kind, payload: i64) {
        self.ts.push(ts as i64);
        self.cpu.push(cpu(record));
        self.kind.push(kind as i8);
        self.descheduled.push(flag(record));
        self.event.push(i32::from(record.event));
        self.payload.push(payload);
    }

    /// Returns the rows as a batch and empties them.
    ///
    /// # Panics
    /// Never: the columns have the schema's types and one length.
    pub fn take(&mut self) -> RecordBatch {
        /// Takes the values and leaves a buffer of the same capacity.
        fn values<T>(column: &mut Vec<T>) -> Vec<T> {
            let room = Vec::with_capacity(column.len());
            std::mem::replace(column, room)
        }
        let rows = self.len();
        let whose = |of: fn(&BlockHeader) -> i32| {
            let mut column = Vec::with_capacity(rows);
            for (end, header) in &self.of {
                column.resize(*end, of(header));
            }
            Arc::new(Int32Array::from(column))
        };
        let [ring, pid, tid] = [
            whose(|of| of.ring as i32),
            whose(|of| of.pid),
            whose(|of| of.tid),
        ];
        self.of.clear();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(values(&mut self.ts))),
            ring,
            pid,
            tid,
            Arc::new(Int16Array::from(values(&mut self.cpu))),
            Arc::new(Int8Array::from(vec![0; rows])),
            Arc::new(Int8Array::from(values(&mut self.kind))),
            Arc::new(Int8Array::from(values(&mut self.descheduled))),
            Arc::new(Int32Array::from(values(&mut self.event))),
            Arc::new(Int64Array::from(values(&mut self.payload))),
            Arc::new(Int16Array::from(vec![0; rows])),
        ];
        RecordBatch::try_new(event_schema(), columns).expect("columns as the schema says")
    }
}

/// Decodes a block in which every record is a row; a continuation makes it fail.
struct Plain<'a> {
    rows: &'a mut Rows,
    keys: [Key; 256],
}

impl Sink for Plain<'_> {
    fn palette(&mut self, words: &[u32]) -> Option<()> {
        for (key, &word) in self.keys.iter_mut().zip(words) {
            *key = Key::from_word(word)?;
        }
        Some(())
    }

    fn group(&mut self, group: &Group<'_>) -> Option<()> {
        let rows = &mut *self.rows;
        rows.ts.extend(group.times.iter().map(|&ts| ts as i64));
        let payloads = group.payloads.iter().map(|&payload| i64::from(payload));
        rows.payload.extend(payloads);
        match group.keys {
            Keys::One(key) => {
                let key = self.keys[usize::from(key)];
                let n = rows.ts.len();
                rows.cpu.resize(n, key.cpu);
                rows.kind.resize(n, key.kind);
                rows.descheduled.resize(n, key.descheduled);
                rows.event.resize(n, key.event);
            }
            Keys::Each(keys) => {
                // Each column is filled separately.
                let of = |key: &u8| &self.keys[usize::from(*key)];
                rows.cpu.extend(keys.iter().map(|key| of(key).cpu));
                rows.kind.extend(keys.iter().map(|key| of(key).kind));
                let flags = keys.iter().map(|key| of(key).descheduled);
                rows.descheduled.extend(flags);
                rows.event.extend(keys.iter().map(|key| of(key).event));
            }
            Keys::Words(words) => {
                for &word in words.as_chunks().0 {
                    rows.key(Key::from_word(u32::from_le_bytes(word))?);
                }
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests;
