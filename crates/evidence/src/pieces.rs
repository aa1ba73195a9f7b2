//! A stretch of time in pieces with one cause each, so that their lengths add up.

use super::{CAUSES, Cause, Evidence, Hit};

/// A piece of a stretch, with its cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its cause.
    pub cause: Cause,
    /// Its first tick.
    pub start: i64,
    /// Its end; equal to `start` where only a point is known.
    pub end: i64,
}

/// Which cause has the time where several do: a thread that is off its CPU is hit by nothing else,
/// and deferred work runs on top of its interrupt.
const BY_RANK: [Cause; CAUSES] = [
    Cause::Waited,
    Cause::OwnThread,
    Cause::Preempted,
    Cause::Switched,
    Cause::SoftInterrupt,
    Cause::OwnSoftInterrupt,
    Cause::Interrupt,
    Cause::Migrated,
    Cause::Fault,
];

impl Evidence {
    /// What took the time of a thread from `start` to `end`, in order. Together the pieces last as
    /// long as [`super::SampleCauses::taken`] says. Causes without a duration
    /// are pieces whose `end` equals `start`.
    ///
    /// # Panics
    /// If rows were pushed after the last [`Self::select`] or [`Self::settle`].
    #[must_use]
    pub fn pieces(&self, tid: i32, start: i64, end: i64) -> Vec<Piece> {
        let Some(&place) = self.place_of.get(&tid) else {
            return Vec::new();
        };
        let thread = &self.threads[place];
        let mut at = thread.hits.partition_point(|hit| hit.start <= end);
        let until = at;
        while at > 0 && thread.reach[at - 1] >= start {
            at -= 1;
        }
        let inside = |hit: &&Hit| hit.end >= start;
        let hits: Vec<&Hit> = thread.hits[at..until].iter().filter(inside).collect();
        let point = |hit: &&&Hit| hit.start == hit.end && hit.start >= start;
        let points = hits.iter().filter(point).map(|hit| Piece {
            cause: hit.cause,
            start: hit.start,
            end: hit.start,
        });
        let mut pieces: Vec<Piece> = points.collect();
        pieces.append(&mut cut(&hits, start, end));
        pieces.sort_by_key(|piece| (piece.start, piece.end));
        pieces
    }
}

/// The hits that last, cut to the stretch, and each moment given to the first cause of [`BY_RANK`].
fn cut(hits: &[&Hit], start: i64, end: i64) -> Vec<Piece> {
    let rank = |cause: Cause| BY_RANK.iter().position(|of| *of == cause).unwrap_or(0);
    let mut edges: Vec<(i64, usize, bool)> = Vec::with_capacity(2 * hits.len());
    for hit in hits {
        let (from, to) = (hit.start.max(start), hit.end.min(end));
        if from < to {
            let rank = rank(hit.cause);
            edges.extend([(from, rank, true), (to, rank, false)]);
        }
    }
    edges.sort_unstable();
    let mut open = [0_usize; CAUSES];
    let mut pieces: Vec<Piece> = Vec::new();
    let mut since = start;
    for (ts, rank, begins) in edges {
        if let Some(first) = open.iter().position(|&n| n > 0)
            && since < ts
        {
            let cause = BY_RANK[first];
            match pieces.last_mut() {
                Some(last) if last.cause == cause && last.end == since => last.end = ts,
                _ => pieces.push(Piece {
                    cause,
                    start: since,
                    end: ts,
                }),
            }
        }
        since = ts;
        match begins {
            true => open[rank] += 1,
            false => open[rank] -= 1,
        }
    }
    pieces
}
