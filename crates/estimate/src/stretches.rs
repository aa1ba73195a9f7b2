//! Pieces of a series as they arrived, in bounded memory: the correlation of neighbours within one
//! mode can only be seen when the modes are known.

use serde::{Deserialize, Serialize};

/// Number of values in a piece.
const LENGTH: usize = 128;

/// Maximum number of pieces kept: 16 KiB.
const MOST: usize = 16;

/// Maximum distance at which neighbours are compared.
const LAGS: usize = 32;

/// Correlation at the largest distance up to which it counts as that of a slow drift which the
/// scatter hides: such a drift makes no modes.
const HIDDEN: f64 = 0.3;

/// Evenly spaced pieces of a series; when there are too many, every second of them is dropped.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Stretches {
    pieces: Vec<Vec<i64>>,
    /// Number of pieces seen so far, without the unfinished one.
    seen: u64,
    /// One in 2^this is kept.
    thinned: u32,
    partial: Vec<i64>,
}

impl Stretches {
    /// Adds values in their order.
    pub(crate) fn extend(&mut self, mut values: &[i64]) {
        while !values.is_empty() {
            let room = LENGTH - self.partial.len();
            let (now, later) = values.split_at(room.min(values.len()));
            self.partial.extend_from_slice(now);
            values = later;
            if self.partial.len() == LENGTH {
                self.close();
            }
        }
    }

    fn close(&mut self) {
        if self.seen.is_multiple_of(1 << self.thinned) {
            self.pieces.push(std::mem::take(&mut self.partial));
        } else {
            self.partial.clear();
        }
        self.seen += 1;
        if self.pieces.len() > MOST {
            self.thin();
        }
    }

    fn thin(&mut self) {
        let mut keep = false;
        self.pieces.retain(|_| {
            keep = !keep;
            keep
        });
        self.thinned += 1;
    }

    /// Adds the pieces of another series; of two unfinished ones the longer stays.
    pub(crate) fn merge(&mut self, mut other: Self) {
        while self.thinned < other.thinned {
            self.thin();
        }
        while other.thinned < self.thinned {
            other.thin();
        }
        self.pieces.append(&mut other.pieces);
        self.seen += other.seen;
        if self.partial.len() < other.partial.len() {
            self.partial = other.partial;
        }
        while self.pieces.len() > MOST {
            self.thin();
        }
    }

    /// Adds `delta` to each value.
    pub(crate) fn shift(&mut self, delta: i64) {
        let all = self.pieces.iter_mut().chain([&mut self.partial]).flatten();
        all.for_each(|x| *x = x.saturating_add(delta));
    }

    /// Returns the number of values that are equivalent to one independent value, as neighbours
    /// within the same mode show it: the modes lie between `divides`. `None` where a correlation
    /// outlasts the pieces.
    pub(crate) fn inflation_within(&self, divides: &[f64]) -> Option<f64> {
        let pieces: Vec<Vec<(usize, f64)>> = (self.pieces.iter())
            .chain([&self.partial])
            .map(|piece| {
                piece
                    .iter()
                    .map(|&x| (mode_of(x, divides), x as f64))
                    .collect()
            })
            .collect();
        let pieces = within_modes(pieces, divides.len() + 1);
        let mut sum = 1.0;
        for lag in 1..=LAGS {
            let Some((r, error)) = correlation(&pieces, lag) else {
                break;
            };
            if r < 2.6 * error {
                break;
            }
            if lag == LAGS && r > HIDDEN {
                return None;
            }
            sum += 2.0 * r;
        }
        Some(sum)
    }
}

fn mode_of(x: i64, divides: &[f64]) -> usize {
    divides.partition_point(|&divide| divide < x as f64)
}

/// Returns values as ranks within their mode, from -1 to 1 with a mean of 0, so that no outlier
/// hides the correlation of the others.
fn within_modes(mut pieces: Vec<Vec<(usize, f64)>>, modes: usize) -> Vec<Vec<(usize, f64)>> {
    let mut sorted: Vec<Vec<f64>> = vec![Vec::new(); modes];
    for &(mode, x) in pieces.iter().flatten() {
        sorted[mode].push(x);
    }
    for values in &mut sorted {
        values.sort_by(f64::total_cmp);
    }
    for (mode, x) in pieces.iter_mut().flatten() {
        let values = &sorted[*mode];
        let below = values.partition_point(|v| v < x);
        let up_to = values.partition_point(|v| v <= x);
        *x = (below + up_to) as f64 / values.len() as f64 - 1.0;
    }
    pieces
}

/// Returns the correlation of values `lag` apart where both are in the same mode, and its standard
/// error without any correlation.
fn correlation(pieces: &[Vec<(usize, f64)>], lag: usize) -> Option<(f64, f64)> {
    let (mut products, mut squares, mut pairs) = (0.0, 0.0, 0_u64);
    for piece in pieces {
        for (a, b) in piece.iter().zip(piece.get(lag..).unwrap_or(&[])) {
            if a.0 == b.0 {
                products += a.1 * b.1;
                squares += f64::midpoint(a.1 * a.1, b.1 * b.1);
                pairs += 1;
            }
        }
    }
    (pairs >= 16 && squares > 0.0).then(|| (products / squares, 1.0 / (pairs as f64).sqrt()))
}

#[cfg(test)]
mod tests;
