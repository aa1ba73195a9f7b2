//! The x86 time-stamp counter: three ways to read it, and the facts that CPUID gives about it.
//!
//! | function | waits for earlier instructions | holds later ones back |
//! |---|---|---|
//! | [`read`] | no | no |
//! | [`read_fenced`] (`lfence; rdtsc; lfence`) | to have completed, loads included; not for stores to be visible elsewhere | yes |
//! | [`read_rdtscp`] (`rdtscp; lfence`) | to have executed, loads globally visible; not for stores | yes |
//!
//! The plain read may be taken while earlier work is still under way, and later work may start
//! before it. Part of its cost overlaps with its neighbours, which is cheap, but 8..10 ns wrong for
//! a short span. The fenced and the `rdtscp` read cost more and bound the span on both sides. None
//! of them waits for stores to reach other CPUs; a program that needs that puts `mfence` before.
//! `lfence` orders on Intel by definition and on AMD where the kernel has made it serialising,
//! which Linux does since 4.15.

use core::arch::x86_64::{__cpuid, __cpuid_count, __rdtscp, _mm_lfence, _rdtsc};

use undertick_units::{Reading, Tsc};

/// Reads `rdtsc`, not ordered.
#[inline(always)]
#[must_use]
pub fn read() -> Reading<Tsc> {
    // SAFETY: every x86-64 CPU has RDTSC. Where the kernel was told to refuse it
    // (`PR_SET_TSC`) the process gets SIGSEGV, which is no memory unsafety;
    // `usable` finds that out beforehand.
    Reading::from_raw(unsafe { _rdtsc() })
}

/// Reads `lfence; rdtsc; lfence`: earlier instructions have completed, later ones have not started.
#[inline(always)]
#[must_use]
pub fn read_fenced() -> Reading<Tsc> {
    // SAFETY: as in `read`; LFENCE is part of SSE2, which x86-64 includes.
    Reading::from_raw(unsafe {
        _mm_lfence();
        let ticks = _rdtsc();
        _mm_lfence();
        ticks
    })
}

/// Reads `rdtscp; lfence`: as [`read_fenced`] with one fence less. It is valid only where
/// [`has_rdtscp`] says so; elsewhere the process gets SIGILL.
#[inline(always)]
#[must_use]
pub fn read_rdtscp() -> Reading<Tsc> {
    let mut cpu_and_node = 0_u32;
    // SAFETY: the pointer is to a live local. A CPU without RDTSCP raises
    // SIGILL, which is no memory unsafety; LFENCE as in `read_fenced`.
    Reading::from_raw(unsafe {
        let ticks = __rdtscp(&raw mut cpu_and_node);
        _mm_lfence();
        ticks
    })
}

/// Returns CPUID 0x8000_0001 EDX bit 27: the CPU has `rdtscp`.
#[must_use]
pub fn has_rdtscp() -> bool {
    __cpuid(0x8000_0000).eax >= 0x8000_0001 && __cpuid(0x8000_0001).edx & (1 << 27) != 0
}

/// Returns CPUID 0x8000_0007 EDX bit 8: the counter runs at one rate in all power states (Linux
/// shows it as `constant_tsc nonstop_tsc`).
#[must_use]
pub fn is_invariant() -> bool {
    __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0
}

/// The counter's rate as the CPUID leaves declare it, as read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeclaredByCpuid {
    /// Leaf 0x4000_0010 EAX of a hypervisor that has it: kHz.
    pub hypervisor_khz: Option<u32>,
    /// Leaf 0x15: crystal Hz * numerator / denominator.
    pub crystal: Option<Crystal>,
    /// Leaf 0x16 EAX: base frequency, MHz.
    pub base_mhz: Option<u32>,
}

/// Leaf 0x15, complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crystal {
    /// ECX: frequency of the core crystal.
    pub crystal_hz: u32,
    /// EBX: ticks per `denominator` crystal periods.
    pub numerator: u32,
    /// EAX: number of crystal periods.
    pub denominator: u32,
}

/// Reads the leaves that declare a rate; zeros count as absent.
#[must_use]
pub fn declared_by_cpuid() -> DeclaredByCpuid {
    let last_leaf = __cpuid(0).eax;
    let nonzero = |value: u32| Some(value).filter(|v| *v != 0);
    let has_hypervisor = __cpuid(1).ecx & (1 << 31) != 0;
    let hypervisor_khz = (has_hypervisor && __cpuid(0x4000_0000).eax >= 0x4000_0010)
        .then(|| __cpuid(0x4000_0010).eax)
        .and_then(nonzero);
    let crystal = (last_leaf >= 0x15)
        .then(|| __cpuid_count(0x15, 0))
        .and_then(|leaf| {
            Some(Crystal {
                crystal_hz: nonzero(leaf.ecx)?,
                numerator: nonzero(leaf.ebx)?,
                denominator: nonzero(leaf.eax)?,
            })
        });
    // EAX holds 16 bits; the rest is reserved.
    let base_mhz = (last_leaf >= 0x16)
        .then(|| __cpuid_count(0x16, 0).eax & 0xffff)
        .and_then(nonzero);
    DeclaredByCpuid {
        hypervisor_khz,
        crystal,
        base_mhz,
    }
}
