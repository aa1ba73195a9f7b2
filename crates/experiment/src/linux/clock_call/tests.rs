use super::*;
use crate::script::Words;

#[test]
fn every_clock_of_this_machine_is_read() {
    for (word, kind) in ClockCall::WORDS {
        match read(*kind) {
            Some(mut act) => (0..100).for_each(|_| act()),
            None => println!("skipped: {word} is not to be had here"),
        }
    }
    for always in [ClockCall::Monotonic, ClockCall::Times, ClockCall::ThreadCpu] {
        assert!(read(always).is_some());
    }
}

#[test]
fn a_clock_that_the_kernel_lacks_is_none() {
    // No kernel has a clock of this number.
    assert!(kernel(15).is_none());
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_counter_that_may_not_be_read_is_none() {
    crate::linux::test_harness::processes(1, &[], |_| {
        // SAFETY: from here on this process may not read the counter.
        let forbidden = unsafe { libc::prctl(libc::PR_SET_TSC, libc::PR_TSC_SIGSEGV) };
        assert_eq!(forbidden, 0);
        assert!(read(ClockCall::Counter).is_none());
        assert!(read(ClockCall::CounterFenced).is_none());
        assert!(read(ClockCall::CounterWithCpu).is_none());
    });
}
