//! Readers by replay compared with the readers themselves, and readings with the truth.

use undertick_clock::wide::{OneRead, Shape, Words, four_read, varying_read};
use undertick_cmstar::engine::{Entity, Stream};
use undertick_cmstar::reading::{Reader, Step};
use undertick_cmstar::{
    Act, ClockId, CmAddress, Machine, Moment, Os, Outcome, Parameters, Program, Reading, Routine,
    StepInput,
};

/// A clock that moves on by the given steps, one before each word.
struct Moving<'a> {
    shape: Shape,
    ticks: u64,
    steps: &'a [u64],
    asked: usize,
}

impl Moving<'_> {
    fn word(&self, index: usize) -> u64 {
        (self.ticks >> (self.shape.width_bits() as usize * index)) & (self.shape.period_ticks() - 1)
    }
}

impl Words for Moving<'_> {
    fn read_word(&mut self, index: usize) -> u64 {
        self.ticks += self.steps[self.asked];
        self.asked += 1;
        self.word(index)
    }
}

/// Returns the value of a reader by replay for the same clock, and the clock when the significant
/// word was sampled.
fn replayed(reader: &mut Reader, routine: Routine, clock: &mut Moving<'_>) -> (Option<u64>, u64) {
    let mut step = reader.begin(routine);
    loop {
        match step {
            Step::Fetch(index) => {
                let value = clock.read_word(index);
                step = reader.give(value, Moment::from_ns(clock.ticks));
            }
            Step::FetchAll => {
                clock.read_word(0);
                step = reader.give(clock.ticks, Moment::from_ns(clock.ticks));
            }
            Step::Done(ticks, sampled) => return (ticks, sampled.ns()),
        }
    }
}

#[test]
fn a_reader_by_replay_reads_what_the_reader_itself_reads() {
    let mut random = Stream::new(1, Entity::Test, 0);
    for (width_bits, words) in [(3, 2), (4, 3), (16, 2), (8, 4)] {
        let shape = Shape::new(width_bits, words).unwrap();
        let mut one = OneRead::new(width_bits, 0);
        let mut reader = Reader::new(shape, 0);
        let mut start = 0;
        for _ in 0..20_000 {
            // Steps that move the wrap to any place, and some that are far too long.
            let most = [2, shape.period_ticks() / 4 + 1, shape.period_ticks()];
            let most = most[random.bits() as usize % 3];
            let steps: Vec<u64> = (0..16).map(|_| random.bits() % most).collect();
            let clock = || Moving {
                shape,
                ticks: start,
                steps: &steps,
                asked: 0,
            };
            let mut of_itself = clock();
            let mut by_replay = clock();
            let routine = [Routine::Varying, Routine::Four, Routine::One];
            let routine = routine[random.bits() as usize % 3];
            let expected = match routine {
                Routine::Varying => Some(varying_read(shape, &mut of_itself)),
                Routine::Four => four_read(shape, &mut of_itself).ok(),
                _ => Some(one.extend(of_itself.read_word(0))),
            };
            let (ticks, _) = replayed(&mut reader, routine, &mut by_replay);
            assert_eq!(ticks, expected, "{routine:?} from {start} by {steps:?}");
            assert_eq!(by_replay.asked, of_itself.asked, "{routine:?}");
            start = of_itself.ticks;
        }
    }
}

#[test]
fn the_sampled_moment_is_that_of_the_low_word_that_was_returned() {
    let mut random = Stream::new(2, Entity::Test, 0);
    let shape = Shape::new(6, 2).unwrap();
    let mut start = 0;
    let mut reader = Reader::new(shape, 0);
    for turn in 0..20_000 {
        // At most 12 ticks a call, so the reader is right, and the value is the clock when it was
        // sampled.
        let steps: Vec<u64> = (0..4).map(|_| 1 + random.bits() % 3).collect();
        let mut clock = Moving {
            shape,
            ticks: start,
            steps: &steps,
            asked: 0,
        };
        let routine = [
            Routine::Varying,
            Routine::Four,
            Routine::One,
            Routine::Latched,
        ];
        let routine = routine[turn % 4];
        let (ticks, sampled) = replayed(&mut reader, routine, &mut clock);
        let period = 1 << 12;
        let shown = match routine {
            Routine::Varying | Routine::Four => sampled % period,
            _ => sampled,
        };
        assert_eq!(ticks, Some(shown), "{routine:?} from {start} by {steps:?}");
        start = clock.ticks;
    }
}

/// Reads repeatedly, and stores the readings.
struct Loop {
    routine: Routine,
    pause_ns: u64,
    pauses: bool,
    readings: Vec<Reading>,
}

impl Program for Loop {
    fn next(&mut self, input: StepInput) -> Act {
        if let Outcome::Read(reading) = input.outcome {
            assert_eq!(reading.returned, input.now);
            self.readings.push(reading);
        }
        self.pauses = !self.pauses;
        if self.pauses {
            return Act::Work { ns: self.pause_ns };
        }
        Act::Read {
            clock: ClockId(0),
            routine: self.routine,
        }
    }
}

/// Runs loops of all routines on Cms of cluster 2, and one on the clock's own Cm.
fn loops(os: Os, tick_us: f64) -> (Parameters, Vec<(Routine, Vec<Reading>)>) {
    let mut parameters = Parameters::published();
    parameters.clock.tick_us = tick_us;
    let mut machine = Machine::new(&parameters, os, 3);
    let addresses = (5..10)
        .map(|cm| CmAddress::new(2, cm))
        .chain([CmAddress::new(1, 3)]);
    let routines = Routine::ALL.into_iter().chain([Routine::Four]);
    for (address, routine) in addresses.zip(routines.clone()) {
        let program = Loop {
            routine,
            pause_ns: 100_000,
            pauses: false,
            readings: Vec::new(),
        };
        machine.start(address, Moment::from_us(777), program);
    }
    machine.run(Moment::from_s(3));
    let readings = machine.into_programs().into_iter().map(|p| p.readings);
    (parameters, routines.zip(readings).collect())
}

#[test]
fn each_reading_shows_the_clock_when_it_was_sampled() {
    for os in [Os::StarOs, Os::Medusa] {
        for tick_us in [0.5, 2.0, 10.0] {
            let (_, all) = loops(os, tick_us);
            for (routine, readings) in all {
                assert!(
                    readings.len() > 2_000,
                    "{os} {routine:?}: {}",
                    readings.len()
                );
                for reading in readings {
                    let shown = (reading.sampled.ns() as f64 / (tick_us * 1e3)).floor() as u64;
                    assert_eq!(reading.ticks, Some(shown), "{os} {routine:?} {tick_us} us");
                    assert!(reading.called < reading.sampled && reading.sampled < reading.returned);
                }
            }
        }
    }
}

/// The low word wraps each 131 ms. In 3 s there are 22 wraps; a Varying-Read takes a fourth
/// reference where the wrap falls between its reads of the high word.
#[test]
fn a_latched_reading_is_one_reference_and_a_broadcast_one_none() {
    let (_, all) = loops(Os::Medusa, 2.0);
    let shortest = |wanted: Routine| {
        let (_, readings) = &all[Routine::ALL.iter().position(|r| *r == wanted).unwrap()];
        let times = readings.iter().map(|r| r.returned.ns_since(r.called));
        times.min().unwrap()
    };
    let (one, four) = (shortest(Routine::One), shortest(Routine::Four));
    // Each reference takes at least some 47 us.
    assert!((130_000..160_000).contains(&(four - one)), "{}", four - one);
    // The same, with the second word 6.5 us behind the first.
    let latched = shortest(Routine::Latched) - one;
    assert!((0..13_000).contains(&latched), "{latched}");
    let none = one - shortest(Routine::Broadcast);
    assert!((25_000..50_000).contains(&none), "{none}");
    // From the clock's own Cm each word is a local reference.
    let own = all[5].1.iter().map(|r| r.returned.ns_since(r.called)).min();
    assert!(own.unwrap() < one + 10_000, "{own:?}");
}
