//! The columns of an event batch, in memory (Arrow) and on disk (Parquet).
//!
//! Signed integers only: unsigned 64-bit is a decimal in Spark and unsigned
//! 16-bit arithmetic overflows in DuckDB.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

/// Reading of the trace clock, in ticks. Ascending within a ring except where
/// the clock itself stepped back.
pub const TS: usize = 0;
/// Ring number: one per thread and recorder instance, unique in the trace; -1 in
/// rows of the kernel.
pub const RING: usize = 1;
/// Process id of the writer.
pub const PID: usize = 2;
/// Thread id of the writer; in rows of the kernel that of the thread they are
/// about, 0 none.
pub const TID: usize = 3;
/// CPU the record was written on; -1 unknown.
pub const CPU: usize = 4;
/// 0 user, 1 kernel. Rows of the kernel come before all others, in order of time.
pub const MODE: usize = 5;
/// The kind of the record: see [`Kind`].
pub const KIND: usize = 6;
/// Thread descheduled since its previous record: 0 no, 1 yes, -1 unknown.
pub const DESCHEDULED: usize = 7;
/// Event number, 0..=65535.
pub const EVENT: usize = 8;
/// Payload: see [`Kind`].
pub const PAYLOAD: usize = 9;
/// Index into the manifest's hosts.
pub const HOST: usize = 10;

/// Added to the event of an [`Kind::Interrupt`] that is not a line but a vector.
pub const OWN_VECTOR: i32 = 1 << 15;

/// Bit of the payload of a [`Kind::Begin`] or [`Kind::End`] whose reading waited for nothing.
pub const UNORDERED: u32 = undertick_ring::Record::UNORDERED;

/// Why a thread left its CPU: payloads of [`Kind::SwitchOut`].
pub mod off {
    /// It waits, sleeps or ends.
    pub const WAITS: i64 = 0;
    /// It could have run on: it was preempted, or yielded.
    pub const PREEMPTED: i64 = 1;
    /// Not known.
    pub const UNKNOWN: i64 = 2;
    /// An uninterruptible wait: for a disk, another device, or a lock in the kernel. From tracefs only.
    pub const BLOCKED: i64 = 3;
    /// It was stopped by a signal or a debugger. From tracefs only.
    pub const STOPPED: i64 = 4;
}

/// The kind of a row.
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
    /// Events of this ring were lost here; payload is their number.
    Gap = 7,
    /// Kernel: the thread was taken off its CPU; the payload is one of [`off`]. The event is the
    /// thread that came in its place, 0: none, or not known.
    SwitchOut = 16,
    /// Kernel: the thread was put on its CPU.
    SwitchIn = 17,
    /// Kernel: the thread is being woken; payload is the waker's thread id, 0 unknown; the CPU is
    /// the waker's.
    Waking = 18,
    /// Kernel: the thread goes to another CPU; payload is the one it leaves.
    Migrate = 19,
    /// Kernel: an interrupt hit the thread. Payload is its duration, ticks; the event is its
    /// number. [`OWN_VECTOR`] is added to the vectors of the CPU's local interrupts (timer, calls
    /// from other CPUs).
    Interrupt = 20,
    /// Kernel: deferred work of interrupts ran on top of the thread. Payload is its duration,
    /// ticks; the event is its vector.
    SoftInterrupt = 21,
    /// Kernel: a page fault of the thread; payload is its duration, ticks, -1 unknown.
    Fault = 22,
    /// Kernel: the hypervisor ran something else on this CPU; payload is for how long,
    /// nanoseconds, between the row before and this row's time. No thread.
    Steal = 23,
    /// Kernel: the CPU's frequency changed; payload in kHz. No thread.
    Frequency = 24,
    /// Kernel: records of a source were lost on this CPU before this time; payload is their
    /// number, -1 unknown. No thread.
    KernelGap = 25,
    /// Measuring points were switched ([`Switched`] is the event) between this
    /// row's time and payload ticks later. No thread.
    Epoch = 26,
    /// Kernel: the thread was sampled; the event is what it did ([`Sampled`]), payload the number of its
    /// stack ([`crate::stacks::StackTable`]).
    Stack = 27,
}

/// What a sampled thread did, in a row of kind [`Kind::Stack`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Sampled {
    /// It ran its program.
    InProgram = 0,
    /// It ran in the kernel.
    InKernel = 1,
    /// It leaves its CPU.
    Leaves = 2,
}

impl Sampled {
    /// What has that code.
    #[must_use]
    pub const fn from_code(code: i32) -> Option<Self> {
        Some(match code {
            0 => Self::InProgram,
            1 => Self::InKernel,
            2 => Self::Leaves,
            _ => return None,
        })
    }
}

/// Which measuring points record from a row of kind [`Kind::Epoch`] on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Switched {
    /// All, and this is half of a pair.
    AllOn = 1,
    /// Only those that stay on, and this is half of a pair.
    SomeOff = 2,
    /// All, between pairs.
    Between = 3,
}

impl Switched {
    /// The state with that code.
    #[must_use]
    pub const fn from_code(code: i32) -> Option<Self> {
        Some(match code {
            1 => Self::AllOn,
            2 => Self::SomeOff,
            3 => Self::Between,
            _ => return None,
        })
    }
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
            16 => Self::SwitchOut,
            17 => Self::SwitchIn,
            18 => Self::Waking,
            19 => Self::Migrate,
            20 => Self::Interrupt,
            21 => Self::SoftInterrupt,
            22 => Self::Fault,
            23 => Self::Steal,
            24 => Self::Frequency,
            25 => Self::KernelGap,
            26 => Self::Epoch,
            27 => Self::Stack,
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

/// The column of readings of each host's own clock, after those of [`event_schema`].
pub const TS_LOCAL: &str = "ts_local";

/// The columns of a merged trace: those of any trace, and [`TS_LOCAL`].
#[must_use]
pub fn merged_schema() -> SchemaRef {
    let mut fields = event_schema().fields().to_vec();
    fields.push(Arc::new(Field::new(TS_LOCAL, DataType::Int64, false)));
    Arc::new(Schema::new(fields))
}
