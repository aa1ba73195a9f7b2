//! Determines which clocks may be used here, and the reasons against the others.

use core::fmt;

use crate::{ClockId, kernel};

/// Why the TSC must not be used for recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TscUnavailable {
    /// The CPU is not an x86.
    NotX86,
    /// The kernel was asked to refuse `rdtsc` to this process (`PR_SET_TSC`,
    /// some sandboxes): reading it would kill the program.
    Disabled,
    /// The CPU (or its hypervisor) does not promise one rate in all power
    /// states: CPUID 0x8000_0007 EDX bit 8 is clear.
    NotInvariant,
    /// The kernel does not offer `tsc` as a clock source: it found that the counters of the CPUs
    /// disagree, or that the rate wanders.
    KernelSaysUnstable,
}

impl fmt::Display for TscUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotX86 => "this CPU is not an x86",
            Self::Disabled => "rdtsc is switched off for this process (PR_SET_TSC)",
            Self::NotInvariant => {
                "the CPU does not promise an invariant TSC (CPUID 0x80000007 EDX bit 8 is clear)"
            }
            Self::KernelSaysUnstable => {
                "the kernel found the TSC unstable (available_clocksource lacks tsc)"
            }
        })
    }
}

/// Why a clock cannot be read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// The TSC cannot be read, for this reason.
    Tsc(TscUnavailable),
    /// The Arm counter was requested on a CPU that is not a 64-bit Arm.
    NotAarch64,
    /// The kernel has no such clock.
    KernelLacks(ClockId),
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tsc(why) => why.fmt(f),
            Self::NotAarch64 => f.write_str("this CPU is not a 64-bit Arm"),
            Self::KernelLacks(clock) => write!(f, "this kernel has no clock {clock}"),
        }
    }
}

impl core::error::Error for Unavailable {}

/// Facts about the TSC before it is read for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TscFacts {
    /// The CPU is an x86-64.
    pub x86: bool,
    /// `PR_GET_TSC` answered that reading raises SIGSEGV.
    pub disabled_by_prctl: bool,
    /// CPUID promises one rate in all power states.
    pub invariant: bool,
    /// The kernel offers `tsc` as a clock source; `None` where it does not say
    /// (sysfs is not mounted, or hidden by a sandbox).
    pub offered_by_kernel: Option<bool>,
}

impl TscFacts {
    /// Gathers the facts of this machine and process.
    #[must_use]
    pub fn gather() -> Self {
        #[cfg(target_arch = "x86_64")]
        return Self {
            x86: true,
            disabled_by_prctl: prctl_refuses_tsc(),
            invariant: crate::tsc::is_invariant() && !invariance_is_masked(),
            offered_by_kernel: std::fs::read_to_string(AVAILABLE_CLOCKSOURCE)
                .ok()
                .map(|list| lists_tsc(&list)),
        };
        #[cfg(not(target_arch = "x86_64"))]
        Self {
            x86: false,
            disabled_by_prctl: false,
            invariant: false,
            offered_by_kernel: None,
        }
    }

    /// Checks whether the TSC may be used for recording. A kernel that says nothing counts as
    /// having no objection.
    ///
    /// # Errors
    /// The first reason against it.
    pub fn verdict(self) -> Result<(), TscUnavailable> {
        if !self.x86 {
            return Err(TscUnavailable::NotX86);
        }
        if self.disabled_by_prctl {
            return Err(TscUnavailable::Disabled);
        }
        if !self.invariant {
            return Err(TscUnavailable::NotInvariant);
        }
        if self.offered_by_kernel == Some(false) {
            return Err(TscUnavailable::KernelSaysUnstable);
        }
        Ok(())
    }
}

/// Checks whether a clock can be read here, and used for recording.
///
/// # Errors
/// The reason against it.
pub fn usable(clock: ClockId) -> Result<(), Unavailable> {
    match clock {
        ClockId::Tsc => TscFacts::gather().verdict().map_err(Unavailable::Tsc),
        ClockId::Cntvct if cfg!(target_arch = "aarch64") => Ok(()),
        ClockId::Cntvct => Err(Unavailable::NotAarch64),
        other => other
            .kernel_id()
            .and_then(kernel::read_ns)
            .map(|_| ())
            .ok_or(Unavailable::KernelLacks(other)),
    }
}

/// The file in which the kernel lists its clock sources. A TSC that it once marked unstable is
/// removed from the list.
#[cfg(target_arch = "x86_64")]
const AVAILABLE_CLOCKSOURCE: &str =
    "/sys/devices/system/clocksource/clocksource0/available_clocksource";

/// Returns whether the kernel's list names `tsc` itself, not `tsc-early`.
#[cfg(any(target_arch = "x86_64", test))]
fn lists_tsc(available_clocksource: &str) -> bool {
    available_clocksource
        .split_whitespace()
        .any(|source| source == "tsc")
}

/// For tests: if set (and not empty), the TSC counts as not invariant, as on a
/// CPU or hypervisor that does not promise it.
pub const MASK_INVARIANT_TSC_VARIABLE: &str = "UNDERTICK_TEST_NO_INVARIANT_TSC";

#[cfg(target_arch = "x86_64")]
fn invariance_is_masked() -> bool {
    std::env::var_os(MASK_INVARIANT_TSC_VARIABLE).is_some_and(|set| !set.is_empty())
}

/// Returns whether `rdtsc` would raise SIGSEGV. A kernel that does not know the request does not
/// refuse.
#[cfg(target_arch = "x86_64")]
fn prctl_refuses_tsc() -> bool {
    let mut setting: libc::c_int = 0;
    // SAFETY: PR_GET_TSC writes one int to the address given, which is a live local.
    let answered = unsafe { libc::prctl(libc::PR_GET_TSC, &raw mut setting) } == 0;
    answered && setting == libc::PR_TSC_SIGSEGV
}

#[cfg(test)]
mod tests;
