//! The rate of a clock in ticks per second, from the best available source.
//!
//! **Question.** The TSC counts; how long is one count, and how sure is that?
//!
//! **Method.** First ask all sources that may know: the hypervisor (CPUID leaf 0x4000_0010), the
//! CPU (leaves 0x15, 0x16; `CNTFRQ_EL0` on Arm), the kernel (perf page). Then measure: pair the
//! clock with `CLOCK_MONOTONIC_RAW` twice, 50 ms or more apart, in the tightest of many brackets
//! each time. A declared rate that disagrees with the measured one by more than both bounds allow
//! is refused, and the refusal is part of the result. Of the remaining rates, the one with the
//! smallest bound is taken.
//!
//! **Caveats.** The bounds are against `CLOCK_MONOTONIC_RAW`, i.e. against this machine's own
//! second. Where the kernel keeps time with the TSC, that second *is* a number of TSC ticks, and
//! measuring recovers what the kernel assumed, not what the hardware does. How far that second is
//! from a true one (a crystal: up to 100 ppm) shows only against `CLOCK_REALTIME` on a synchronised
//! machine, over minutes. The anchors of a trace serve that purpose.

use core::fmt;
use std::time::Duration;

use undertick_units::TickRate;

use crate::bracket::{Pair, pair};
#[cfg(target_arch = "x86_64")]
use crate::tsc::DeclaredByCpuid;
use crate::{ClockId, Source, granularity};

/// The source of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateSource {
    /// The clock counts nanoseconds by definition.
    Definition,
    /// CPUID leaf 0x4000_0010: the hypervisor declares kHz.
    HypervisorLeaf,
    /// CPUID leaf 0x15: crystal frequency and ratio.
    CpuidCrystal,
    /// CPUID leaf 0x16: base frequency in MHz.
    CpuidBase,
    /// `CNTFRQ_EL0`, set by the firmware.
    Firmware,
    /// The kernel's own conversion, from a perf page.
    Kernel,
    /// Measured against `CLOCK_MONOTONIC_RAW`.
    Measured,
}

impl RateSource {
    /// Returns the name used in traces; it never changes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Definition => "definition",
            Self::HypervisorLeaf => "hypervisor_leaf",
            Self::CpuidCrystal => "cpuid_crystal",
            Self::CpuidBase => "cpuid_base",
            Self::Firmware => "firmware",
            Self::Kernel => "kernel",
            Self::Measured => "measured",
        }
    }
}

impl fmt::Display for RateSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A rate, its source, and its error bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim {
    /// Ticks per second.
    pub rate: TickRate,
    /// The source of the rate.
    pub source: RateSource,
    /// Bound on the error against `CLOCK_MONOTONIC_RAW`, parts per billion.
    pub error_ppb: f64,
}

/// A declared rate that the measurement contradicts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Refused {
    /// The declared rate.
    pub claim: Claim,
    /// By how much it exceeds the measured rate, ppb (negative: it falls short).
    pub off_ppb: f64,
    /// Maximum difference that both error bounds together allow, ppb.
    pub allowed_ppb: f64,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the rate declared by {} ({}) is {:+.1} ppm off the measured one, where {:.1} ppm are allowed: not used",
            self.claim.source,
            self.claim.rate,
            self.off_ppb / 1e3,
            self.allowed_ppb / 1e3
        )
    }
}

/// The rate of a clock, as found.
#[derive(Clone, Debug, PartialEq)]
pub struct ClockRate {
    /// The rate to use.
    pub claim: Claim,
    /// The measurement it was checked against; `None` where the clock defines
    /// its unit, or could not be measured.
    pub measured: Option<Claim>,
    /// Declared rates that were refused.
    pub refused: Vec<Refused>,
}

/// Minimum span over which a rate is measured. At 50 ms a bracket of 60 ns at each end makes 1.2
/// ppm.
pub const SHORTEST_SPAN: Duration = Duration::from_millis(50);

/// Error of `CLOCK_MONOTONIC_RAW`, ppb: it runs at the kernel's rate rounded to a multiplier of at
/// least 22 bits, so it is off by up to 2^-23, 119 ppb. It is added to measured errors.
const RAW_ROUNDING_PPB: f64 = 120.0;

/// Finds the rate of a clock. This takes `span` (at least 50 ms) if it must be measured, and no
/// time if the clock counts nanoseconds.
///
/// # Errors
/// No source declares a rate, and none could be measured.
pub fn find(source: Source, span: Duration) -> Result<ClockRate, NoRate> {
    if source.clock().kernel_id().is_some() {
        return Ok(ClockRate {
            claim: Claim {
                rate: TickRate::NANOSECONDS,
                source: RateSource::Definition,
                error_ppb: 0.0,
            },
            measured: None,
            refused: Vec::new(),
        });
    }
    decide(&declared(source.clock()), measure(source, span))
}

/// No rate: no source declares one, and the clock could not be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRate;

impl fmt::Display for NoRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the clock's rate is declared by nobody and could not be measured")
    }
}

impl core::error::Error for NoRate {}

/// Refuses rates that the measurement contradicts; takes the smallest bound of the rest.
fn decide(declared: &[Claim], measured: Option<Claim>) -> Result<ClockRate, NoRate> {
    let mut standing = Vec::new();
    let mut refused = Vec::new();
    for claim in declared {
        let contradiction = measured.and_then(|measured| contradiction(*claim, measured));
        match contradiction {
            Some(refusal) => refused.push(refusal),
            None => standing.push(*claim),
        }
    }
    let claim = standing
        .into_iter()
        .chain(measured)
        .min_by(|a, b| a.error_ppb.total_cmp(&b.error_ppb))
        .ok_or(NoRate)?;
    Ok(ClockRate {
        claim,
        measured,
        refused,
    })
}

fn contradiction(claim: Claim, measured: Claim) -> Option<Refused> {
    let off_ppb = (claim.rate.ticks_per_s() / measured.rate.ticks_per_s() - 1.0) * 1e9;
    let allowed_ppb = claim.error_ppb + measured.error_ppb;
    (off_ppb.abs() > allowed_ppb).then_some(Refused {
        claim,
        off_ppb,
        allowed_ppb,
    })
}

/// Returns the rates declared for a counter on this machine, best first.
#[cfg(target_arch = "x86_64")]
fn declared(clock: ClockId) -> Vec<Claim> {
    if clock != ClockId::Tsc {
        return Vec::new();
    }
    claims_of_tsc(
        crate::tsc::declared_by_cpuid(),
        crate::perf_page::time_conversion(),
    )
}

/// Returns the rates declared for a counter on this machine, best first.
#[cfg(target_arch = "aarch64")]
fn declared(clock: ClockId) -> Vec<Claim> {
    let hz = (clock == ClockId::Cntvct).then(crate::cntvct::declared_hz);
    let rate = hz.flatten().and_then(|hz| TickRate::new(hz, 1).ok());
    rate.map(|rate| claim_within(rate, RateSource::Firmware, 1.0))
        .into_iter()
        .collect()
}

/// Returns the rates declared for a counter on this machine: no source is known.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn declared(_clock: ClockId) -> Vec<Claim> {
    Vec::new()
}

/// Returns a declared rate that is right within `within_hz`.
fn claim_within(rate: TickRate, source: RateSource, within_hz: f64) -> Claim {
    Claim {
        rate,
        source,
        error_ppb: within_hz / rate.ticks_per_s() * 1e9,
    }
}

/// Returns the declared numbers as rates. The kernel keeps the TSC's rate in whole kHz, truncated,
/// whatever it came from. So the machine's second may differ from any declared rate by 1 kHz (385
/// ppb at 2.6 GHz), and each bound is at least that.
#[cfg(target_arch = "x86_64")]
fn claims_of_tsc(
    cpuid: DeclaredByCpuid,
    kernel: Option<crate::perf_page::TimeConversion>,
) -> Vec<Claim> {
    const KHZ: u64 = 1_000;
    const MHZ: u64 = 1_000_000;
    let hypervisor = cpuid.hypervisor_khz.and_then(|khz| {
        let rate = TickRate::new(u64::from(khz) * KHZ, 1).ok()?;
        Some(claim_within(rate, RateSource::HypervisorLeaf, KHZ as f64))
    });
    let crystal = cpuid.crystal.and_then(|leaf| {
        let numerator = u64::from(leaf.crystal_hz) * u64::from(leaf.numerator);
        let rate = TickRate::new(numerator, u64::from(leaf.denominator)).ok()?;
        Some(claim_within(rate, RateSource::CpuidCrystal, KHZ as f64))
    });
    let kernel = kernel.and_then(|conversion| {
        let rate = conversion.rate()?;
        let mult_quantum_hz = rate.ticks_per_s() / f64::from(conversion.mult);
        Some(claim_within(
            rate,
            RateSource::Kernel,
            KHZ as f64 + mult_quantum_hz,
        ))
    });
    let base = cpuid.base_mhz.and_then(|mhz| {
        let rate = TickRate::new(u64::from(mhz) * MHZ, 1).ok()?;
        Some(claim_within(rate, RateSource::CpuidBase, MHZ as f64))
    });
    [hypervisor, crystal, kernel, base]
        .into_iter()
        .flatten()
        .collect()
}

/// Measures a counter's rate against `CLOCK_MONOTONIC_RAW` over `span`, at least 50 ms, in which
/// the thread sleeps. `None` if a clock cannot be read or stood still.
#[must_use]
pub fn measure(source: Source, span: Duration) -> Option<Claim> {
    let raw = Source::open(ClockId::MonotonicRaw).ok()?;
    let step_ticks = granularity::measure(source)?.step_ticks;
    let raw_step_ns = granularity::measure(raw)?.step_ticks.ceil() as u64;
    let begin = pair(source, raw, raw_step_ns)?;
    std::thread::sleep(span.max(SHORTEST_SPAN));
    let end = pair(source, raw, raw_step_ns)?;
    from_pairs(begin, end, step_ticks)
}

/// Computes the rate between two pairs, and its bound: both brackets and one step of the clock over
/// the span, and the rounding of `CLOCK_MONOTONIC_RAW`.
fn from_pairs(begin: Pair, end: Pair, step_ticks: f64) -> Option<Claim> {
    let ticks = end.ticks.checked_sub(begin.ticks)?;
    let ns = end.reference_ns.checked_sub(begin.reference_ns)?;
    let rate = TickRate::from_span(ticks, ns).ok()?;
    let step_ns = step_ticks * rate.ns_per_tick();
    let uncertain_ns = (begin.error_ns + end.error_ns) as f64 + step_ns;
    Some(Claim {
        rate,
        source: RateSource::Measured,
        error_ppb: uncertain_ns / ns as f64 * 1e9 + RAW_ROUNDING_PPB,
    })
}

#[cfg(test)]
#[path = "rate_tests.rs"]
mod tests;
