//! Maps as lines from knot to knot, and their composition.

use super::mapped;

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
mod tests {
    use super::*;

    #[test]
    fn one_map_after_another_by_hand() {
        // 100 ahead; the second map bends at 150, where the second clock starts to run twice as
        // fast.
        let first = vec![[0, 100, 5], [100, 200, 9]];
        let then = vec![[90, 1090, 2], [150, 1150, 2], [210, 1270, 8]];
        let both = compose(&first, &then);
        // 5 + 2 + 3; 7 + 2 + 3 at the bend; 9 + 7 + 3.
        assert_eq!(both, [[0, 1100, 10], [50, 1150, 12], [100, 1250, 19]]);
        assert_eq!(inverse(&first, 150), Some(50));
        assert_eq!((inverse(&first, 100), inverse(&first, 201)), (None, None));
    }

    #[test]
    fn near_is_within_rounding() {
        let knots = vec![[0, 100, 5], [100, 200, 9]];
        assert_eq!(near(&knots, -4), Some((100, 5)));
        assert_eq!(near(&knots, 104), Some((200, 9)));
        assert_eq!((near(&knots, -5), near(&knots, 105)), (None, None));
        assert_eq!(near(&Vec::new(), 0), None);
    }
}
