//! Converts ticks of one clock to those of another.

/// Converts a clock's readings to the first one's nominal ticks, counted from a separate origin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    pub(super) origin: i64,
    /// Ticks of the first clock for one of this one, in 2^-60.
    ratio: i128,
}

const ONE: i128 = 1 << 60;

impl Scale {
    pub(super) fn new(origin: i64, own: [u64; 2], first: [u64; 2]) -> Self {
        let [own, first] = [own, first].map(|[a, b]| (u128::from(a), u128::from(b)));
        let (mut above, mut below) = (first.0 * own.1, first.1 * own.0);
        let ratio = if above == below {
            ONE
        } else {
            // To 60 bits or more; all readings of the clock use the same ratio.
            while above >> 66 != 0 {
                (above, below) = (above >> 1, below >> 1);
            }
            ((above << 60) / below.max(1)) as i128
        };
        Self { origin, ratio }
    }

    pub(super) fn common(self, local: i64) -> Option<i64> {
        let ticks = i128::from(local) - i128::from(self.origin);
        let scaled = ticks.checked_mul(self.ratio)?.checked_add(ONE / 2)? >> 60;
        i64::try_from(scaled).ok()
    }

    pub(super) fn local(self, common: i64) -> i64 {
        let ticks = ((i128::from(common) << 60) + self.ratio / 2).div_euclid(self.ratio);
        (ticks + i128::from(self.origin)).clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}

#[cfg(test)]
mod tests;
