//! Two clocks and the messages between their machines: what does one clock show when the other
//! shows a given reading?
//!
//! **Question.** Each machine stamps what it sends and what it receives by its own clock. Offset
//! and rate between the clocks are not known, and the rate wanders.
//!
//! ```
//! use undertick_estimate::two_clocks::{Limits, Message, clock_map};
//!
//! // The second clock is 1000 ticks ahead, and every way takes 30.
//! let there: Vec<_> = (0..50).map(|i| Message { sent: 100 * i, received: 100 * i + 1030 }).collect();
//! let back: Vec<_> = (0..50).map(|i| Message { sent: 100 * i + 1050, received: 100 * i + 80 }).collect();
//! let map = clock_map(&there, &back, None, &Limits::default())?;
//! let found = map.at(2500).unwrap();
//! assert!((found.ahead - 1000).abs() <= found.half_width);
//! assert!(found.half_width >= 30 && found.half_width < 40);
//! # Ok::<(), undertick_estimate::two_clocks::NoMap>(())
//! ```
//!
//! **Method.** A message is received after it was sent, whatever else is true. One to the second
//! machine is an upper bound of how far its clock is ahead at the moment of sending, one from it a
//! lower bound at the moment of receiving. Near a moment `t` the difference is its tangent, but for
//! a wander. Where the rate changes by at most `w`, the tangent is off by at most `w * d` at a
//! distance `d`, so each message binds the tangent at `t` with that slack. The bounds at `t` are
//! the largest and the smallest value there of all tangents that no message contradicts. That is a
//! linear programme in offset and rate, of which only the convex hulls of the messages matter (the
//! idea of Duda, Harrus, Haddad and Bernard, 1987). The slack limits the window by itself: far
//! messages no longer bind, and omitting them can only widen the bounds. Between two moments a
//! difference whose rate changes by at most `w` is off its chord by at most a quarter of `w` times
//! their distance.
//!
//! If no tangent is left somewhere, the rate wandered more than the limit says. The wander is
//! doubled until there is a tangent everywhere, and [`ClockMap::wander`] reports it.
//!
//! **Caveats.** These are bounds, not a confidence interval: they always contain the truth if rate
//! and wander keep within their limits, and say nothing if not. Half of the sum of the shortest
//! ways there and back cannot be distinguished from an offset. The bounds are at least that wide,
//! and where the shortest ways differ the truth is not in their middle. A message whose stamps
//! belong to different messages breaks them.

mod moment;

use core::fmt;

use moment::{Constraint, Moment, Side};

/// A message: stamps of the sender's and of the receiver's clock. All stamps are in ticks
/// of one nominal length; the caller brings them to that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// When it was sent, by the sender's clock, ticks.
    pub sent: i64,
    /// When it was received, by the receiver's clock, ticks.
    pub received: i64,
}

/// Prior limits on the clocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Maximum difference of the rates, relative: 0.001 by default.
    pub rate: f64,
    /// Maximum change of the difference of the rates between any two moments, relative: 2e-6 by
    /// default, which suits two quartz crystals in rooms. Steered clocks need more.
    pub wander: f64,
    /// Maximum error of each stamp, ticks: 1 by default, because clocks move by ticks.
    pub stamp_error: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            rate: 1e-3,
            wander: 2e-6,
            stamp_error: 1.0,
        }
    }
}

/// Why there is no map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NoMap {
    /// There are no messages in one of the directions: one bound is missing.
    OneWay {
        /// Number of messages to the second clock.
        there: usize,
        /// Number of messages from it.
        back: usize,
    },
    /// The messages cannot all be true at this moment of the first clock, whatever the rate did
    /// within its limit: a clock was set, or stamps do not belong together.
    Contradiction {
        /// The moment, ticks.
        at: i64,
    },
    /// A limit is negative or not a number, or a rate is not below one half.
    BadLimits,
    /// A difference does not fit into 64 bits.
    OutOfRange,
}

impl fmt::Display for NoMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OneWay { there, back } => write!(
                f,
                "{there} messages go one way and {back} the other: the difference of the clocks \
                 is bounded from one side only"
            ),
            Self::Contradiction { at } => write!(
                f,
                "the messages around {at} ticks contradict one another: a clock was set, the \
                 rates differ by more than was allowed for, or stamps do not belong together"
            ),
            Self::BadLimits => {
                f.write_str("limits must be numbers not below 0, and the rate below one half")
            }
            Self::OutOfRange => f.write_str("the clocks are further apart than 64 bits can say"),
        }
    }
}

impl core::error::Error for NoMap {}

/// How far the second clock is ahead of the first at a moment, and how wrong that may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Knot {
    /// The moment by the first clock, ticks.
    pub at: i64,
    /// The second clock less the first one, ticks.
    pub ahead: i64,
    /// The truth is within this of `ahead`, ticks.
    pub half_width: i64,
}

/// The second clock less the first one, over the time of the first: a line from knot to knot, with
/// a half-width that is interpolated likewise.
#[derive(Clone, Debug, PartialEq)]
pub struct ClockMap {
    knots: Vec<Knot>,
    wander: f64,
    is_wander_raised: bool,
}

impl ClockMap {
    /// Returns the knots, ascending; at least two.
    #[must_use]
    pub fn knots(&self) -> &[Knot] {
        &self.knots
    }

    /// Returns the wander that the bounds allow for, relative.
    #[must_use]
    pub const fn wander(&self) -> f64 {
        self.wander
    }

    /// Returns whether the messages show that the rate wandered more than the limit, so that more
    /// is allowed for.
    #[must_use]
    pub const fn is_wander_raised(&self) -> bool {
        self.is_wander_raised
    }

    /// Returns the difference when the first clock shows `at`; `None` outside of the map.
    #[must_use]
    pub fn at(&self, at: i64) -> Option<Knot> {
        between(&self.knots, at)
    }

    /// Returns the mean rate of the second clock less that of the first over the whole map,
    /// relative, and how wrong it may be.
    #[must_use]
    pub fn mean_rate(&self) -> (f64, f64) {
        let (first, last) = (self.knots[0], self.knots[self.knots.len() - 1]);
        let apart = (i128::from(last.at) - i128::from(first.at)) as f64;
        let ahead = (i128::from(last.ahead) - i128::from(first.ahead)) as f64;
        let doubt = last.half_width as f64 + first.half_width as f64;
        (ahead / apart, doubt / apart)
    }
}

/// Interpolates a line of knots at a moment, in whole ticks: `at + ahead` never falls while `at`
/// rises, unless it does from one knot to the next. `None` before the first knot and after the
/// last.
#[must_use]
pub fn between(knots: &[Knot], at: i64) -> Option<Knot> {
    let after = knots.partition_point(|knot| knot.at < at);
    let next = knots.get(after)?;
    if next.at == at {
        return Some(*next);
    }
    let last = knots.get(after.checked_sub(1)?)?;
    let apart = i128::from(next.at) - i128::from(last.at);
    let gone = i128::from(at) - i128::from(last.at);
    let gone_of = |a: i64, b: i64| (i128::from(b) - i128::from(a)) * gone;
    let wider = -(-gone_of(last.half_width, next.half_width)).div_euclid(apart);
    Some(Knot {
        at,
        // Rounded down; the tick that this may cost is in every knot's half-width.
        ahead: (i128::from(last.ahead) + gone_of(last.ahead, next.ahead).div_euclid(apart)) as i64,
        half_width: (i128::from(last.half_width) + wider) as i64,
    })
}

/// Computes the map from a first clock to a second one, from messages to the second one's machine
/// (`there`) and from it (`back`), in any order; duplicates do no harm. It covers all messages, and
/// `span` of the first clock (first and last moment), if given: before the first message and after
/// the last the bounds widen.
///
/// # Errors
/// See [`NoMap`].
pub fn clock_map(
    there: &[Message],
    back: &[Message],
    span: Option<(i64, i64)>,
    limits: &Limits,
) -> Result<ClockMap, NoMap> {
    let ok = |limit: f64| limit.is_finite() && limit >= 0.0;
    if !(ok(limits.wander) && ok(limits.stamp_error) && ok(limits.rate) && limits.rate < 0.5) {
        return Err(NoMap::BadLimits);
    }
    let (Some(any), false) = (there.first(), back.is_empty()) else {
        return Err(NoMap::OneWay {
            there: there.len(),
            back: back.len(),
        });
    };
    let messages = Messages::new(there, back, *any, limits);
    let span = messages.span(span);
    let mut wander = limits.wander;
    loop {
        match messages.knots(span, wander, limits.rate) {
            Ok(knots) => {
                return Ok(ClockMap {
                    knots,
                    wander,
                    is_wander_raised: wander > limits.wander,
                });
            }
            // Rates within the limit cannot change by more than twice the limit.
            Err(NoMap::Contradiction { at }) if wander >= 2.0 * limits.rate => {
                return Err(NoMap::Contradiction { at });
            }
            Err(NoMap::Contradiction { .. }) => {
                wander = (2.0 * wander).max(LEAST_RAISED).min(2.0 * limits.rate);
            }
            Err(other) => return Err(other),
        }
    }
}

/// A wander of 0 that is contradicted is raised to this, relative.
const LEAST_RAISED: f64 = 1e-9;
/// Number of knots over the whole span: enough for the bounds to follow how they narrow towards the
/// middle of a run of messages, and not more than a file should hold.
const KNOTS: core::ops::RangeInclusive<i64> = 64..=1 << 16;
/// Share of the half-width by which the wander may widen the bounds between two knots.
const BOW_SHARE: f64 = 1.0 / 16.0;
/// Number of moments at which the half-width is examined first.
const TRIALS: i64 = 9;
/// Number of half-widths of slack beyond which messages are omitted.
const REACH: f64 = 16.0;

/// All messages as constraints on the difference, from an origin.
struct Messages {
    /// Origin of the difference.
    origin: i128,
    upper: Vec<Constraint>,
    lower: Vec<Constraint>,
}

impl Messages {
    fn new(there: &[Message], back: &[Message], any: Message, limits: &Limits) -> Self {
        let origin = i128::from(any.received) - i128::from(any.sent);
        let of = |at: i64, ahead: i128| Constraint {
            at,
            ahead: (ahead - origin) as f64,
        };
        let upper = there
            .iter()
            .map(|m| of(m.sent, i128::from(m.received) - i128::from(m.sent)));
        let lower = back
            .iter()
            .map(|m| of(m.received, i128::from(m.sent) - i128::from(m.received)));
        let mut this = Self {
            origin,
            upper: upper.collect(),
            lower: lower.collect(),
        };
        let (first, last) = this.ends();
        let far = (i128::from(last) - i128::from(first)) as f64 * limits.rate;
        let most = (this.upper.iter().chain(&this.lower)).fold(far, |m, c| m.max(c.ahead.abs()));
        // 64-bit floating point keeps 53 bits, and a value is added to a few others.
        let slack = 2.0 * limits.stamp_error + most * 2_f64.powi(-49);
        this.upper.iter_mut().for_each(|c| c.ahead += slack);
        this.lower.iter_mut().for_each(|c| c.ahead -= slack);
        this.upper.sort_unstable_by_key(|c| c.at);
        this.lower.sort_unstable_by_key(|c| c.at);
        this
    }

    /// Returns the first and the last moment; there are messages both ways.
    fn ends(&self) -> (i64, i64) {
        let all = || self.upper.iter().chain(&self.lower).map(|c| c.at);
        (all().min().unwrap_or(0), all().max().unwrap_or(0))
    }

    /// Returns the range of the map: at least two moments.
    fn span(&self, asked: Option<(i64, i64)>) -> (i64, i64) {
        let (first, last) = self.ends();
        let (from, to) = asked.map_or((first, last), |(a, b)| {
            (first.min(a).min(b), last.max(a).max(b))
        });
        if from < to {
            (from, to)
        } else {
            (from.saturating_sub(1), to.saturating_add(1))
        }
    }

    fn knots(&self, span: (i64, i64), wander: f64, rate: f64) -> Result<Vec<Knot>, NoMap> {
        let bounds = |at: i64, reach: f64| {
            let moment = Moment {
                at,
                wander,
                rate,
                reach,
            };
            let upper = moment.hull(&self.upper, Side::Upper);
            let lower = moment.hull(&self.lower, Side::Lower);
            moment
                .bounds(&upper, &lower)
                .ok_or(NoMap::Contradiction { at })
        };
        let mut least = f64::INFINITY;
        for at in evenly(self.ends(), TRIALS) {
            let (lo, hi) = bounds(at, f64::INFINITY)?;
            least = least.min((hi - lo) / 2.0);
        }
        let least = least.max(1.0);
        let moments = self.moments(span, BOW_SHARE * least * 4.0 / wander);
        let reach = REACH * least / wander;
        let found: Result<Vec<(f64, f64)>, NoMap> =
            moments.iter().map(|&at| bounds(at, reach)).collect();
        let found = found?;
        let mut knots = Vec::with_capacity(found.len());
        for (i, (&at, (lo, hi))) in moments.iter().zip(found).enumerate() {
            let apart =
                |a: usize, b: usize| (i128::from(moments[b]) - i128::from(moments[a])) as f64;
            let before = if i > 0 { apart(i - 1, i) } else { 0.0 };
            let after = if i + 1 < moments.len() {
                apart(i, i + 1)
            } else {
                0.0
            };
            let bow = wander * before.max(after) / 4.0;
            let middle = f64::midpoint(lo, hi);
            // One tick for rounding the middle, one for rounding between knots.
            let half_width = (hi - lo) / 2.0 + bow + 2.0;
            let ahead = self.origin + middle.round() as i128;
            knots.push(Knot {
                at,
                ahead: i64::try_from(ahead).map_err(|_| NoMap::OutOfRange)?,
                half_width: half_width.ceil() as i64,
            });
        }
        Ok(knots)
    }

    /// Returns the places of knots, ascending: not further apart than `apart` if that is possible.
    fn moments(&self, span: (i64, i64), apart: f64) -> Vec<i64> {
        let (first, last) = self.ends();
        let length = (i128::from(span.1) - i128::from(span.0)) as f64;
        let many = (length / apart).ceil() as i64; // saturates
        let mut moments = evenly(span, many.clamp(*KNOTS.start(), *KNOTS.end()));
        // The half-width bends where messages begin and end.
        moments.extend([first, last]);
        moments.sort_unstable();
        moments.dedup();
        moments
    }
}

/// Returns that many moments from the first to the last, including both.
fn evenly((from, to): (i64, i64), many: i64) -> Vec<i64> {
    let apart = i128::from(to) - i128::from(from);
    let steps = i128::from(many - 1);
    (0..many)
        .map(|i| (i128::from(from) + apart * i128::from(i) / steps) as i64)
        .collect()
}

#[cfg(test)]
mod tests;
