//! Agenda and streams, compared with a sorted list and figures by hand.

mod support;

use support::{assert_agrees, mean, variance};
use undertick_cmstar::Moment;
use undertick_cmstar::engine::{Agenda, Delay, Digest, Entity, Law, Stream};

/// A list that is searched from the front: slow, and evidently right.
#[derive(Default)]
struct Plain {
    list: Vec<(u64, u64)>,
    entered: u64,
}

impl Plain {
    fn enter(&mut self, at: u64) -> u64 {
        self.list.push((at, self.entered));
        self.entered += 1;
        self.entered - 1
    }

    fn next(&mut self) -> Option<(u64, u64)> {
        // Of those with the smallest time the first: the order of entering.
        let mut least = 0;
        for (index, entry) in self.list.iter().enumerate() {
            if entry.0 < self.list.get(least)?.0 {
                least = index;
            }
        }
        (!self.list.is_empty()).then(|| self.list.remove(least))
    }
}

#[test]
fn the_agenda_does_what_a_plain_list_does() {
    for seed in 0..200 {
        let mut random = Stream::new(seed, Entity::Test, 0);
        let (mut agenda, mut plain) = (Agenda::new(), Plain::default());
        // There are few different times, so that ties are common; sizes change.
        for step in 0..600 {
            let grows = (step / 100) % 2 == 0;
            if random.uniform() < if grows { 0.7 } else { 0.35 } {
                let at = agenda.now().ns() + random.bits() % 8;
                let name = plain.enter(at);
                agenda.enter(Moment::from_ns(at), name);
            } else {
                if random.uniform() < 0.3 {
                    let next = agenda.next_at().map(Moment::ns);
                    assert_eq!(next, plain.list.iter().map(|e| e.0).min());
                }
                let got = agenda.next().map(|(at, name)| (at.ns(), name));
                assert_eq!(got, plain.next(), "seed {seed}, step {step}");
            }
            assert_eq!(agenda.len(), plain.list.len());
            assert_eq!(agenda.is_empty(), plain.list.is_empty());
        }
    }
}

#[test]
fn events_of_one_moment_come_in_the_order_in_which_they_were_entered() {
    let mut agenda = Agenda::new();
    for name in 0..100 {
        agenda.enter(Moment::from_ns(7), name);
    }
    let first: Vec<i32> = (0..50).map(|_| agenda.next().unwrap().1).collect();
    // Later entries of the same moment come last, although the heap was half taken apart.
    for name in 100..150 {
        agenda.enter(Moment::from_ns(7), name);
    }
    let rest: Vec<i32> = std::iter::from_fn(|| agenda.next()).map(|e| e.1).collect();
    let all: Vec<i32> = first.into_iter().chain(rest).collect();
    assert_eq!(all, (0..150).collect::<Vec<_>>());
}

#[test]
#[should_panic(expected = "an event at")]
fn the_past_is_closed() {
    let mut agenda = Agenda::new();
    agenda.enter(Moment::from_ns(5), ());
    agenda.next();
    agenda.enter(Moment::from_ns(4), ());
}

#[test]
#[should_panic(expected = "assertion failed")]
fn no_event_is_skipped() {
    let mut agenda = Agenda::new();
    agenda.enter(Moment::from_ns(5), ());
    agenda.advance(Moment::from_ns(6));
}

#[test]
fn streams_are_those_of_their_entity_and_of_no_other() {
    let first = |seed, entity, index| {
        let mut stream = Stream::new(seed, entity, index);
        [stream.bits(), stream.bits()]
    };
    let mut seen = Vec::new();
    for seed in 0..20 {
        for entity in [Entity::Cm, Entity::Process, Entity::Load, Entity::Test] {
            for index in 0..50 {
                let draws = first(seed, entity, index);
                assert_eq!(draws, first(seed, entity, index));
                seen.push(draws);
            }
        }
    }
    let number = seen.len();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), number);
}

/// Neighbouring streams are not correlated: the sum of products of n pairs of uniform
/// draws around their mean has standard deviation sqrt(n) / 12.
#[test]
fn neighbouring_streams_have_nothing_in_common() {
    const DRAWS: u32 = 100_000;
    for (seed, index) in [(1, 0), (1, 1), (2, 0), (77, 1_000)] {
        let mut one = Stream::new(seed, Entity::Process, index);
        let others = [
            Stream::new(seed, Entity::Process, index + 1),
            Stream::new(seed + 1, Entity::Process, index),
            Stream::new(seed, Entity::Cm, index),
        ];
        let draws: Vec<f64> = (0..DRAWS).map(|_| one.uniform() - 0.5).collect();
        for mut other in others {
            let sum: f64 = draws.iter().map(|x| x * (other.uniform() - 0.5)).sum();
            // 5.5 standard deviations: 4e-8.
            assert!(sum.abs() < 5.5 * f64::from(DRAWS).sqrt() / 12.0, "{sum}");
        }
    }
}

#[test]
fn delays_have_the_mean_and_the_variance_of_their_law() {
    for (law, relative_variance) in [(Law::Exponential, 1.0), (Law::Uniform, 1.0 / 3.0)] {
        let delay = Delay { mean_ns: 1e6, law };
        let (means, variances): (Vec<f64>, Vec<f64>) = (0..10)
            .map(|seed| {
                let mut stream = Stream::new(seed, Entity::Test, 1);
                let draws: Vec<f64> = (0..100_000)
                    .map(|_| delay.draw_ns(&mut stream) as f64 / 1e6)
                    .collect();
                (mean(&draws), variance(&draws))
            })
            .unzip();
        assert_agrees("mean", &means, 1.0);
        assert_agrees("variance", &variances, relative_variance);
    }
    let mut stream = Stream::new(1, Entity::Test, 1);
    assert_eq!(Delay::fixed_ns(1234.4).draw_ns(&mut stream), 1234);
}

#[test]
fn the_digest_knows_order_and_value() {
    let digest = |words: &[u64]| {
        let mut digest = Digest::default();
        words.iter().for_each(|&word| digest.add(word));
        digest.value()
    };
    assert_eq!(digest(&[1, 2, 3]), digest(&[1, 2, 3]));
    for other in [[1, 3, 2], [1, 2, 4], [0, 2, 3], [1 << 63 | 1, 2, 3]] {
        assert_ne!(digest(&[1, 2, 3]), digest(&other));
    }
    // Two changes of the same bit do not cancel out.
    assert_ne!(digest(&[0, 0]), digest(&[1 << 63, 1 << 63]));
}
