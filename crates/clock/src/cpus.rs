//! The CPUs that this thread may run on, and pinning it to one.

use std::io;

/// Returns the CPUs that the calling thread may run on; at least one.
#[must_use]
pub fn allowed() -> Vec<usize> {
    let mut set = empty();
    // SAFETY: the kernel writes at most `size_of(set)` bytes to the live local.
    let got = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) };
    let most = 8 * size_of::<libc::cpu_set_t>();
    let cpus: Vec<usize> = (0..most)
        // SAFETY: the index lies inside the set.
        .filter(|cpu| got == 0 && unsafe { libc::CPU_ISSET(*cpu, &set) })
        .collect();
    if cpus.is_empty() { vec![0] } else { cpus }
}

/// Pins the calling thread to one CPU from now on.
///
/// # Errors
/// There is no such CPU, or this process may not use it.
pub fn pin(cpu: usize) -> io::Result<()> {
    let mut set = empty();
    if cpu >= 8 * size_of::<libc::cpu_set_t>() {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: the index lies inside the set.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: the kernel reads the live local.
    if unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) } == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error())
}

fn empty() -> libc::cpu_set_t {
    // SAFETY: all zeros is the empty set.
    unsafe { core::mem::zeroed() }
}
