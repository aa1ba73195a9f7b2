//! One record of a source, 32 bytes in the file.

use undertick_format::schema::off;

use super::RECORD_BYTES;

/// The kind of a record. `time` is the source's own clock where [`Record::mapped`], otherwise
/// the trace clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum RecordKind {
    /// All records of later rounds have this time or a later one.
    Round = 0,
    /// The clocks at one instant: `time` trace clock; `payload` the source's clock, ns; `a` the
    /// bound, ns.
    Anchor = 1,
    /// perf: thread `tid` of `pid` on the CPU.
    PerfIn = 2,
    /// perf: the thread off the CPU; payload 1: still runnable.
    PerfOut = 3,
    /// perf: `payload` records lost.
    PerfLost = 4,
    /// tracefs: from `tid` in state `a` to `pid`.
    Switch = 5,
    /// tracefs: `pid` (0 an interrupt) wakes `tid`.
    Waking = 6,
    /// tracefs: interrupt `a` on top of `tid` for `payload`.
    Interrupt = 7,
    /// tracefs: softirq `a` on top of `tid` for `payload`.
    SoftInterrupt = 8,
    /// tracefs: page fault of `tid`.
    Fault = 9,
    /// tracefs: the CPU now runs at `payload` kHz.
    Frequency = 10,
    /// tracefs: `pid` made `tid`; `a` 1: a thread of its own process.
    NewTask = 11,
    /// tracefs: `tid` runs a new program.
    Exec = 12,
    /// tracefs: `tid` ends.
    Exit = 13,
    /// tracefs: `payload` records lost, -1 if the number is unknown.
    TracefsLost = 14,
    /// `payload` ns stolen from the CPU.
    Steal = 15,
    /// Written by the recorder: measuring points were switched to state `a`, at most `payload`
    /// ticks later.
    Epoch = 16,
    /// tracefs: the name of thread `tid`, of another program: 16 bytes in `a`, `pid` and `payload`.
    Name = 17,
    /// perf: thread `tid` of `pid` was sampled; `a` is [`undertick_format::schema::Sampled`], `payload` the
    /// number of its stack.
    Stack = 18,
}

impl RecordKind {
    pub(super) const ALL: [Self; 19] = [
        Self::Round,
        Self::Anchor,
        Self::PerfIn,
        Self::PerfOut,
        Self::PerfLost,
        Self::Switch,
        Self::Waking,
        Self::Interrupt,
        Self::SoftInterrupt,
        Self::Fault,
        Self::Frequency,
        Self::NewTask,
        Self::Exec,
        Self::Exit,
        Self::TracefsLost,
        Self::Steal,
        Self::Epoch,
        Self::Name,
        Self::Stack,
    ];

    /// Whether the record comes from perf.
    pub(crate) const fn is_perf(self) -> bool {
        matches!(self, Self::PerfIn | Self::PerfOut | Self::PerfLost)
    }

    /// Whether the record comes from tracefs.
    pub(crate) const fn is_tracefs(self) -> bool {
        matches!(self as u8, 5..=14 | 17)
    }
}

/// One record; the meaning of the fields is that of [`RecordKind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) kind: RecordKind,
    /// `time` and durations are nanoseconds of the anchors' clock.
    pub(crate) mapped: bool,
    pub(crate) cpu: i16,
    pub(crate) a: i32,
    pub(crate) tid: i32,
    pub(crate) pid: i32,
    pub(crate) time: u64,
    pub(crate) payload: i64,
}

impl Record {
    /// Returns a record of that kind and time, all else 0.
    pub(crate) const fn new(kind: RecordKind, time: u64) -> Self {
        Self {
            kind,
            mapped: false,
            cpu: -1,
            a: 0,
            tid: 0,
            pid: 0,
            time,
            payload: 0,
        }
    }

    /// Bytes of a thread's name, with zeros behind it.
    pub(in crate::kernel) const NAME_BYTES: usize = 16;

    /// A record of the name of a thread.
    pub(in crate::kernel) fn of_name(tid: i32, name: &[u8; Self::NAME_BYTES], time: u64) -> Self {
        let [a, b, c, d] = [0, 4, 8, 12]
            .map(|at| i32::from_le_bytes([name[at], name[at + 1], name[at + 2], name[at + 3]]));
        Self {
            a,
            tid,
            pid: b,
            payload: i64::from(c) & 0xffff_ffff | i64::from(d) << 32,
            ..Self::new(RecordKind::Name, time)
        }
    }

    /// The name in a record of one.
    pub(in crate::kernel) fn name(&self) -> String {
        let mut bytes = self.a.to_le_bytes().to_vec();
        bytes.extend(self.pid.to_le_bytes());
        bytes.extend(self.payload.to_le_bytes());
        let name = bytes.split(|byte| *byte == 0).next().unwrap_or(&[]);
        String::from_utf8_lossy(name).into_owned()
    }

    /// Whether a switch took the CPU from a thread that could have run on: the low bits of the state
    /// are those in which a thread waits or has ended.
    pub(in crate::kernel) const fn is_preemption(&self) -> bool {
        self.a & 0xff == 0
    }

    /// Why the thread of a switch left its CPU: the kernel's bits for states of tasks.
    pub(in crate::kernel) const fn why_off(&self) -> i64 {
        const UNINTERRUPTIBLE: i32 = 2;
        const STOPPED_OR_TRACED: i32 = 4 | 8;
        match self.a & 0xff {
            0 => off::PREEMPTED,
            UNINTERRUPTIBLE => off::BLOCKED,
            state if state & STOPPED_OR_TRACED != 0 => off::STOPPED,
            _ => off::WAITS,
        }
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.push(self.kind as u8);
        out.push(u8::from(self.mapped));
        out.extend_from_slice(&self.cpu.to_le_bytes());
        out.extend_from_slice(&self.a.to_le_bytes());
        out.extend_from_slice(&self.tid.to_le_bytes());
        out.extend_from_slice(&self.pid.to_le_bytes());
        out.extend_from_slice(&self.time.to_le_bytes());
        out.extend_from_slice(&self.payload.to_le_bytes());
    }

    pub(super) fn get(bytes: &[u8; RECORD_BYTES]) -> Option<Self> {
        let i32_at = |at: usize| i32::from_le_bytes(bytes[at..at + 4].try_into().expect("4"));
        Some(Self {
            kind: *RecordKind::ALL.get(usize::from(bytes[0]))?,
            mapped: bytes[1] != 0,
            cpu: i16::from_le_bytes([bytes[2], bytes[3]]),
            a: i32_at(4),
            tid: i32_at(8),
            pid: i32_at(12),
            time: u64::from_le_bytes(bytes[16..24].try_into().expect("8")),
            payload: i64::from_le_bytes(bytes[24..32].try_into().expect("8")),
        })
    }
}
