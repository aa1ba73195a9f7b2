//! Evaluates lines from knot to knot, in whole ticks.

/// Returns the first host's reading and the half-width of its error, both in ticks of the first host,
/// when this host's clock shows `local`. `None` outside of the knots, which are `[local, first host's
/// reading, half-width]`, ascending. The reading never falls while `local` rises.
#[must_use]
pub fn at(knots: &[[i64; 3]], local: i64) -> Option<(i64, i64)> {
    let after = knots.partition_point(|knot| knot[0] < local);
    let next = knots.get(after)?;
    if next[0] == local {
        return Some((next[1], next[2]));
    }
    Line::between(knots.get(after.checked_sub(1)?)?, next).at(local)
}

/// One line, prepared for many readings.
#[derive(Clone, Copy, Debug)]
struct Line {
    from: i64,
    to: i64,
    ts: i64,
    half_width: i64,
    apart: i128,
    /// How much further the other clock goes than this one: small where ticks are alike.
    more: i128,
    widening: i128,
}

impl Line {
    fn between(a: &[i64; 3], b: &[i64; 3]) -> Self {
        let apart = (i128::from(b[0]) - i128::from(a[0])).max(1);
        Self {
            from: a[0],
            to: b[0],
            ts: a[1],
            half_width: a[2],
            apart,
            more: i128::from(b[1]) - i128::from(a[1]) - apart,
            widening: i128::from(b[2]) - i128::from(a[2]),
        }
    }

    /// Applies the line: the reading is rounded down, the half-width up. `None` outside of the
    /// line.
    fn at(&self, local: i64) -> Option<(i64, i64)> {
        let ts = self.ts_at(local)?;
        let gone = i128::from(local) - i128::from(self.from);
        let wider = -(-self.widening * gone).div_euclid(self.apart);
        Some((ts, (i128::from(self.half_width) + wider) as i64))
    }

    fn ts_at(&self, local: i64) -> Option<i64> {
        if local < self.from || local > self.to {
            return None;
        }
        let gone = i128::from(local) - i128::from(self.from);
        // A product that fits into 64 bits divides ten times as fast.
        let more = match i64::try_from(self.more * gone) {
            Ok(product) if self.apart <= i128::from(i64::MAX) => {
                i128::from(product.div_euclid(self.apart as i64))
            }
            _ => (self.more * gone).div_euclid(self.apart),
        };
        Some((i128::from(self.ts) + gone + more) as i64)
    }
}

/// A map for many readings, most of them ascending.
#[derive(Debug)]
pub struct Cursor<'a> {
    knots: &'a [[i64; 3]],
    line: Option<Line>,
}

impl<'a> Cursor<'a> {
    /// A map that has found no line yet.
    #[must_use]
    pub const fn new(knots: &'a [[i64; 3]]) -> Self {
        Self { knots, line: None }
    }

    /// Returns the first host's reading when this host's clock shows `local`, both in ticks, rounded
    /// down; `None` outside of the knots.
    pub fn ts_at(&mut self, local: i64) -> Option<i64> {
        if let Some(ts) = self.line.and_then(|line| line.ts_at(local)) {
            return Some(ts);
        }
        let last = self.knots.len().checked_sub(1)?;
        let after = self.knots.partition_point(|knot| knot[0] < local).min(last);
        let (a, b) = (after.saturating_sub(1), after.max(1).min(last));
        let line = Line::between(&self.knots[a], &self.knots[b]);
        self.line = Some(line);
        line.ts_at(local)
    }
}

#[cfg(test)]
mod tests;
