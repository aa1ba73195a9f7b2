//! Clocks finer than the usual ones, where this machine lets a user read them.
//!
//! | name | what it counts | condition |
//! |---|---|---|
//! | `rdpru_mperf` | cycles at the base rate while not halted | AMD, CPUID 0x80000008 EBX bit 4, and no hypervisor or kernel refuses it |
//! | `rdpru_aperf` | cycles really run | the same |
//! | `rdpmc_cycles` | cycles of this thread | a perf event for cycles whose page says `cap_user_rdpmc` |
//! | `pmccntr` | cycles | 64-bit Arm, `PMUSERENR_EL0` lets a user read it |
//!
//! An instruction that a hypervisor may refuse is first tried in a child process, which may die of
//! it without harm.

use core::fmt;

/// A finer clock and whether it may be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finer {
    /// Its name.
    pub name: &'static str,
    /// Counts per TSC (or `cntvct`) tick while busy, in millionths; or the reason why it cannot be
    /// read.
    pub counts_per_megatick: Result<u64, NotHere>,
}

/// Why a finer clock cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotHere {
    /// The clock belongs to another architecture.
    OtherArchitecture,
    /// The CPU, or the hypervisor for it, does not offer the instruction.
    NotOffered,
    /// The instruction is offered but was refused when tried.
    Refused,
    /// No perf event for CPU cycles is available.
    NoCyclesEvent,
    /// The kernel does not let user space read the counter.
    KernelForbids,
    /// The counter was read and did not move.
    StandsStill,
}

impl fmt::Display for NotHere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherArchitecture => "belongs to another CPU architecture",
            Self::NotOffered => "not offered by this CPU or its hypervisor (CPUID)",
            Self::Refused => "offered by CPUID, but refused when tried (hypervisor or kernel)",
            Self::NoCyclesEvent => {
                "no perf event for cycles (no counter in this machine, or perf is closed)"
            }
            Self::KernelForbids => "the kernel does not let user space read the counter",
            Self::StandsStill => "it was read and did not move",
        })
    }
}

/// Tries every finer clock.
#[must_use]
pub fn probe() -> Vec<Finer> {
    let finer = |name, counts_per_megatick| Finer {
        name,
        counts_per_megatick,
    };
    vec![
        finer("rdpru_mperf", machine::rdpru(0)),
        finer("rdpru_aperf", machine::rdpru(1)),
        finer("rdpmc_cycles", machine::rdpmc()),
        finer("pmccntr", machine::pmccntr()),
    ]
}

/// Returns the counts of `read` per million ticks of the machine's counter while it spins.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn against(ticks: impl Fn() -> u64, read: impl Fn() -> u64) -> Result<u64, NotHere> {
    const SPAN_TICKS: u64 = 2_000_000;
    let (from, count) = (ticks(), read());
    while ticks().wrapping_sub(from) < SPAN_TICKS {
        core::hint::spin_loop();
    }
    let counted = read().wrapping_sub(count);
    let span = ticks().wrapping_sub(from);
    if counted == 0 || counted > span.saturating_mul(1_000) {
        return Err(NotHere::StandsStill);
    }
    Ok((u128::from(counted) * 1_000_000 / u128::from(span)) as u64)
}

#[cfg(target_arch = "x86_64")]
mod machine {
    use core::arch::asm;
    use core::arch::x86_64::__cpuid;

    use super::{NotHere, against};

    fn tsc() -> u64 {
        crate::tsc::read_fenced().raw()
    }

    fn offers_rdpru() -> bool {
        // Leaf 0x80000008 EBX is reserved, and may be anything, on CPUs of other vendors.
        let vendor = __cpuid(0);
        let is_amd = [vendor.ebx, vendor.edx, vendor.ecx]
            .map(u32::to_le_bytes)
            .concat()
            == *b"AuthenticAMD";
        is_amd && __cpuid(0x8000_0000).eax >= 0x8000_0008 && __cpuid(0x8000_0008).ebx & 1 << 4 != 0
    }

    /// Reads MPERF (0) or APERF (1) by `rdpru`. It raises SIGILL where it is refused.
    fn read_rdpru(register: u32) -> u64 {
        let (low, high): (u32, u32);
        // SAFETY: RDPRU reads a register; no memory. It may raise a signal,
        // which is no memory unsafety.
        unsafe {
            asm!(".byte 0x0f, 0x01, 0xfd", in("ecx") register, out("eax") low, out("edx") high,
                 options(nostack, nomem));
        }
        u64::from(high) << 32 | u64::from(low)
    }

    pub(super) fn rdpru(register: u32) -> Result<u64, NotHere> {
        if !offers_rdpru() || crate::availability::TscFacts::gather().verdict().is_err() {
            return Err(NotHere::NotOffered);
        }
        if !survives(|| {
            read_rdpru(register);
        }) {
            return Err(NotHere::Refused);
        }
        against(tsc, || read_rdpru(register))
    }

    /// Returns whether a child process survives the attempt.
    pub(super) fn survives(attempt: impl FnOnce()) -> bool {
        // SAFETY: the child calls only async-signal-safe functions and ends
        // without running anything of the parent's.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: default handling of the signals that a refusal raises; no core file.
            unsafe {
                let none = libc::rlimit {
                    rlim_cur: 0,
                    rlim_max: 0,
                };
                libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
                for signal in [libc::SIGILL, libc::SIGSEGV, libc::SIGBUS] {
                    libc::signal(signal, libc::SIG_DFL);
                }
            }
            attempt();
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(0) };
        }
        let mut status = 0;
        // SAFETY: waits for our own child; the status is a live local.
        child > 0
            && unsafe { libc::waitpid(child, &raw mut status, 0) } == child
            && libc::WIFEXITED(status)
            && libc::WEXITSTATUS(status) == 0
    }

    pub(super) fn rdpmc() -> Result<u64, NotHere> {
        let counter = crate::perf_page::CyclesCounter::open().ok_or(NotHere::NoCyclesEvent)?;
        let index = counter.user_index().ok_or(NotHere::KernelForbids)?;
        if !survives(|| {
            read_rdpmc(index);
        }) {
            return Err(NotHere::Refused);
        }
        against(tsc, || read_rdpmc(index))
    }

    /// Reads by `rdpmc`. It raises SIGSEGV where it is refused.
    fn read_rdpmc(index: u32) -> u64 {
        let (low, high): (u32, u32);
        // SAFETY: as `read_rdpru`.
        unsafe {
            asm!("rdpmc", in("ecx") index, out("eax") low, out("edx") high, options(nostack, nomem));
        }
        u64::from(high) << 32 | u64::from(low)
    }

    pub(super) fn pmccntr() -> Result<u64, NotHere> {
        Err(NotHere::OtherArchitecture)
    }
}

#[cfg(target_arch = "aarch64")]
mod machine {
    use core::arch::asm;

    use super::{NotHere, against};

    pub(super) fn rdpru(_register: u32) -> Result<u64, NotHere> {
        Err(NotHere::OtherArchitecture)
    }

    pub(super) fn rdpmc() -> Result<u64, NotHere> {
        Err(NotHere::OtherArchitecture)
    }

    /// Checks EN (bit 0) or CR (bit 2) of `PMUSERENR_EL0`, which a user may always read.
    pub(super) fn pmccntr() -> Result<u64, NotHere> {
        let allowed: u64;
        // SAFETY: reads a register that is readable at EL0.
        unsafe {
            asm!("mrs {}, pmuserenr_el0", out(reg) allowed, options(nomem, nostack, preserves_flags));
        }
        if allowed & 0b101 == 0 {
            return Err(NotHere::KernelForbids);
        }
        against(
            || crate::cntvct::read_ordered().raw(),
            || {
                let cycles: u64;
                // SAFETY: the register was just found open to user space.
                unsafe {
                    asm!("isb", "mrs {}, pmccntr_el0", out(reg) cycles, options(nostack, preserves_flags));
                }
                cycles
            },
        )
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod machine {
    use super::NotHere;

    pub(super) fn rdpru(_register: u32) -> Result<u64, NotHere> {
        Err(NotHere::OtherArchitecture)
    }

    pub(super) fn rdpmc() -> Result<u64, NotHere> {
        Err(NotHere::OtherArchitecture)
    }

    pub(super) fn pmccntr() -> Result<u64, NotHere> {
        Err(NotHere::OtherArchitecture)
    }
}

#[cfg(test)]
mod tests;
