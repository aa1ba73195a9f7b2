//! The wide readers with every interleaving of clock advances with reads of a word. The truth is
//! the clock of the model, whose every value is known.

use undertick_clock::wide::{
    Gap, GuardedOneRead, OneRead, Shape, Window, Words, four_read, varying_read,
};

/// A clock that advances by a given amount before each read of a word but the first.
struct Model<'a> {
    shape: Shape,
    now: u64,
    advances: &'a [u64],
    reads: usize,
}

impl Words for Model<'_> {
    fn read_word(&mut self, index: usize) -> u64 {
        if self.reads > 0 {
            self.now += self.advances.get(self.reads - 1).copied().unwrap_or(0);
        }
        self.reads += 1;
        // Some buses have random bits above the word.
        (self.now >> (self.shape.width_bits() as usize * index)) | 1 << 40
    }
}

fn whole(shape: Shape) -> u64 {
    1 << (shape.width_bits() as usize * shape.words())
}

/// Calls `visit` with every list of `len` amounts whose sum is at most `most`.
fn every_list(len: usize, most: u64, visit: &mut impl FnMut(&[u64])) {
    fn grow(list: &mut Vec<u64>, len: usize, left: u64, visit: &mut impl FnMut(&[u64])) {
        if list.len() == len {
            return visit(list);
        }
        for amount in 0..=left {
            list.push(amount);
            grow(list, len, left - amount, visit);
            list.pop();
        }
    }
    grow(&mut Vec::new(), len, most, visit);
}

#[derive(Clone, Copy, PartialEq)]
enum Reader {
    Varying,
    Four,
}

/// Makes one call; returns whether the value lies between the clock at its start and at its end.
/// `None`: the reader reported that it was too slow.
fn is_right(reader: Reader, shape: Shape, start: u64, advances: &[u64]) -> Option<bool> {
    let mut clock = Model {
        shape,
        now: start,
        advances,
        reads: 0,
    };
    let value = match reader {
        Reader::Varying => varying_read(shape, &mut clock),
        Reader::Four => four_read(shape, &mut clock).ok()?,
    };
    // All values are distances from the start, around the wrap of the whole clock.
    let mask = whole(shape) - 1;
    Some(value.wrapping_sub(start) & mask <= clock.now - start)
}

fn most_reads(reader: Reader, shape: Shape) -> usize {
    match (reader, shape.words()) {
        (Reader::Four, m) => 2 * m,
        (Reader::Varying, 2) => 4,
        (Reader::Varying, m) => 3 * m - 1,
    }
}

/// Returns the fewest ticks within one call at which the reader returned a wrong value.
fn first_failure(reader: Reader, shape: Shape, most: u64) -> (Option<u64>, u64) {
    let (mut first, mut cases) = (None::<u64>, 0);
    every_list(most_reads(reader, shape) - 1, most, &mut |advances| {
        for start in 0..whole(shape) {
            cases += 1;
            if is_right(reader, shape, start, advances) == Some(false) {
                let total = advances.iter().sum();
                first = Some(first.map_or(total, |f| f.min(total)));
            }
        }
    });
    (first, cases)
}

const SHAPES: [(u32, usize); 5] = [(1, 2), (2, 2), (3, 2), (1, 3), (2, 3)];

#[test]
fn both_readers_are_right_in_every_interleaving_shorter_than_a_period() {
    for (width, words) in SHAPES {
        let shape = Shape::new(width, words).unwrap();
        for reader in [Reader::Varying, Reader::Four] {
            let (failure, cases) = first_failure(reader, shape, shape.period_ticks() - 1);
            println!("{width} bits x {words}: {cases} interleavings");
            assert_eq!(failure, None, "{width} bits x {words}");
        }
    }
}

#[test]
fn neither_is_too_slow_within_a_period() {
    let shape = Shape::new(3, 2).unwrap();
    every_list(3, 7, &mut |advances| {
        for start in 0..64 {
            assert!(is_right(Reader::Four, shape, start, advances).is_some());
        }
    });
}

#[test]
fn the_precondition_of_a_period_is_needed() {
    // 4-Read, two words: a wrap comes one tick after the start, the next a period later, and the
    // reads see only one, so it is wrong from a period and a tick on. Three words: after exactly a
    // period the low word is the same again while the others are halfway. Varying-Read of two words
    // joins an earlier high part to a later low word. That lies inside the call until the whole
    // clock has wrapped (16 ticks, from 3 to 0 of the high word: 13).
    for (reader, width, words, wrong_from) in [
        (Reader::Four, 2, 2, 5),
        (Reader::Four, 3, 2, 9),
        (Reader::Four, 2, 3, 4),
        (Reader::Varying, 2, 3, 5),
        (Reader::Varying, 2, 2, 13),
    ] {
        let shape = Shape::new(width, words).unwrap();
        let (failure, _) = first_failure(reader, shape, wrong_from);
        assert_eq!(failure, Some(wrong_from), "{width} x {words}");
    }
}

#[test]
fn a_high_part_that_moved_by_two_is_reported() {
    let shape = Shape::new(2, 2).unwrap();
    // The high word is 0, then 2: eight ticks passed between the first and the third read.
    assert_eq!(is_right(Reader::Four, shape, 0, &[4, 4, 0]), None);
}

#[test]
fn varying_read_moves_its_significant_read() {
    // Each reference takes a tick; two calls follow directly, from every phase. By hand: lo1 to lo1
    // is hi2, hi1, lo1: 3 ticks. Wrap in the second call: hi2, hi1, lo1, hi2, lo2: 5. In the first:
    // lo2 to hi1, lo1: 2.
    let shape = Shape::new(4, 2).unwrap();
    let mut varying = std::collections::BTreeMap::<u64, u32>::new();
    let mut four = std::collections::BTreeMap::<u64, u32>::new();
    for start in 0..128 {
        let mut clock = Model {
            shape,
            now: start,
            advances: &[1; 16],
            reads: 0,
        };
        let first = varying_read(shape, &mut clock);
        *varying
            .entry(varying_read(shape, &mut clock) - first)
            .or_default() += 1;
        let mut clock = Model {
            shape,
            now: start,
            advances: &[1; 16],
            reads: 0,
        };
        let first = four_read(shape, &mut clock).unwrap();
        *four
            .entry(four_read(shape, &mut clock).unwrap() - first)
            .or_default() += 1;
    }
    assert_eq!(
        varying.keys().copied().collect::<Vec<_>>(),
        [2, 3, 5],
        "{varying:?}"
    );
    assert_eq!(four.into_iter().collect::<Vec<_>>(), [(4, 128)]);
}

#[test]
fn one_read_is_right_while_called_in_every_period() {
    // Every list of four gaps of less than a period, from every start.
    for width in [1, 2, 3] {
        let period = 1_u64 << width;
        for start in 0..4 * period {
            let mut total = 0_u64;
            for gaps in 0..period.pow(4) {
                let mut reader = OneRead::new(width, start);
                let mut now = start;
                for step in 0..4 {
                    now += gaps / period.pow(step) % period;
                    assert_eq!(
                        reader.extend(now % period),
                        now,
                        "{width} bits from {start}"
                    );
                }
                total += 1;
            }
            assert_eq!(total, period.pow(4));
        }
    }
}

#[test]
fn one_read_alone_loses_a_gap_and_says_nothing() {
    let mut reader = OneRead::new(3, 0);
    assert_eq!(reader.extend(8 % 8), 0, "the clock shows 8");
}

/// Every gap up to five periods, with every window that contains the truth at both ends.
#[test]
fn with_a_coarse_clock_a_gap_is_bridged_or_reported() {
    let (period, origin) = (8_u64, 100_u64);
    let (mut bridged, mut reported) = (0, 0);
    for start in 0..2 * period {
        for gap in 0..5 * period {
            for [a, b, c, d] in windows() {
                let window = |at: u64, early: u64, late: u64| Window {
                    earliest_ticks: origin + at - early,
                    latest_ticks: origin + at + late,
                };
                let mut reader = GuardedOneRead::new(3, start, window(start, a, b), 0);
                let now = start + gap;
                let found = reader.extend(now % period, window(now, c, d));
                // By hand: elapsed lies in gap - (b + c) ..= gap + (a + d).
                let below = gap.min(b + c) / period;
                let above = (a + d) / period;
                match found {
                    Ok(value) => {
                        bridged += 1;
                        assert_eq!(value, now);
                        assert_eq!((below, above), (0, 0), "gap {gap} {:?}", (a, b, c, d));
                    }
                    Err(Gap::Ambiguous(several)) => {
                        reported += 1;
                        assert_eq!(several, below + above + 1);
                        // The reader did not move: the same question has the same answer.
                        assert_eq!(reader.extend(now % period, window(now, c, d)), found);
                    }
                    Err(Gap::Contradiction) => panic!("no clock was set"),
                }
            }
        }
    }
    assert!(bridged > 1_000 && reported > 1_000, "{bridged} {reported}");
}

fn windows() -> impl Iterator<Item = [u64; 4]> {
    (0..7_u64.pow(4)).map(|i| [i % 7, i / 7 % 7, i / 49 % 7, i / 343])
}

#[test]
fn clocks_whose_rates_differ_are_given_room() {
    // 1000 ppm: a million ticks may be 999000 to 1001000 by the coarse clock.
    let at = |ticks: u64| Window {
        earliest_ticks: ticks,
        latest_ticks: ticks,
    };
    let reader = |ppm| GuardedOneRead::new(16, 0, at(0), ppm);
    let low = 1_000_000 % 65_536;
    assert_eq!(
        reader(0).extend(low, at(1_000_900)),
        Err(Gap::Contradiction)
    );
    assert_eq!(reader(1_000).extend(low, at(1_000_900)), Ok(1_000_000));
    assert_eq!(reader(1_000).extend(low, at(999_100)), Ok(1_000_000));
    assert_eq!(
        reader(1_000).extend(low, at(1_002_000)),
        Err(Gap::Contradiction)
    );
    // 100 000 ppm leave several periods of 65536 possible.
    assert!(matches!(
        reader(100_000).extend(low, at(1_000_000)),
        Err(Gap::Ambiguous(3))
    ));
}

#[test]
fn a_coarse_clock_that_was_set_back_is_a_contradiction() {
    let at = |ticks: u64| Window {
        earliest_ticks: ticks,
        latest_ticks: ticks,
    };
    let mut reader = GuardedOneRead::new(8, 500, at(10_000), 0);
    assert_eq!(reader.extend(0, at(9_000)), Err(Gap::Contradiction));
}

#[test]
fn shapes_of_no_clock_are_refused() {
    for (width, words) in [(0, 2), (8, 1), (8, 9), (32, 3), (33, 1), (24, 3)] {
        assert!(Shape::new(width, words).is_err(), "{width} x {words}");
    }
    for (width, words) in [(8, 8), (16, 4), (24, 2), (32, 2), (1, 64)] {
        assert!(Shape::new(width, words).is_ok(), "{width} x {words}");
    }
}

#[test]
fn gap_after_gap_is_bridged() {
    let at = |ticks: u64| Window {
        earliest_ticks: ticks,
        latest_ticks: ticks + 2,
    };
    let mut reader = GuardedOneRead::new(4, 7, at(7), 0);
    for now in [7, 30, 200, 201, 5_000] {
        assert_eq!(reader.extend(now % 16, at(now)), Ok(now));
    }
}
