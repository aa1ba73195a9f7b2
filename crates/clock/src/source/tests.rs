use super::*;

/// Number of readings by one thread; more than any loop could finish on the CPU within one step
/// of a 10 ns clock.
const READINGS: usize = 100_000;

#[test]
fn no_clock_steps_back_within_a_thread() {
    let mut tried = 0;
    for clock in ClockId::ALL {
        // Unix time may be set while the test runs.
        if clock == ClockId::Realtime {
            continue;
        }
        let source = match Source::open(clock) {
            Ok(source) => source,
            Err(why) => {
                println!("skipped {clock}: {why}");
                continue;
            }
        };
        tried += 1;
        let first = source.read_ticks_ordered();
        let mut last = first;
        for _ in 0..READINGS {
            let now = source.read_ticks_ordered();
            assert!(now >= last, "{clock} went from {last} to {now}");
            last = now;
        }
        if clock != ClockId::MonotonicCoarse {
            assert!(last > first, "{clock} stands still");
        }
    }
    assert!(tried >= 3, "this system lacks even the kernel's clocks");
}

#[test]
fn typed_and_opened_readings_are_of_the_same_clock() {
    let source = Source::open(ClockId::MonotonicRaw).unwrap();
    let before = MonotonicRaw::read().raw();
    let between = source.read_ticks();
    let after = MonotonicRaw::read_ordered().raw();
    assert!(before <= between && between <= after);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn the_three_reads_of_the_tsc_are_of_one_counter() {
    if let Err(why) = usable(ClockId::Tsc) {
        println!("skipped: {why}");
        return;
    }
    let plain = crate::tsc::read_fenced();
    let fenced = crate::tsc::read_fenced();
    assert!((fenced - plain).raw() >= 0);
    if crate::tsc::has_rdtscp() {
        let rdtscp = crate::tsc::read_rdtscp();
        assert!((rdtscp - fenced).raw() >= 0);
        assert!((crate::tsc::read_fenced() - rdtscp).raw() >= 0);
    }
}
