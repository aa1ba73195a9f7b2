//! The rates of sampled spans, in the control page.

use core::sync::atomic::Ordering;

use undertick_ring::layout::{self, control};

use super::{Session, session};

/// Changes the table of rates; an entry that `undertick record` made stays.
pub fn set_rate(event: u16, one_in: u32) {
    let Some(session) = session() else { return };
    let wanted = control::rate_entry(event, one_in);
    for i in 0..control::RATES {
        let place = (usize::from(event) + i) % control::RATES;
        let entry = session.field_u64(control::OFF_RATES + 8 * place);
        let changed = entry.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |found| {
            let (of, _) = control::event_and_rate(found).unwrap_or((event, 0));
            (of == event && found & control::RATE_FROM_OUTSIDE == 0).then_some(wanted)
        });
        let ours = |found| control::event_and_rate(found).is_some_and(|(of, _)| of == event);
        if changed.is_ok() || changed.is_err_and(ours) {
            return;
        }
    }
}

/// Returns the sampling rate of an event: one in this many executions is recorded.
#[inline(always)]
pub fn one_in(session: &Session, event: u16) -> u32 {
    let place = usize::from(event) % control::RATES;
    let entry = session.field_u64(control::OFF_RATES + 8 * place);
    let others = session.field_u32(control::OFF_ONE_IN);
    if entry.load(Ordering::Relaxed) == 0 && others.load(Ordering::Relaxed) == 0 {
        return layout::cell::DEFAULT_ONE_IN;
    }
    find_rate(session, event)
}

#[cold]
fn find_rate(session: &Session, event: u16) -> u32 {
    let mut asked = 0;
    for i in 0..control::RATES {
        let place = (usize::from(event) + i) % control::RATES;
        let entry = session.field_u64(control::OFF_RATES + 8 * place);
        match control::event_and_rate(entry.load(Ordering::Relaxed)) {
            Some((of, _)) if of != event => {}
            found => {
                asked = found.map_or(0, |(_, rate)| rate);
                break;
            }
        }
    }
    if asked == 0 {
        let others = session.field_u32(control::OFF_ONE_IN);
        asked = others.load(Ordering::Relaxed) & 0xffff;
    }
    if asked == 0 {
        layout::cell::DEFAULT_ONE_IN
    } else {
        asked
    }
}
