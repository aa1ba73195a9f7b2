//! Spans in the message form, which begin in one ring and end in any. The rows of one ring may come
//! before those of another, so either side may come first.

use std::io;

use super::{Begun, Open, Output, Ring, SpanIds, Spans};
use crate::export::Row;
use crate::export::otlp::names;

/// Most spans of which one side is known.
const MOST: usize = 1 << 20;

/// Identifies a span in the message form: process, event of its `NAME new`, payload.
pub(super) type Loose = (i32, i32, i64);

/// One side of a span.
pub(super) enum Half {
    /// Its begin, and the ring of it. It is not known yet that it ends.
    Begun(i32, Box<Open>),
    /// Its end, and the row of it in its ring.
    Ended(Row, u64),
}

impl<O: Output> Spans<'_, O> {
    /// Returns the event of `NAME new`.
    pub(super) fn new_of(&self, pid: i32, name: &str) -> Option<i32> {
        let new = format!("{name}{}", names::NEW);
        let of_process = self.news.get(&(Some(pid), new.clone()));
        of_process.or_else(|| self.news.get(&(None, new))).copied()
    }

    /// Begins a span at its `NAME new`, whose identifiers follow in the ring.
    pub(super) fn begin_loose(&mut self, ring: &mut Ring, row: &Row, at: u64) -> io::Result<()> {
        let ids = SpanIds {
            span: row.payload.cast_unsigned(),
            are_given: true,
            ..SpanIds::default()
        };
        let is_kept = self.is_chosen(row.ring, at);
        let open = Open {
            is_kept,
            ..Open::new(row, at, ids)
        };
        let key = (row.pid, row.event, row.payload);
        match self.loose.get(&key) {
            Some(Half::Ended(..)) => {
                // It is closed once its identifiers are known, at the end of the trace at the latest.
                if let Some(Half::Ended(end, _)) = self.loose.remove(&key) {
                    ring.ended = Some(end.unix_ns);
                }
            }
            Some(Half::Begun(..)) => {
                self.counts.too_deep += 1;
                return Ok(());
            }
            None if self.loose.len() >= MOST => {
                self.counts.too_deep += 1;
                return Ok(());
            }
            None => {}
        }
        self.loose
            .insert(key, Half::Begun(row.ring, Box::new(open)));
        ring.begun = Some(Begun::Loose(key));
        Ok(())
    }

    /// Closes a span whose end had come before its begin, when its identifiers are complete.
    pub(super) fn close_begun(&mut self, ring: &mut Ring) -> io::Result<()> {
        let (Some(end_ns), Some(Begun::Loose(key))) = (ring.ended.take(), ring.begun) else {
            return Ok(());
        };
        ring.begun = None;
        match self.loose.remove(&key) {
            Some(Half::Begun(begun_in, open)) => self.close(*open, begun_in, end_ns, true),
            _ => Ok(()),
        }
    }

    /// Ends a span at its `NAME closed`; false if the row is to be a point.
    pub(super) fn end_loose(&mut self, row: &Row, event: i32, at: u64) -> io::Result<bool> {
        let key = (row.pid, event, row.payload);
        match self.loose.remove(&key) {
            Some(Half::Begun(begun_in, open)) => {
                self.close(*open, begun_in, row.unix_ns, true)?;
            }
            Some(ended) => {
                self.loose.insert(key, ended);
                return Ok(false);
            }
            None if self.loose.len() >= MOST => return Ok(false),
            None => {
                self.loose.insert(key, Half::Ended(row.copied(), at));
            }
        }
        Ok(true)
    }

    /// Takes the innermost open span off its ring, because it ended in another one; false if the row
    /// is to be a point.
    pub(super) fn ended_elsewhere(&mut self, ring: &mut Ring, row: &Row) -> io::Result<bool> {
        let id = row.payload.cast_unsigned();
        let Some(open) = ring.stack.pop_if(|open| open.ids.span == id) else {
            return Ok(false);
        };
        ring.begun = None;
        ring.over = Some(open.event);
        let name = self.names.event(open.pid, open.event).into_owned();
        let key = (self.new_of(open.pid, &name)).map(|event| (open.pid, event, row.payload));
        match key.and_then(|key| self.loose.remove(&key)) {
            Some(Half::Ended(end, _)) => self.close(open, row.ring, end.unix_ns, true)?,
            Some(Half::Begun(..)) => self.close(open, row.ring, row.unix_ns, false)?,
            None => match key.filter(|_| self.loose.len() < MOST) {
                Some(key) => {
                    self.loose
                        .insert(key, Half::Begun(row.ring, Box::new(open)));
                }
                None => self.close(open, row.ring, row.unix_ns, false)?,
            },
        }
        Ok(true)
    }

    /// Closes what is left at the end of the trace, in the order of rings.
    pub(super) fn close_loose(&mut self) -> io::Result<()> {
        let place = |half: &Half| match half {
            Half::Begun(ring, open) => (*ring, open.row),
            Half::Ended(row, at) => (row.ring, *at),
        };
        let mut halves: Vec<Half> = self.loose.drain().map(|(_, half)| half).collect();
        halves.sort_unstable_by_key(place);
        for half in halves {
            match half {
                Half::Begun(ring, open) => self.close(*open, ring, self.last_ns, false)?,
                Half::Ended(row, at) => {
                    if self.chosen.is_none() && O::HAS_POINTS {
                        self.point_alone(&row, at)?;
                    }
                }
            }
        }
        Ok(())
    }
}
