//! Scheduling policies of a repetition's processes.

use crate::script::{Policy, Words as _};

/// Returns the first of these policies that this process may have, and why those before it are
/// refused.
///
/// # Errors
/// All are refused: why, and what is needed.
pub(crate) fn permitted(policies: &[Policy]) -> Result<(Policy, Option<String>), String> {
    let mut refused = Vec::new();
    for &policy in policies {
        match tried(policy) {
            Ok(()) => {
                let why = (!refused.is_empty()).then(|| refused.join("; "));
                return Ok((policy, why));
            }
            Err(error) => refused.push(format!(
                "the scheduling policy {} is refused ({error}){}",
                policy.word(),
                needs(policy)
            )),
        }
    }
    Err(refused.join("; "))
}

/// What a policy needs, for a message.
const fn needs(policy: Policy) -> &'static str {
    match policy {
        Policy::Other | Policy::Batch => "",
        Policy::Fifo | Policy::Rr => {
            ": it needs CAP_SYS_NICE, or a limit of real-time priorities of 1 (`ulimit -r`)"
        }
    }
}

/// Sets a policy and returns to the one of before.
fn tried(policy: Policy) -> std::io::Result<()> {
    let before = current()?;
    set(policy)?;
    change(before)
}

/// Sets the policy of the calling thread. [`Policy::Other`] leaves the one that was inherited.
///
/// # Errors
/// The system refuses it.
pub fn set(policy: Policy) -> std::io::Result<()> {
    let (number, priority) = match policy {
        Policy::Other => return Ok(()),
        Policy::Batch => (libc::SCHED_BATCH, 0),
        Policy::Fifo => (libc::SCHED_FIFO, 1),
        Policy::Rr => (libc::SCHED_RR, 1),
    };
    change(Scheduling { number, priority })
}

/// A policy's number and its real-time priority, as the kernel takes them. The system calls are
/// made directly, because musl's functions for them only report that they do not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scheduling {
    number: libc::c_int,
    priority: libc::c_int,
}

fn change(to: Scheduling) -> std::io::Result<()> {
    // SAFETY: 0 is the calling thread; the kernel reads one word, which lives through the call.
    let done = unsafe {
        let priority = &raw const to.priority;
        libc::syscall(libc::SYS_sched_setscheduler, 0, to.number, priority)
    };
    match done {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

fn current() -> std::io::Result<Scheduling> {
    let mut priority: libc::c_int = 0;
    // SAFETY: 0 is the calling thread; the kernel writes one word.
    let (number, done) = unsafe {
        (
            libc::syscall(libc::SYS_sched_getscheduler, 0),
            libc::syscall(libc::SYS_sched_getparam, 0, &raw mut priority),
        )
    };
    match (libc::c_int::try_from(number), done) {
        (Ok(number), 0) if number >= 0 => Ok(Scheduling { number, priority }),
        _ => Err(std::io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests;
