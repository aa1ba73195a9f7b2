//! Causes that may disturb a thread, and what a disturbance costs beyond its rows.

use undertick_format::manifest::InterruptCost;

/// Causes in a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Another program ran on the CPU although the thread could have.
    Preempted,
    /// Taken off the CPU for an unknown reason.
    Switched,
    /// An interrupt.
    Interrupt,
    /// A soft interrupt that something else raised.
    SoftInterrupt,
    /// It continued on another CPU.
    Migrated,
    /// A page fault.
    Fault,
    /// It gave its CPU away itself: it waited, slept or yielded.
    Waited,
    /// A soft interrupt that its own system call raised: a packet that it sends to itself is
    /// delivered there.
    OwnSoftInterrupt,
    /// Another thread of the program ran on the CPU although this one could have.
    OwnThread,
}

/// Number of causes.
pub const CAUSES: usize = 9;
/// A soft interrupt that starts at most this long after an interrupt, or after another one that
/// did, was raised by that interrupt, us.
pub(crate) const AFTER_INTERRUPT_US: i64 = 2;
/// Cost of a disturbance beyond the time that the kernel's events give it: entry and exit of an
/// interrupt, where that was not measured, us.
pub(crate) const INTERRUPT_BESIDE_US: i64 = 1;
/// Cost of two switches, or of a migration, with the caches that are cold after it, us.
pub(crate) const SWITCH_BESIDE_US: i64 = 5;

impl Cause {
    /// Precedence for attributing a sample to one of several causes.
    pub const ALL: [Self; CAUSES] = [
        Self::Preempted,
        Self::Switched,
        Self::Interrupt,
        Self::SoftInterrupt,
        Self::Migrated,
        Self::Fault,
        Self::Waited,
        Self::OwnSoftInterrupt,
        Self::OwnThread,
    ];

    /// Name in the report.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Preempted => "preempted",
            Self::Switched => "switched",
            Self::Interrupt => "interrupt",
            Self::SoftInterrupt => "softirq",
            Self::Migrated => "migration",
            Self::Fault => "fault",
            Self::Waited => "waited",
            Self::OwnSoftInterrupt => "own softirq",
            Self::OwnThread => "own thread",
        }
    }

    /// Whether it disturbs a sample from outside. Some causes are what the program does: waiting,
    /// also for a CPU that another of its threads has, page faults, and what its own calls raise.
    /// Those are flagged.
    #[must_use]
    pub const fn disturbs(self) -> bool {
        !matches!(
            self,
            Self::Fault | Self::Waited | Self::OwnSoftInterrupt | Self::OwnThread
        )
    }

    /// Its cost for a sample beyond the time that the kernel's events give it, us.
    const fn beside_us(self) -> i64 {
        match self {
            Self::Interrupt | Self::SoftInterrupt => INTERRUPT_BESIDE_US,
            Self::Preempted | Self::Switched | Self::Migrated => SWITCH_BESIDE_US,
            Self::Fault | Self::Waited | Self::OwnSoftInterrupt | Self::OwnThread => 0,
        }
    }
}

/// A stretch during which something else had the thread's CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hit {
    pub(crate) start: i64,
    /// The end; equal to `start` where only a point is known.
    pub(crate) end: i64,
    pub(crate) cause: Cause,
    /// Ticks of the disturbance that may lie outside of that stretch.
    pub(crate) beside: i64,
}

impl Hit {
    pub(crate) fn new(cause: Cause, start: i64, end: i64, per_us: i64) -> Self {
        Self {
            start,
            end,
            cause,
            beside: cause.beside_us().saturating_mul(per_us),
        }
    }
}

/// What the timer's interrupt takes beyond the time that rows of the kernel give it, ticks.
#[derive(Clone, Copy, Debug)]
pub struct Timer {
    pub(crate) event: i32,
    pub(crate) before: i64,
    pub(crate) after: i64,
    pub(crate) spread: i64,
}

impl Timer {
    /// Converts a measured cost to ticks of `ns_per_tick` ns.
    #[must_use]
    pub fn new(cost: &InterruptCost, ns_per_tick: f64) -> Self {
        // A manifest is untrusted: at most a second, and nothing below 0.
        let ticks = |ns: f64| (ns.clamp(0.0, 1e9) / ns_per_tick).round() as i64;
        Self {
            event: cost.event,
            before: ticks(cost.before_ns.value),
            after: ticks(cost.after_ns.value),
            spread: ticks(cost.spread_ns),
        }
    }

    /// Extends the interrupt to all that it takes. For other interrupts it is only known that
    /// they may take as much in addition.
    pub(crate) fn widen(self, event: i32, hit: Hit) -> Hit {
        if event == self.event {
            Hit {
                start: hit.start.saturating_sub(self.before),
                end: hit.end.saturating_add(self.after),
                beside: self.spread.max(hit.beside),
                ..hit
            }
        } else {
            let beside = self.before.saturating_add(self.after).max(hit.beside);
            Hit { beside, ..hit }
        }
    }
}
