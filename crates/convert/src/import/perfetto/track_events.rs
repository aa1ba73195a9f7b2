//! Track events: spans, points, counters and flows.

use undertick_format::TraceError;
use undertick_format::schema::Kind;

use super::tracks::Track;
use super::{MOST, Trace};
use crate::import::intake::{At, Id, SpoolKind};
use crate::import::wire::{Fields, Value};

impl Trace<'_> {
    pub(super) fn event(
        &mut self,
        writer: u64,
        clock: Option<u32>,
        time: Option<u64>,
        bytes: &[u8],
    ) -> Result<(), TraceError> {
        let event = Fields(bytes);
        let number = |field| event.last(field).map(Value::number);
        let Some(ns) = self.time(writer, clock, time, event) else {
            self.intake
                .left_out("track event without a time that can be told");
            return Ok(());
        };
        let sequence = &self.sequences[&writer];
        let name = match (event.last(23), number(10)) {
            (Some(name), _) => Some(name.text()),
            (None, Some(iid)) => Some(match sequence.names.get(&iid) {
                Some(name) => name.clone(),
                None => format!("name {iid} (not told)"),
            }),
            (None, None) => None,
        };
        let uuid = number(11).or(sequence.track);
        let track = self.tracks.find(uuid, writer);
        let name = name.as_deref();
        match number(9).unwrap_or(0) {
            1 => self.begin(track, ns, name.unwrap_or_default())?,
            2 => self.end(track, ns)?,
            3 => self.instant(track, ns, name.unwrap_or_default(), payload(event))?,
            4 if self.tracks.repeats_points(track.uuid) => return Ok(()),
            4 => return self.counter(track, ns, event),
            0 => return self.legacy(track, ns, name, event),
            other => {
                self.intake
                    .left_out(&format!("track event of type {other}"));
                return Ok(());
            }
        }
        self.flows(track, ns, event)
    }

    fn time(
        &mut self,
        writer: u64,
        clock: Option<u32>,
        time: Option<u64>,
        event: Fields<'_>,
    ) -> Option<i64> {
        let microseconds = |value: Value<'_>| value.number().cast_signed().checked_mul(1000);
        match (time, event.last(16), event.last(1)) {
            (Some(time), _, _) => self.clocks.ns(writer, clock, time),
            (None, Some(absolute), _) => microseconds(absolute),
            (None, None, Some(since)) => self.clocks.since(writer, microseconds(since)?),
            (None, None, None) => None,
        }
    }

    fn begin(&mut self, track: Track, ns: i64, name: &str) -> Result<(), TraceError> {
        let number = self.intake.event(name);
        match self.at(track, ns) {
            Some(at) => self.intake.begin(at, number),
            None => self.alone(track, ns, SpoolKind::Kind(Kind::Begin), number, 0),
        }
    }

    fn end(&mut self, track: Track, ns: i64) -> Result<(), TraceError> {
        match self.at(track, ns) {
            Some(at) => self.intake.end(at, None),
            None => self.alone(track, ns, SpoolKind::EndOfInnermost, 0, 0),
        }
    }

    fn instant(
        &mut self,
        track: Track,
        ns: i64,
        name: &str,
        payload: i64,
    ) -> Result<(), TraceError> {
        let number = self.intake.event(name);
        match self.at(track, ns) {
            Some(at) => self.intake.instant(at, number, payload),
            None => self.alone(track, ns, SpoolKind::Kind(Kind::Instant), number, payload),
        }
    }

    /// Returns thread and time of an event, if the track is a thread's.
    fn at(&mut self, track: Track, ns: i64) -> Option<At> {
        let (pid, tid) = track.thread?;
        let track = self.intake.thread(&Id::Number(pid), &Id::Number(tid))?;
        Some(At {
            track,
            ns,
            cpu: None,
        })
    }

    fn alone(
        &mut self,
        track: Track,
        ns: i64,
        kind: SpoolKind,
        event: u16,
        payload: i64,
    ) -> Result<(), TraceError> {
        let pid = self.intake.number(&Id::Number(track.pid));
        self.intake
            .of_no_thread(pid, track.uuid, ns, kind, event, payload)
    }

    fn counter(&mut self, track: Track, ns: i64, event: Fields<'_>) -> Result<(), TraceError> {
        let whole = event.last(30).map(|value| value.number().cast_signed());
        let value = match (whole, event.last(44)) {
            (Some(whole), _) => self.tracks.counted(track.uuid, whole),
            (None, Some(bits)) => {
                let value = f64::from_bits(bits.number());
                if value.fract() != 0.0 {
                    self.intake.left_out("fraction of a counter");
                }
                value.floor() as i64
            }
            (None, None) => {
                self.intake.left_out("counter without a value");
                return Ok(());
            }
        };
        let name = self.tracks.name(track.uuid);
        let number = self.intake.event(&name);
        self.alone(track, ns, SpoolKind::Kind(Kind::Instant), number, value)
    }

    /// Handles an event that was converted from Chrome's format.
    fn legacy(
        &mut self,
        track: Track,
        ns: i64,
        name: Option<&str>,
        event: Fields<'_>,
    ) -> Result<(), TraceError> {
        let legacy = Fields(event.last(6).map_or(&[], Value::bytes));
        let number = |field| legacy.last(field).map(Value::number);
        let phase = char::from_u32(number(2).unwrap_or(0) as u32).unwrap_or('\0');
        let name = match (name, number(1)) {
            (Some(name), _) => name.to_owned(),
            _ => String::new(),
        };
        let id = number(6).or(number(10)).or(number(11));
        let of_id = Track {
            uuid: id.unwrap_or(0) ^ 1 << 63,
            thread: None,
            ..track
        };
        match phase {
            'B' => self.begin(track, ns, &name),
            'E' => self.end(track, ns),
            'b' | 'S' => self.begin(of_id, ns, &name),
            'e' | 'F' => self.end(of_id, ns),
            'I' | 'i' | 'n' | 'R' => self.instant(track, ns, &name, payload(event)),
            'X' => {
                let length = number(3).and_then(|us| us.cast_signed().checked_mul(1000));
                let event = self.intake.event(&name);
                match (self.at(track, ns), length) {
                    (Some(at), Some(length)) => self.intake.complete(at, length, event).map(drop),
                    _ => {
                        self.intake
                            .left_out("span (X) without its length or thread");
                        Ok(())
                    }
                }
            }
            _ => {
                self.intake
                    .left_out(&format!("track event of phase {phase:?}"));
                Ok(())
            }
        }
    }

    /// Adds the begins and ends of arrows as instants, with the flow's number as payload.
    fn flows(&mut self, track: Track, ns: i64, event: Fields<'_>) -> Result<(), TraceError> {
        for (field, value) in event {
            let (ids, ends) = match field {
                47 => (value.fixed(), false),
                48 => (value.fixed(), true),
                36 => (value.varints(), false),
                42 => (value.varints(), true),
                _ => continue,
            };
            for id in ids {
                if self.flows.len() >= MOST && !self.flows.contains_key(&id) {
                    self.intake.left_out("flow beyond 2^22");
                    continue;
                }
                let met = self.flows.entry(id).or_default();
                *met += 1;
                let name = match (*met, ends) {
                    (1, false) => "flow start",
                    (2, _) | (_, true) => "flow end",
                    _ => "flow step",
                };
                self.instant(track, ns, name, id.cast_signed())?;
            }
        }
        Ok(())
    }
}

/// Returns the integer among an event's annotations if there is exactly one.
fn payload(event: Fields<'_>) -> i64 {
    let mut integers = event
        .filter(|&(field, _)| field == 4)
        .filter_map(|(_, value)| {
            let annotation = Fields(value.bytes());
            let integer = annotation.last(4).or_else(|| annotation.last(3));
            integer.map(|value| value.number().cast_signed())
        });
    let first = integers.next();
    first.filter(|_| integers.next().is_none()).unwrap_or(0)
}
