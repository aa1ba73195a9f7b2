use super::*;

#[test]
fn an_unusable_counter_falls_back_and_says_why() {
    let unstable = Unavailable::Tsc(TscUnavailable::KernelSaysUnstable);
    let choice = best_given(ClockId::Tsc, |_| Err(unstable));
    assert_eq!(choice.clock, ClockId::MonotonicRaw);
    assert_eq!(
        choice.why.tsc_unavailable(),
        Some(TscUnavailable::KernelSaysUnstable)
    );
    assert!(
        choice
            .to_string()
            .starts_with("monotonic_raw, because the kernel found"),
        "{choice}"
    );
}

#[test]
fn a_usable_counter_is_taken() {
    for counter in [ClockId::Tsc, ClockId::Cntvct] {
        let choice = best_given(counter, |_| Ok(()));
        assert_eq!((choice.clock, choice.why), (counter, Why::Counter));
    }
}

#[test]
fn the_best_clock_here_can_be_opened() {
    assert!(crate::Source::open(best().clock).is_ok());
}

#[test]
fn a_clock_asked_for_by_name_is_taken() {
    let choice = choose(Some("monotonic_raw")).unwrap();
    assert_eq!(
        (choice.clock, choice.why),
        (ClockId::MonotonicRaw, Why::Asked)
    );
    assert_eq!(choose(None), Ok(best()));
}

#[test]
fn a_name_that_cannot_be_served_is_an_error_not_a_fallback() {
    assert!(matches!(choose(Some("hpet")), Err(ChoiceError::Unknown(_))));
    assert_eq!(choose(Some("realtime")), Err(ChoiceError::CanBeSet));
    for (name, clock) in [
        ("boottime", ClockId::Boottime),
        ("monotonic_coarse", ClockId::MonotonicCoarse),
    ] {
        let error = choose(Some(name)).unwrap_err();
        assert_eq!(error, ChoiceError::NotRecorded(clock));
        assert!(error.to_string().contains(name), "{error}");
    }
    let elsewhere = if cfg!(target_arch = "aarch64") {
        "tsc"
    } else {
        "cntvct"
    };
    assert!(matches!(
        choose(Some(elsewhere)),
        Err(ChoiceError::Unavailable(_, _))
    ));
}
