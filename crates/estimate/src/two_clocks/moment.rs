//! The linear programme at one moment.

/// A bound of the difference at a moment of the first clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Constraint {
    /// The moment, ticks.
    pub(super) at: i64,
    /// Bound of the difference, ticks from the origin.
    pub(super) ahead: f64,
}

/// The side of a bound. Lower bounds are mirrored, so that both have lower hulls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Upper,
    Lower,
}

/// The moment whose tangent is sought.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) at: i64,
    /// The tangent is off by this share of the distance.
    pub(super) wander: f64,
    /// The tangent's slope is within this of 0.
    pub(super) rate: f64,
    /// Messages further away than this need not be examined, ticks.
    pub(super) reach: f64,
}

/// Minimum number of messages examined on each side of a moment, however far they are; another
/// limit bounds them, however near. Omitting messages only widens the bounds.
const NEAREST: usize = 16;
const MOST: usize = 4096;

/// Number of bisection steps of a search: more than a 64-bit number has bits.
const STEPS: usize = 100;

impl Moment {
    fn distance(&self, at: i64) -> f64 {
        (i128::from(at) - i128::from(self.at)) as f64
    }

    /// Returns the hull of what the constraints, ascending by moment, require of the tangent:
    /// distance from the moment, and bound.
    pub(super) fn hull(&self, constraints: &[Constraint], side: Side) -> Vec<(f64, f64)> {
        let here = constraints.partition_point(|c| c.at < self.at);
        let (before, after) = constraints.split_at(here);
        let near = |c: &&Constraint| self.distance(c.at).abs() <= self.reach;
        // Without wander far messages bind like near ones.
        let most = if self.wander > 0.0 { MOST } else { usize::MAX };
        let count = |near: usize, all: usize| near.max(NEAREST).min(most).min(all);
        let earlier = count(
            before.iter().rev().take(most).take_while(near).count(),
            before.len(),
        );
        let later = count(
            after.iter().take(most).take_while(near).count(),
            after.len(),
        );
        let sign = if side == Side::Upper { 1.0 } else { -1.0 };
        lower_hull(constraints[here - earlier..here + later].iter().map(|c| {
            let distance = self.distance(c.at);
            (distance, sign * c.ahead + self.wander * distance.abs())
        }))
    }

    /// Returns the smallest and the largest value at the moment over all tangents between the
    /// hulls; `None` if there is no such tangent.
    pub(super) fn bounds(&self, upper: &[(f64, f64)], lower: &[(f64, f64)]) -> Option<(f64, f64)> {
        // The largest and the smallest value at the moment for a tangent of this slope.
        let most = |slope: f64| least_over(upper, slope);
        let least = |slope: f64| -least_over(lower, -slope);
        let room = |slope: f64| most(slope) - least(slope);
        let range = (-self.rate, self.rate);
        let widest = greatest(range, room);
        if room(widest) < 0.0 {
            return None;
        }
        let steepest = (edge(range.0, widest, room), edge(range.1, widest, room));
        let hi = most(best_slope(upper, steepest));
        let lo = -least_over(lower, best_slope(lower, (-steepest.1, -steepest.0)));
        Some((lo, hi))
    }
}

/// Returns the slope within `range` of the line below the hull that is highest at 0: that of the
/// hull's edge there, or the nearest to it.
fn best_slope(hull: &[(f64, f64)], range: (f64, f64)) -> f64 {
    let right = hull.partition_point(|(x, _)| *x < 0.0);
    let slope = |a: usize, b: usize| (hull[b].1 - hull[a].1) / (hull[b].0 - hull[a].0);
    let steepest = if right == hull.len() {
        f64::INFINITY // all before the moment: the steeper the higher
    } else if right == 0 {
        f64::NEG_INFINITY
    } else {
        slope(right - 1, right)
    };
    steepest.clamp(range.0, range.1)
}

/// Returns the smallest `y - slope * x` over the corners of a lower hull.
fn least_over(hull: &[(f64, f64)], slope: f64) -> f64 {
    // Along the hull the values fall and then rise.
    let value = |i: usize| hull[i].1 - slope * hull[i].0;
    let (mut from, mut to) = (0, hull.len() - 1);
    while from < to {
        let middle = usize::midpoint(from, to);
        if value(middle) <= value(middle + 1) {
            to = middle;
        } else {
            from = middle + 1;
        }
    }
    value(from)
}

/// Returns where a concave function is largest.
fn greatest((mut from, mut to): (f64, f64), of: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..STEPS {
        let third = (to - from) / 3.0;
        if of(from + third) < of(to - third) {
            from += third;
        } else {
            to -= third;
        }
    }
    f64::midpoint(from, to)
}

/// Returns the furthest point from `inside` towards `end` where a concave function is not negative,
/// rounded outwards.
fn edge(end: f64, inside: f64, of: impl Fn(f64) -> f64) -> f64 {
    if of(end) >= 0.0 {
        return end;
    }
    let (mut outside, mut inside) = (end, inside);
    for _ in 0..STEPS {
        let middle = f64::midpoint(outside, inside);
        if of(middle) >= 0.0 {
            inside = middle;
        } else {
            outside = middle;
        }
    }
    outside
}

/// Returns the lower convex hull of points in the order of their x (Andrew's monotone chain).
fn lower_hull(points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut hull: Vec<(f64, f64)> = Vec::new();
    for point in points {
        if let Some(last) = hull.last()
            && last.0 == point.0
        {
            if last.1 <= point.1 {
                continue;
            }
            hull.pop();
        }
        while let [.., a, b] = hull[..]
            && (b.0 - a.0) * (point.1 - a.1) <= (b.1 - a.1) * (point.0 - a.0)
        {
            hull.pop();
        }
        hull.push(point);
    }
    hull
}

#[cfg(test)]
mod tests;
