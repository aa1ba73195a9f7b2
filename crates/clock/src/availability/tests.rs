use super::*;

const GOOD: TscFacts = TscFacts {
    x86: true,
    disabled_by_prctl: false,
    invariant: true,
    offered_by_kernel: Some(true),
};

#[test]
fn each_fact_against_the_tsc_is_a_reason() {
    assert_eq!(GOOD.verdict(), Ok(()));
    let silent_kernel = TscFacts {
        offered_by_kernel: None,
        ..GOOD
    };
    assert_eq!(silent_kernel.verdict(), Ok(()));
    for (facts, why) in [
        (TscFacts { x86: false, ..GOOD }, TscUnavailable::NotX86),
        (
            TscFacts {
                disabled_by_prctl: true,
                ..GOOD
            },
            TscUnavailable::Disabled,
        ),
        (
            TscFacts {
                invariant: false,
                ..GOOD
            },
            TscUnavailable::NotInvariant,
        ),
        (
            TscFacts {
                offered_by_kernel: Some(false),
                ..GOOD
            },
            TscUnavailable::KernelSaysUnstable,
        ),
    ] {
        assert_eq!(facts.verdict(), Err(why));
    }
}

#[test]
fn a_refused_tsc_comes_before_its_other_faults() {
    // In this case it must not be read, whatever else is wrong.
    let facts = TscFacts {
        disabled_by_prctl: true,
        invariant: false,
        ..GOOD
    };
    assert_eq!(facts.verdict(), Err(TscUnavailable::Disabled));
}

#[test]
fn the_kernels_list_is_read_by_whole_words() {
    assert!(lists_tsc("kvm-clock tsc hpet acpi_pm \n"));
    assert!(lists_tsc("tsc"));
    assert!(!lists_tsc("tsc-early hpet acpi_pm\n"));
    assert!(!lists_tsc(""));
}

#[test]
fn every_clock_is_usable_or_says_why() {
    assert_eq!(usable(ClockId::Monotonic), Ok(()));
    if cfg!(not(target_arch = "aarch64")) {
        assert_eq!(usable(ClockId::Cntvct), Err(Unavailable::NotAarch64));
    }
    for clock in ClockId::ALL {
        if let Err(why) = usable(clock) {
            assert!(!why.to_string().is_empty());
        }
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_thread_that_refuses_rdtsc_is_found_out() {
    // PR_SET_TSC applies to one thread; this one ends with the test.
    let (before, refused) = std::thread::spawn(|| {
        let before = TscFacts::gather().disabled_by_prctl;
        // SAFETY: sets a flag of this thread; the thread reads no TSC hereafter.
        let set = unsafe { libc::prctl(libc::PR_SET_TSC, libc::PR_TSC_SIGSEGV) } == 0;
        let refused = set.then(|| usable(ClockId::Tsc));
        // SAFETY: as above; set back so that the thread may end in any way it likes.
        unsafe { libc::prctl(libc::PR_SET_TSC, libc::PR_TSC_ENABLE) };
        (before, refused)
    })
    .join()
    .unwrap();
    match refused {
        Some(verdict) => assert_eq!(verdict, Err(Unavailable::Tsc(TscUnavailable::Disabled))),
        None => println!("skipped: this kernel has no PR_SET_TSC (before: {before})"),
    }
}
