//! The wide readers on this machine's clocks, against the whole clock read
//! before and after: no timing is judged, only what must hold at any speed.

use undertick_clock::best;
use undertick_clock::slow::Fine;
use undertick_clock::wide::{Extended, Shape, Split, four_read, varying_read};

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
            // Held up for a period: nothing is promised.
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

#[test]
fn the_low_32_bits_are_extended_to_the_whole_clock_in_every_thread() {
    let fine = Fine::open(best().clock).unwrap();
    let shared = Extended::open(best().clock).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            scope.spawn(move || {
                let mut clock = shared;
                for round in 0..20 {
                    for _ in 0..1_000 {
                        let before = fine.read_ticks();
                        let whole = clock
                            .read_ticks()
                            .expect("no gap is too long for the coarse clock");
                        let after = fine.read_ticks();
                        assert!(
                            before <= whole && whole <= after,
                            "{before} {whole} {after}"
                        );
                    }
                    // Longer than a period of 32 bits at 2.6 GHz, once.
                    let pause_ms = if round == 10 { 1_800 + 100 * thread } else { 5 };
                    std::thread::sleep(std::time::Duration::from_millis(pause_ms));
                }
            });
        }
    });
}
