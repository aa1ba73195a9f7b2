//! The cost of recording, as a step of a script.

use super::Act;
use crate::script::RecordKind;

/// An event number that no experiment uses.
const EVENT: u16 = 65_000;
const NEXT: u16 = 65_001;
const SAMPLED: u16 = 65_002;

/// Makes an act that records an event of this kind.
pub(super) fn record(kind: RecordKind) -> Act {
    match kind {
        RecordKind::Event => Box::new(|| undertick::event(EVENT, 7)),
        RecordKind::EventVariable => {
            let mut number = 0_u32;
            Box::new(move || {
                number = number.wrapping_add(1);
                undertick::event(EVENT, number);
            })
        }
        RecordKind::Event64 => Box::new(|| undertick::event64(EVENT, 1 << 40)),
        RecordKind::Pair => Box::new(|| undertick::pair(EVENT)),
        RecordKind::Section => Box::new(|| {
            undertick::begin(EVENT);
            undertick::end(EVENT);
        }),
        RecordKind::SectionOrdered => Box::new(|| {
            undertick::begin_ordered(EVENT);
            undertick::end_ordered(EVENT);
        }),
        RecordKind::SectionSampled => Box::new(|| {
            undertick::begin_sampled(SAMPLED);
            undertick::end_sampled(SAMPLED);
        }),
        RecordKind::Next => Box::new(|| undertick::next(EVENT, NEXT)),
    }
}
