//! The same seed gives the same run: twice, and beside any number of others.

use undertick_cmstar::load::{
    MessagePairs, MethodOne, MethodTwo, ReadingLoops, message_pairs, method_one, method_two,
    reading_loops,
};
use undertick_cmstar::{Os, Parameters, Routine};

/// Runs some of everything; returns digests and readings.
fn everything(seed: u64) -> Vec<(u64, String)> {
    let parameters = Parameters::published();
    let mut all = Vec::new();
    for os in [Os::StarOs, Os::Medusa] {
        for routine in [Routine::Four, Routine::One] {
            let loops = ReadingLoops {
                length_ns: 300_000_000,
                ramp_ns: 50_000_000,
                seed,
                ..ReadingLoops::new(os, routine, 20)
            };
            let run = reading_loops(&parameters, &loops).unwrap();
            all.push((run.digest, format!("{:?}", run.passes)));
            let one = MethodOne {
                length_ns: 300_000_000,
                ramp_ns: 50_000_000,
                seed,
                ..MethodOne::new(&parameters, os, routine)
            };
            let run = method_one(&parameters, &one).unwrap();
            all.push((run.digest, format!("{:?}", run.repetitions)));
            let two = MethodTwo {
                repetitions: 10,
                seed,
                ..MethodTwo::new(&parameters, os, routine)
            };
            let run = method_two(&parameters, &two).unwrap();
            all.push((run.digest, format!("{:?}", run.repetitions)));
        }
        let pairs = MessagePairs {
            os,
            repetitions: 10,
            sample_every_ns: Some(5_000_000),
            seed,
            ..MessagePairs::new(2, 50)
        };
        let run = message_pairs(&parameters, &pairs).unwrap();
        all.push((run.digest, format!("{:?}{:?}", run.calls, run.samples)));
    }
    all
}

#[test]
fn one_thread_and_four_threads_give_the_same() {
    let alone: Vec<_> = (0..8).map(everything).collect();
    let beside: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|n| scope.spawn(move || [everything(n), everything(n + 4)]))
            .collect();
        let pairs: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        let (low, high): (Vec<_>, Vec<_>) = pairs.into_iter().map(|[a, b]| (a, b)).unzip();
        low.into_iter().chain(high).collect()
    });
    assert!(alone == beside, "a run depends on what runs beside it");
    // Another seed gives another run, in everything.
    for (one, other) in alone[0].iter().zip(&alone[1]) {
        assert_ne!(one.0, other.0);
        assert_ne!(one.1, other.1);
    }
}

/// An additional process does not change the draws of the others: one that sleeps in another
/// cluster leaves every reading unchanged.
#[test]
fn an_idle_process_more_changes_no_reading() {
    use undertick_cmstar::{
        Act, ClockId, CmAddress, Machine, Moment, Outcome, Program, Reading, StepInput,
    };

    struct Reads(Vec<Reading>, bool);
    impl Program for Reads {
        fn next(&mut self, input: StepInput) -> Act {
            if let Outcome::Read(reading) = input.outcome {
                self.0.push(reading);
            }
            match (self.1, self.0.len()) {
                (true, 0..200) => Act::Read {
                    clock: ClockId(0),
                    routine: Routine::Four,
                },
                (true, _) => Act::End,
                (false, _) => Act::Sleep { ns: 1_000_000_000 },
            }
        }
    }
    for os in [Os::StarOs, Os::Medusa] {
        let run = |more: bool| {
            let mut machine = Machine::new(&Parameters::published(), os, 5);
            let reads: Vec<_> = [CmAddress::new(2, 1), CmAddress::new(3, 1)]
                .map(|address| machine.start(address, Moment::START, Reads(Vec::new(), true)))
                .to_vec();
            if more {
                let idle = Reads(Vec::new(), false);
                machine.start_background(CmAddress::new(4, 1), Moment::START, idle);
            }
            machine.run(Moment::from_s(5));
            reads
                .iter()
                .map(|&p| machine.program(p).0.clone())
                .collect::<Vec<_>>()
        };
        assert!(run(false) == run(true), "{os}");
    }
}
