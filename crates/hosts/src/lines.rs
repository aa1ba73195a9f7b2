//! Maps as lines from knot to knot, and their composition.

use undertick_format::manifest::mapped;

/// Reading, the other clock's reading at that instant, and half-width, in ticks common to both.
pub(super) type Knots = Vec<[i64; 3]>;

/// Applies a map. A reading that is outside by no more than its rounding gets the value at the
/// map's end.
pub(super) fn near(knots: &Knots, at: i64) -> Option<(i64, i64)> {
    let (first, last) = (knots.first()?, knots.last()?);
    if at < first[0] - 4 || at > last[0] + 4 {
        return None;
    }
    mapped::at(knots, at.clamp(first[0], last[0]))
}

/// Composes two maps: through `first`, then through `then`. Half-widths add up. That of the first
/// is enlarged, because the second one's clock may run at another rate, by at most one in 256.
pub(super) fn compose(first: &Knots, then: &Knots) -> Knots {
    let mut places: Vec<i64> = first.iter().map(|k| k[0]).collect();
    // The readings at which the second map bends.
    places.extend(then.iter().filter_map(|k| inverse(first, k[0])));
    places.sort_unstable();
    places.dedup();
    (places.into_iter())
        .filter_map(|at| {
            let (through, half_width) = mapped::at(first, at)?;
            let (on, further) = near(then, through)?;
            Some([at, on, half_width + half_width / 256 + further + 3])
        })
        .collect()
}

/// The reading at which a rising map shows `value`, to the tick.
fn inverse(knots: &Knots, value: i64) -> Option<i64> {
    let after = knots.partition_point(|k| k[1] < value);
    let (a, b) = (knots.get(after.checked_sub(1)?)?, knots.get(after)?);
    let (risen, rise) = (
        i128::from(value) - i128::from(a[1]),
        i128::from(b[1]) - i128::from(a[1]),
    );
    let apart = i128::from(b[0]) - i128::from(a[0]);
    Some((i128::from(a[0]) + apart * risen / rise.max(1)) as i64)
}

#[cfg(test)]
mod tests;
