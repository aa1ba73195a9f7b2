//! The two words of a record, made from a clock reading and the state of the mark.

use core::sync::atomic::{Ordering, compiler_fence};

use undertick_ring::{Kind, Mapped, Record, Writer};

use super::mark::{Rseq, look};
use super::reading::{Reading, Readings, read};
use crate::process::Session;

/// Returns whether the clock is read as the last step before the store: at the begin of a span.
#[inline(always)]
fn is_last(kind: Kind, reading: Reading) -> bool {
    kind == Kind::BeginOrdered || (kind == Kind::Begin && reading == Reading::Waiting)
}

/// Reads the clock and writes the record. The order matters.
///
/// A reading of an event, a next or a pair lies between two checks of the mark (the one here and
/// that of the previous record), so that the flag describes exactly the time since the previous
/// record.
///
/// Almost nothing of the recorder lies inside a span, because its code and data may be cold. At the
/// begin of a span the clock is read as the last step before the store (and a fence after a
/// serialised reading makes the span start from one and the same state). At the end it is read
/// before anything else is done ([`super::record_end`]). So at a begin the check of the mark
/// precedes the reading: a deschedule between the two is flagged by the next record, a few
/// nanoseconds too late, never too early.
#[inline(always)]
pub(super) fn put(
    session: &Session,
    rseq: &Rseq,
    writer: &mut Writer<Mapped>,
    kind: Kind,
    event: u16,
    payload: u32,
    reading: Reading,
) {
    if is_last(kind, reading) {
        let look = look(session, rseq, reading, Readings::NONE);
        let tail = Record {
            ts: 0,
            payload,
            event,
            cpu: look.cpu,
            kind,
            descheduled: look.flag,
        }
        .to_words()[1];
        writer.put_last(|| {
            let readings = read(session, reading);
            let more = match reading {
                Reading::PairBefore => readings.first.wrapping_sub(readings.second) as u32,
                _ => payload,
            };
            [readings.first, tail | u64::from(more)]
        });
    } else {
        writer.put(sample(session, rseq, kind, event, payload, reading));
    }
}

/// Makes the record's two words, with the clock read first.
#[inline(always)]
pub(super) fn sample(
    session: &Session,
    rseq: &Rseq,
    kind: Kind,
    event: u16,
    payload: u32,
    reading: Reading,
) -> [u64; 2] {
    let readings = read(session, reading);
    compiler_fence(Ordering::SeqCst);
    finish(session, rseq, kind, event, payload, reading, readings)
}

/// Makes the record's two words, from a clock that was already read.
#[inline(always)]
pub(super) fn finish(
    session: &Session,
    rseq: &Rseq,
    kind: Kind,
    event: u16,
    payload: u32,
    reading: Reading,
    readings: Readings,
) -> [u64; 2] {
    let look = look(session, rseq, reading, readings);
    let payload = match reading {
        Reading::Plain | Reading::Waiting | Reading::Ordered | Reading::PairBefore => payload,
        Reading::Pair | Reading::PairAfter => {
            look.readings.second.wrapping_sub(look.readings.first) as u32
        }
    };
    Record {
        ts: look.readings.first,
        payload,
        event,
        cpu: look.cpu,
        kind,
        descheduled: look.flag,
    }
    .to_words()
}
