//! Assembles the probe's records into bursts of samples.

use undertick_ring::{DeschedFlag, Kind, Record};

use super::probe::event;

/// Whether the probe's thread was taken off its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakenOff {
    /// It was not.
    No,
    /// It was.
    Yes,
    /// The kernel does not say.
    Unknown,
}

impl TakenOff {
    /// Combines two periods of time.
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Yes, _) | (_, Self::Yes) => Self::Yes,
            (Self::No, Self::No) => Self::No,
            _ => Self::Unknown,
        }
    }
}

/// A block of the mix, followed by a block of registers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Time of the mix, ns.
    pub mix_ns: f64,
    /// Time of the registers, ns.
    pub reference_ns: f64,
    /// Whether the thread was taken off its CPU in either block.
    pub taken_off: TakenOff,
}

/// Successive samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Burst {
    /// When it began, ns of the trace clock.
    pub begun_ns: f64,
    /// Delay after the time it was due, ns.
    pub late_ns: f64,
    /// CPU on which it began.
    pub cpu: Option<u16>,
    /// The samples, in order.
    pub samples: Vec<Sample>,
}

impl Burst {
    /// Duration, ns.
    #[must_use]
    pub fn wall_ns(&self) -> f64 {
        self.samples.iter().map(|s| s.mix_ns + s.reference_ns).sum()
    }
}

/// What the probe reports of itself before its first burst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeInfo {
    /// Units of work in a block of the mix.
    pub mix_units: u64,
    /// Turns of the loop in a block of registers.
    pub reference_turns: u64,
    /// Bytes of memory that the mix goes through.
    pub footprint_bytes: u64,
}

/// Assembles bursts as the records arrive.
#[derive(Debug)]
pub struct Decoder {
    ns_per_tick: f64,
    probe_info: ProbeInfo,
    /// The wide event whose payload is in the next record.
    wide: Option<u16>,
    late_ns: f64,
    burst: Option<Burst>,
    /// Whether a burst has been announced.
    is_due: bool,
    /// The running block: its event, when it began, ticks, and whether the thread was taken off its
    /// CPU just before.
    since: Option<(u16, u64, TakenOff)>,
    mix: Option<(f64, TakenOff)>,
}

impl Decoder {
    /// For a trace clock of this rate.
    #[must_use]
    pub fn new(ns_per_tick: f64) -> Self {
        Self {
            ns_per_tick,
            probe_info: ProbeInfo::default(),
            wide: None,
            late_ns: 0.0,
            burst: None,
            is_due: false,
            since: None,
            mix: None,
        }
    }

    /// What the probe has reported of itself so far.
    #[must_use]
    pub fn probe_info(&self) -> ProbeInfo {
        self.probe_info
    }

    /// Takes the next record of the probe's ring; returns a burst once it is complete. A burst with
    /// records that do not fit (because others were lost in a gap) is discarded.
    pub fn take(&mut self, record: &Record) -> Option<Burst> {
        let wide = self.wide.take();
        let taken_off = match record.descheduled {
            DeschedFlag::No => TakenOff::No,
            DeschedFlag::Yes => TakenOff::Yes,
            DeschedFlag::Unknown => TakenOff::Unknown,
        };
        match (record.kind, record.event) {
            (Kind::Continuation, _) => {
                if let (Record::WIDE, Some(wide)) = (record.payload, wide) {
                    self.said(wide, record.ts);
                }
            }
            (Kind::Instant, event::LATE) => {
                self.late_ns = f64::from(record.payload);
                self.burst = None;
                self.is_due = true;
            }
            (Kind::Instant, event::OVER) => {
                self.is_due = false;
                return self.burst.take();
            }
            (Kind::Instant, other) => {
                self.wide = Some(other);
                self.said(other, u64::from(record.payload));
            }
            (Kind::BeginOrdered, event::MIX) => self.begin(record, taken_off),
            (Kind::EndOrdered, event::MIX) => {
                self.mix = self.block(record, event::MIX, taken_off);
            }
            (Kind::BeginOrdered, event::REFERENCE) => {
                self.since = Some((event::REFERENCE, record.ts, taken_off));
            }
            (Kind::EndOrdered, event::REFERENCE) => self.sample(record, taken_off),
            _ => {}
        }
        None
    }

    fn said(&mut self, event: u16, value: u64) {
        match event {
            event::MIX_UNITS => self.probe_info.mix_units = value,
            event::REFERENCE_TURNS => self.probe_info.reference_turns = value,
            event::FOOTPRINT => self.probe_info.footprint_bytes = value,
            _ => {}
        }
    }

    fn begin(&mut self, record: &Record, taken_off: TakenOff) {
        let mut taken_off = taken_off;
        if self.is_due && self.burst.is_none() {
            self.burst = Some(Burst {
                begun_ns: record.ts as f64 * self.ns_per_tick,
                late_ns: self.late_ns,
                cpu: (record.cpu != Record::CPU_UNKNOWN).then_some(record.cpu),
                samples: Vec::new(),
            });
            // It slept voluntarily before.
            if taken_off == TakenOff::Yes {
                taken_off = TakenOff::No;
            }
        }
        (self.since, self.mix) = (Some((event::MIX, record.ts, taken_off)), None);
    }

    /// The block of this kind that ends here, if one has begun.
    fn block(
        &mut self,
        record: &Record,
        event: u16,
        taken_off: TakenOff,
    ) -> Option<(f64, TakenOff)> {
        let (_, since, before) = self.since.take().filter(|(begun, ..)| *begun == event)?;
        let ticks = record.ts.wrapping_sub(since).cast_signed();
        Some((ticks as f64 * self.ns_per_tick, before.or(taken_off)))
    }

    fn sample(&mut self, record: &Record, taken_off: TakenOff) {
        let reference = self.block(record, event::REFERENCE, taken_off);
        let both = reference.zip(self.mix.take());
        let (Some(burst), Some((reference, mix))) = (&mut self.burst, both) else {
            // Records are missing, so the burst is discarded.
            self.burst = None;
            self.is_due = false;
            return;
        };
        burst.samples.push(Sample {
            mix_ns: mix.0,
            reference_ns: reference.0,
            taken_off: mix.1.or(reference.1),
        });
    }
}

#[cfg(test)]
mod tests;
