//! The spans of one ring that have begun and not ended, of those that rules name.

use std::collections::VecDeque;

use super::Ring;

/// Most spans that are kept; if a program begins more without ending them, the oldest are
/// forgotten.
const MOST_OPEN: usize = 4096;

#[derive(Clone, Copy, Debug)]
struct OpenSpan {
    event: u16,
    began: u64,
    /// The rules that found it open for too long, as bits: each says so once.
    found_by: u64,
}

#[derive(Debug)]
pub(super) struct OpenSpans {
    pub(super) ring: Ring,
    spans: VecDeque<OpenSpan>,
}

impl OpenSpans {
    pub(super) fn new(ring: Ring) -> Self {
        Self {
            ring,
            spans: VecDeque::new(),
        }
    }

    pub(super) fn clear(&mut self) {
        self.spans.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    pub(super) fn begin(&mut self, event: u16, began: u64) {
        if self.spans.len() == MOST_OPEN {
            self.spans.pop_front();
        }
        self.spans.push_back(OpenSpan {
            event,
            began,
            found_by: 0,
        });
    }

    /// Ends the span of this event that began last; returns when it began. Others may stay open
    /// that began later: spans need not be nested.
    pub(super) fn end(&mut self, event: u16) -> Option<u64> {
        if self.spans.back()?.event == event {
            return self.spans.pop_back().map(|span| span.began);
        }
        let place = self.spans.iter().rposition(|span| span.event == event)?;
        Some(self.spans.remove(place)?.began)
    }

    /// Returns event and begin of each span that has been open for more than `limit_ticks`, and that
    /// this rule has not found before.
    pub(super) fn open_since(
        &mut self,
        now: u64,
        limit_ticks: f64,
        rule: usize,
    ) -> Vec<(u16, u64)> {
        let is_found = |span: &&mut OpenSpan| {
            let open = now.wrapping_sub(span.began) as i64 as f64;
            open > limit_ticks && span.found_by & 1 << rule == 0
        };
        (self.spans.iter_mut().filter(is_found))
            .map(|span| {
                span.found_by |= 1 << rule;
                (span.event, span.began)
            })
            .collect()
    }
}
