//! The columns of an event batch, in memory (Arrow) and on disk (Parquet).
//!
//! Signed integers only: unsigned 64-bit is a decimal in Spark and unsigned
//! 16-bit arithmetic overflows in DuckDB.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

/// Reading of the trace clock, in ticks. Ascending within a ring except where
/// the clock itself stepped back.
pub const TS: usize = 0;
/// Ring number: one per thread and recorder instance, unique in the trace.
pub const RING: usize = 1;
/// Process id of the writer.
pub const PID: usize = 2;
/// Thread id of the writer.
pub const TID: usize = 3;
/// CPU the record was written on; -1 unknown.
pub const CPU: usize = 4;
/// 0 user, 1 kernel.
pub const MODE: usize = 5;
/// What the record says: see [`Kind`].
pub const KIND: usize = 6;
/// Thread descheduled since its previous record: 0 no, 1 yes, -1 unknown.
pub const DESCHEDULED: usize = 7;
/// Event number, 0..=65535.
pub const EVENT: usize = 8;
/// Payload: see [`Kind`].
pub const PAYLOAD: usize = 9;
/// Index into the manifest's hosts.
pub const HOST: usize = 10;

/// What a row says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i8)]
pub enum Kind {
    /// A point; payload is the program's own (32 bits zero-extended, or 64).
    Instant = 0,
    /// Start of a span.
    Begin = 1,
    /// End of a span.
    End = 2,
    /// End of stage `event` and start of stage `payload`, one reading.
    Next = 3,
    /// Two successive readings; payload is the second minus the first, ticks.
    Pair = 4,
    /// Start of a span, serialised reading.
    BeginOrdered = 5,
    /// End of a span, serialised reading.
    EndOrdered = 6,
    /// Events of this ring were lost here; payload is how many.
    Gap = 7,
}

impl Kind {
    /// The kind with that code.
    #[must_use]
    pub fn from_code(code: i8) -> Option<Self> {
        Some(match code {
            0 => Self::Instant,
            1 => Self::Begin,
            2 => Self::End,
            3 => Self::Next,
            4 => Self::Pair,
            5 => Self::BeginOrdered,
            6 => Self::EndOrdered,
            7 => Self::Gap,
            _ => return None,
        })
    }
}

/// The schema of every event batch.
#[must_use]
pub fn event_schema() -> SchemaRef {
    let column = |name: &str, data_type: DataType| Field::new(name, data_type, false);
    Arc::new(Schema::new(vec![
        column("ts", DataType::Int64),
        column("ring", DataType::Int32),
        column("pid", DataType::Int32),
        column("tid", DataType::Int32),
        column("cpu", DataType::Int16),
        column("mode", DataType::Int8),
        column("kind", DataType::Int8),
        column("descheduled", DataType::Int8),
        column("event", DataType::Int32),
        column("payload", DataType::Int64),
        column("host", DataType::Int16),
    ]))
}
