//! Sampled spans: the number of executions, and the rate at which they are recorded.

use std::sync::atomic::{AtomicU64, Ordering};

use undertick_format::TraceError;
use undertick_format::manifest::Sampled;
use undertick_ring::Mapped;
use undertick_ring::layout::cell::{self, CELLS};
use undertick_ring::layout::{control, ring};

use undertick_memory::control_page::{ControlPage, open_control};
use undertick_memory::session_dir::SessionDir;

/// A requested rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The event; `None`: all events without a separate rate.
    pub event: Option<u16>,
    /// One in this many spans is recorded, 1..=65535; 0 restores the recorder's default.
    pub one_in: u32,
}

/// Changes a rate of a session that is being recorded, from any process. The rate that the
/// program itself sets no longer counts for that event.
///
/// # Errors
/// Its control page is gone, or its table of rates is full.
pub fn change_rate(session: &SessionDir, rate: Rate) -> Result<(), TraceError> {
    let (_, page) = open_control(session)?;
    let changed = set(&page, rate);
    // SAFETY: the page goes with this function.
    unsafe { page.unmap() };
    changed
}

/// Changes a rate in a control page.
pub(crate) fn set(page: &ControlPage, rate: Rate) -> Result<(), TraceError> {
    let Some(event) = rate.event else {
        let one_in = rate.one_in.min(cell::MOST_ONE_IN);
        page.field_u32(control::OFF_ONE_IN)
            .store(one_in, Ordering::Relaxed);
        return Ok(());
    };
    let wanted = control::rate_entry(event, rate.one_in) | control::RATE_FROM_OUTSIDE;
    for i in 0..control::RATES {
        let place = (usize::from(event) + i) % control::RATES;
        let entry: &AtomicU64 = page.field_u64(control::OFF_RATES + 8 * place);
        let ours = |found| control::event_and_rate(found).is_none_or(|(of, _)| of == event);
        let change = |found| ours(found).then_some(wanted);
        if (entry.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change)).is_ok() {
            return Ok(());
        }
    }
    Err(TraceError::Usage(format!(
        "rates for more than {} events were asked for; one without a number sets the rate of all others",
        control::RATES
    )))
}

/// Copies the rates that were requested from outside.
pub(crate) fn copy(from: &ControlPage, to: &ControlPage) {
    let one_in = |page: &ControlPage| page.field_u32(control::OFF_ONE_IN).load(Ordering::Relaxed);
    let event = None;
    if one_in(from) != one_in(to) {
        let one_in = one_in(from);
        let _ = set(to, Rate { event, one_in });
    }
    for place in 0..control::RATES {
        let entry = from
            .field_u64(control::OFF_RATES + 8 * place)
            .load(Ordering::Relaxed);
        if entry & control::RATE_FROM_OUTSIDE != 0
            && let Some((event, one_in)) = control::event_and_rate(entry)
        {
            let event = Some(event);
            let _ = set(to, Rate { event, one_in });
        }
    }
}

/// Removes the rates that were requested from outside in an earlier session.
pub(crate) fn take_back(page: &ControlPage) {
    for place in 0..control::RATES {
        let entry = page.field_u64(control::OFF_RATES + 8 * place);
        let found = entry.load(Ordering::Relaxed);
        if found & control::RATE_FROM_OUTSIDE != 0
            && let Some((event, _)) = control::event_and_rate(found)
        {
            // Not emptied: other entries may follow it.
            entry.store(control::rate_entry(event, 0), Ordering::Relaxed);
        }
    }
}

/// Returns the executions in a ring's cells, once its writer has stopped.
pub(crate) fn of_ring(number: u32, memory: &Mapped) -> Vec<Sampled> {
    if memory.field_u32(ring::OFF_CELLS).load(Ordering::Acquire) != CELLS as u32 {
        return Vec::new();
    }
    (0..CELLS)
        .filter_map(|place| {
            let at = ring::OFF_CELL_TABLE + place * cell::BYTES;
            let word = |offset| memory.field_u64(at + offset).load(Ordering::Relaxed);
            let state = memory
                .field_u32(at + cell::OFF_STATE)
                .load(Ordering::Relaxed);
            let executions = cell::executions(word(cell::OFF_LEFT), word(cell::OFF_LAST));
            (state & cell::CLAIMED != 0).then_some(Sampled {
                ring: number as i32,
                event: state as u16,
                executions,
            })
        })
        .collect()
}
