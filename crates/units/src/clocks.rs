//! Marker types: which clock a reading belongs to.

/// A clock, as a type. The markers have no values; they only distinguish the
/// readings of different clocks.
pub trait Clock: Copy + Eq + Ord + core::fmt::Debug + 'static {
    /// Stable name, as used in traces and on the command line.
    const NAME: &'static str;
}

macro_rules! clock_marker {
    ($(#[$doc:meta])* $marker:ident, $name:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $marker {}

        impl Clock for $marker {
            const NAME: &'static str = $name;
        }
    };
}

clock_marker!(
    /// The x86 time-stamp counter.
    Tsc,
    "tsc"
);
clock_marker!(
    /// The Arm virtual counter, `CNTVCT_EL0`.
    Cntvct,
    "cntvct"
);
clock_marker!(
    /// `CLOCK_MONOTONIC`: time synchronisation steers its rate; it stands still in suspend.
    Monotonic,
    "monotonic"
);
clock_marker!(
    /// `CLOCK_MONOTONIC_RAW`: it is not steered, and stands still in suspend.
    MonotonicRaw,
    "monotonic_raw"
);
clock_marker!(
    /// `CLOCK_BOOTTIME`: like `CLOCK_MONOTONIC`, but it continues in suspend.
    Boottime,
    "boottime"
);
clock_marker!(
    /// `CLOCK_MONOTONIC_COARSE`: the kernel's last tick, a few milliseconds old.
    MonotonicCoarse,
    "monotonic_coarse"
);
clock_marker!(
    /// `CLOCK_REALTIME`: Unix time; it can be set, so it can jump either way.
    Realtime,
    "realtime"
);
