//! The wide readers on this machine's clocks, compared with the whole clock before and after: the
//! tests check only what must hold at any speed.

use undertick_clock::best;
use undertick_clock::narrow::{Extended, Split};
use undertick_clock::slow::Fine;
use undertick_clock::wide::{Shape, four_read, varying_read};

#[test]
fn split_words_give_the_whole_clock() {
    let fine = Fine::open(best().clock).unwrap();
    // A low word of 16 bits wraps every 25 us on a 2.6 GHz counter.
    for (width, words) in [(16, 4), (24, 2), (32, 2)] {
        let shape = Shape::new(width, words).unwrap();
        let mask = u64::MAX >> (64 - width as usize * words);
        let mut clock = Split::new(fine, shape);
        let (mut compared, mut wraps) = (0_u32, 0_u32);
        for _ in 0..200_000 {
            let before = fine.read_ticks();
            let four = four_read(shape, &mut clock);
            let varying = varying_read(shape, &mut clock);
            let after = fine.read_ticks();
            // After an interruption of a period nothing is guaranteed.
            if after - before >= shape.period_ticks() {
                continue;
            }
            compared += 1;
            wraps += u32::from(before >> width != after >> width);
            for value in [four.unwrap(), varying] {
                let behind = value.wrapping_sub(before) & mask;
                assert!(behind <= after - before, "{before:x} {value:x} {after:x}");
            }
        }
        println!("{width} bits x {words}: {compared} compared, {wraps} with a wrap");
        assert!(compared > 0);
    }
}

/// Returns the reading of a clock by a kernel call, ns.
fn ns_of(
    call: unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> libc::c_int,
    clock: libc::clockid_t,
) -> i64 {
    let mut told = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: one timespec, which is here.
    assert_eq!(unsafe { call(clock, &raw mut told) }, 0);
    told.tv_sec * 1_000_000_000 + told.tv_nsec
}

fn read_ns(clock: libc::clockid_t) -> i64 {
    ns_of(libc::clock_gettime, clock)
}

#[test]
fn the_low_32_bits_are_extended_to_the_whole_clock_in_every_thread() {
    let fine = Fine::open(best().clock).unwrap();
    let shared = Extended::open(best().clock).unwrap();
    let coarse_step_ns = ns_of(libc::clock_getres, libc::CLOCK_MONOTONIC_COARSE);
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            scope.spawn(move || {
                let mut clock = shared;
                let mut compared = 0_u32;
                for round in 0..20 {
                    for _ in 0..1_000 {
                        let coarse_ns = read_ns(libc::CLOCK_MONOTONIC_COARSE);
                        let before = fine.read_ticks();
                        let found = clock.read_ticks();
                        let after = fine.read_ticks();
                        let behind_ns = read_ns(libc::CLOCK_MONOTONIC) - coarse_ns;
                        let Ok(whole) = found else {
                            // The coarse clock may lag behind while the host suspends a guest.
                            assert!(
                                behind_ns > 2 * coarse_step_ns,
                                "{found:?}, {behind_ns} ns behind"
                            );
                            continue;
                        };
                        compared += 1;
                        assert!(
                            before <= whole && whole <= after,
                            "{before} {whole} {after}"
                        );
                    }
                    // Longer than a period of 32 bits at 2.6 GHz, once.
                    let pause_ms = if round == 10 { 1_800 + 100 * thread } else { 5 };
                    std::thread::sleep(std::time::Duration::from_millis(pause_ms));
                }
                assert!(compared > 0);
            });
        }
    });
}
