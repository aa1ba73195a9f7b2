use super::*;

#[test]
fn names_read_back_as_written() {
    for name in [
        "adjustable:50us",
        "adjustable:100ms",
        "quantised:1ms",
        "quantised:250us",
        "quantised:1ms:monotonic_raw",
        "monotonic-coarse",
        "realtime-coarse",
        "times",
    ] {
        assert_eq!(name.parse::<SlowName>().unwrap().to_string(), name);
    }
    let half: SlowName = "quantised:0.5ms".parse().unwrap();
    assert_eq!(half.to_string(), "quantised:500us");
}

#[test]
fn a_bad_name_says_what_there_is() {
    for (name, told) in [
        ("hourglass", "adjustable:TICK"),
        ("adjustable:49us", "between 50us and 100ms"),
        ("quantised", "1ms"),
        ("quantised:1", "1ms"),
        ("quantised:-1ms", "1ms"),
        ("quantised:nan", "1ms"),
        ("quantised:1ns", "between 100ns and 1s"),
        ("quantised:2s", "between 100ns and 1s"),
        ("quantised:1ms:sundial", "monotonic_raw"),
        ("times:1ms", "adjustable:TICK"),
    ] {
        let error = name.parse::<SlowName>().unwrap_err().to_string();
        assert!(error.contains(name) && error.contains(told), "{error}");
    }
}

#[test]
fn a_divided_clock_counts_whole_ticks_since_its_opening() {
    // 2.6 ticks per ns, 1 us: 2600 fine ticks.
    let fine = Fine {
        source: Source::open(ClockId::MonotonicRaw).unwrap(),
        rate: TickRate::new(2_600_000_000, 1).unwrap(),
    };
    let clock = Quantised {
        origin: 1_000,
        ..Quantised::open(fine, 1_000).unwrap()
    };
    let shown = [0, 1_000, 3_599, 3_600, 1_000 + 26_000].map(|fine| clock.divide(fine));
    assert_eq!(shown, [0, 0, 0, 1, 10]);
    assert!((clock.tick_ns() - 1_000.0).abs() < 1e-9);
}

#[test]
fn a_tick_that_is_no_whole_number_is_stated_as_it_is() {
    // 3 ticks in 10 ns: 100 ns are 30, 101 ns are 30.3, taken as 30.
    let fine = Fine {
        source: Source::open(ClockId::MonotonicRaw).unwrap(),
        rate: TickRate::new(300_000_000, 1).unwrap(),
    };
    let clock = Quantised::open(fine, 101).unwrap();
    assert!((clock.tick_ns() - 100.0).abs() < 1e-9);
    assert!(matches!(
        Quantised::open(fine, 4),
        Err(OpenError::TickTooShort)
    ));
}

#[test]
fn kernel_ticks_are_counted_whole() {
    let counted =
        [0, 3_999_999, 4_000_000, 4_000_400, 11_999_000].map(|ns| whole_ticks(ns, 4_000_000));
    assert_eq!(counted, [0, 1, 1, 1, 3]);
}

/// A slow clock never goes back, and agrees with the truth beside it to two ticks plus the delay of
/// a tick on a loaded machine. The first reading, too, may be late, by the time since the clock was
/// opened.
#[test]
fn each_slow_clock_here_keeps_its_promise() {
    for name in [
        "adjustable:200us",
        "quantised:200us",
        "monotonic-coarse",
        "times",
    ] {
        let beside = SlowClock::open("quantised:200us".parse().unwrap()).unwrap();
        let (_, opened) = beside.read_with_truth();
        let clock = SlowClock::open(name.parse().unwrap()).unwrap();
        let Some((rate, first_fine)) = clock.fine_rate().zip(opened) else {
            println!("skipped: {name}: no fine clock to compare with");
            continue;
        };
        let (first, _) = clock.read_with_truth();
        let mut last = first;
        loop {
            let (now, fine) = clock.read_with_truth();
            assert!(now >= last, "{name} went from {last} to {now}");
            last = now;
            let elapsed_ns = (fine.unwrap() - first_fine) as f64 * rate.ns_per_tick();
            // The truth is read later: the count can only be too low.
            let most = elapsed_ns / clock.tick_ns() + 2.0;
            assert!((now - first) as f64 <= most, "{name}: {now} > {most}");
            if elapsed_ns > 50e6 && now > first {
                break;
            }
            assert!(elapsed_ns < 10e9, "{name} stands still");
        }
    }
}
