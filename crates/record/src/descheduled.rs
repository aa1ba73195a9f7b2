use std::time::Duration;

use undertick_ring::mark::Mark;

use undertick_format::manifest::Descheduled;

/// Finds out what the deschedule flag means under this kernel. It points the thread's `rseq_cs`
/// at a section that is never executed, sleeps, and checks whether the kernel cleared the
/// pointer. Kernels before 6.19 do whenever the thread leaves the CPU, later ones only when it
/// was interrupted.
#[must_use]
pub fn self_test() -> Descheduled {
    // In a separate thread, so that other uses of rseq_cs in this one are undisturbed.
    std::thread::spawn(probe)
        .join()
        .unwrap_or(Descheduled::Unavailable)
}

fn probe() -> Descheduled {
    let Some(mark) = Mark::of_this_thread() else {
        return Descheduled::Unavailable;
    };
    let mut taken = 0;
    for _ in 0..3 {
        mark.set();
        std::thread::sleep(Duration::from_millis(2));
        taken += u32::from(mark.is_gone());
    }
    if taken >= 2 {
        Descheduled::AnyDeschedule
    } else {
        Descheduled::PreemptionOnly
    }
}
