//! Spans of a program beside a coarse clock: where their mean reading is not reliable.

use crate::slow_sim;

use slow_sim::Source;
use undertick_estimate::slow::{Begins, Lock};

/// A program with a periodic loop, and the readings of its clock.
struct Program {
    source: Source,
    /// Ticks of a step of the clock.
    step: f64,
    /// Steps from turn to turn, and the scatter of that.
    turn: f64,
    jitter: f64,
    /// Steps after the begin of a turn at which its spans begin.
    sections: Vec<f64>,
    /// Duration of each span in steps.
    length: f64,
    /// One turn in this many is preempted for some steps, and the phase then continues unchanged.
    preempted: Option<u64>,
}

impl Program {
    fn new(seed: u64, turn: f64, jitter: f64) -> Self {
        let mut source = Source::new(seed);
        Self {
            length: 0.05 + 3.0 * source.uniform(),
            source,
            step: [26.0, 24.45, 25.961][(seed % 3) as usize],
            turn,
            jitter,
            sections: vec![0.0],
            preempted: None,
        }
    }

    /// Returns the lock that its spans show, and the error of their mean reading, steps.
    fn run(&mut self, turns: u64) -> (Option<Lock>, f64) {
        let step = self.step;
        let reading = |steps: f64| (steps.floor() * step) as i64;
        let mut begins = Begins::default();
        let (mut now, mut ticks) = (10.0 + self.source.uniform(), 0);
        for turn in 0..turns {
            for section in &self.sections {
                let from = now + section;
                begins.push(reading(from));
                ticks += reading(from + self.length) - reading(from);
            }
            now += self.turn + self.jitter * self.source.normal();
            if self
                .preempted
                .is_some_and(|every| turn % every == every - 1)
            {
                now += (10.0 + 1000.0 * self.source.uniform()).floor();
            }
        }
        let n = turns * self.sections.len() as u64;
        let mean = ticks as f64 / n as f64;
        let lock = begins.lock(step, mean, n);
        (lock, (mean / step - self.length).abs())
    }
}

/// q turns take r steps, with little jitter: each lock is found, and the reported bound on the
/// mean's error holds. Many are off by more than a twentieth of the span.
#[test]
fn locked_programs_are_told() {
    let mut far = 0;
    for seed in 0..300 {
        let (q, r) = (1 + seed % 5, 7 + seed % 11 * 2);
        if (2..=q).any(|d| q % d == 0 && r % d == 0) {
            continue;
        }
        let jitter = [0.0, 1e-5, 3e-4][(seed / 5 % 3) as usize];
        let mut program = Program::new(seed, r as f64 / q as f64, jitter);
        if seed % 2 == 0 {
            program.preempted = Some(40);
        }
        let (lock, error) = program.run(2000);
        let lock = lock.unwrap_or_else(|| panic!("{seed}: {r}:{q} jitter {jitter} not told"));
        assert!(
            lock.may_be_off_steps() >= error,
            "{seed}: {r}:{q} jitter {jitter} off by {error:.3} of a step: {lock}"
        );
        far += u64::from(error > 0.05 * program.length);
    }
    assert!(far > 80, "{far}");
}

/// For phases that move evenly, or are random, means are right, and no lock is reported.
#[test]
fn moving_programs_are_not_accused() {
    let mut told = 0;
    let mut worst = 0.0_f64;
    for seed in 0..200 {
        let mut program = Program::new(seed, 7.0 + 0.618_034, 1e-3);
        match seed % 4 {
            // The walk alone removes the lock.
            1 => (program.turn, program.jitter) = (8.0, 0.3),
            2 => program.preempted = Some(50),
            // The turns are so different that none resembles another.
            3 => program.jitter = 40.0,
            _ => {}
        }
        let (lock, error) = program.run(3000);
        told += u64::from(lock.is_some());
        worst = worst.max(error);
    }
    assert!(told <= 4, "{told} of 200");
    assert!(worst < 0.05, "{worst}");
}

/// Two and three spans a turn, not evenly spaced.
#[test]
fn sections_of_one_turn_are_locked_together() {
    for seed in 0..60 {
        let mut program = Program::new(seed, 21.5, 1e-4);
        let gap = 4.0 + program.source.uniform();
        program.sections = vec![0.0, gap, gap + 5.0][..2 + (seed % 2) as usize].to_vec();
        let (lock, error) = program.run(1500);
        let lock = lock.unwrap_or_else(|| panic!("{seed}: not told"));
        assert!(lock.may_be_off_steps() >= error, "{seed}: {error} {lock}");
        program.turn = 21.618_034;
        let (lock, error) = program.run(1500);
        assert!(lock.is_none() && error < 0.05, "{seed}: {error} {lock:?}");
    }
}

/// A turn of 8.00002 steps moves by a sixth of a step in the first 8192 turns. In a million it
/// moves by 20 steps, so their mean is right, while that of 8192 is not.
#[test]
fn what_stands_still_at_first_may_move_in_the_end() {
    for seed in 0..10 {
        let mut program = Program::new(seed, 8.000_02, 1e-6);
        let (lock, error) = program.run(8000);
        let lock = lock.unwrap_or_else(|| panic!("{seed}: not told"));
        assert!(lock.may_be_off_steps() >= error, "{seed}: {error} {lock}");
        let (lock, error) = program.run(1_000_000);
        assert!(lock.is_none() && error < 0.05, "{seed}: {error} {lock:?}");
    }
}
