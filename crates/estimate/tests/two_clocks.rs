//! Simulated clocks whose difference is known, and messages between them through queues of
//! different length. The oracle adds up rates, and uses no hull.

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use undertick_estimate::two_clocks::{ClockMap, Knot, Limits, Message, clock_map};

/// A clock whose rate changes each second: by a random walk within a range, or, as the worst case,
/// from one end of the range to the other at some second.
struct Clock {
    /// Reading at the true time 0, ns.
    start_ns: i64,
    /// Distance ahead of true time at each whole second, ns.
    ahead_ns: Vec<f64>,
}

impl Clock {
    fn new(
        random: &mut ChaCha8Rng,
        (start_ns, rate): (i64, f64),
        range: f64,
        turn: Option<f64>,
        seconds: usize,
    ) -> Self {
        let mut now = rate;
        let mut ahead_ns = vec![0.0];
        let turns_at = seconds / 3 + seconds % 17;
        for second in 0..seconds + 2 {
            ahead_ns.push(ahead_ns[second] + 1e9 * now);
            now += range * (random.random::<f64>() - 0.5) / 3.0;
            now = now.clamp(rate - range / 2.0, rate + range / 2.0);
            if let Some(turn) = turn {
                let after = if second < turns_at { -0.5 } else { 0.5 };
                now = rate + range * turn * after;
            }
        }
        Self { start_ns, ahead_ns }
    }

    /// Returns the distance ahead of true time, ns, without the start.
    fn ahead_ns(&self, true_s: f64) -> f64 {
        let second = true_s as usize;
        let (a, b) = (self.ahead_ns[second], self.ahead_ns[second + 1]);
        a + (b - a) * (true_s - second as f64)
    }

    /// Returns a reading, cut to whole ticks.
    fn shows(&self, true_s: f64) -> i64 {
        self.start_ns + (true_s * 1e9 + self.ahead_ns(true_s)).floor() as i64
    }
}

fn exponential(random: &mut ChaCha8Rng, mean: f64) -> f64 {
    -mean * (1.0 - random.random::<f64>()).ln()
}

/// A link with a queue, in which packets of others wait, too.
struct Way {
    base_s: f64,
    /// Mean interval between packets of others, and the time that each takes.
    between_s: f64,
    each_s: f64,
    /// True time, and the work that waits at that time.
    now_s: f64,
    waits_s: f64,
}

impl Way {
    fn new(base_s: f64, slowness: f64) -> Self {
        Self {
            base_s,
            between_s: 300e-6 * slowness,
            each_s: 90e-6 * slowness,
            now_s: 0.0,
            waits_s: 0.0,
        }
    }

    /// Returns when a packet sent at this time arrives, s: later than all sent before.
    fn arrives(&mut self, random: &mut ChaCha8Rng, sent_s: f64) -> f64 {
        loop {
            let next_s = self.now_s + exponential(random, self.between_s);
            let until_s = next_s.min(sent_s);
            self.waits_s = (self.waits_s - (until_s - self.now_s)).max(0.0);
            self.now_s = until_s;
            if next_s >= sent_s {
                // The wait for the next packet is memoryless.
                return sent_s + self.base_s + self.waits_s;
            }
            self.waits_s += exponential(random, self.each_s);
        }
    }
}

/// Two clocks and the messages between them.
struct Scene {
    first: Clock,
    second: Clock,
    seconds: usize,
    there: Vec<Message>,
    back: Vec<Message>,
}

struct Setting {
    /// Width of the range of each clock's rate.
    range: f64,
    /// Whether one rate goes from end to end of the range, and the other in the opposite direction.
    turns: bool,
    base_s: [f64; 2],
    /// Factor by which queues are longer on the way back.
    asymmetry: f64,
}

fn scene(random: &mut ChaCha8Rng, setting: &Setting) -> Scene {
    let seconds = 20 + (100.0 * random.random::<f64>()) as usize;
    let sign = |x: f64| 2.0 * x - 1.0;
    let first_ns = (1e18 * random.random::<f64>()) as i64;
    let offset_ns = (1e12 * sign(random.random())) as i64;
    let rates = [(); 2].map(|()| 50e-6 * sign(random.random()));
    let range = setting.range;
    let turn = |to: f64| setting.turns.then_some(to);
    let first = Clock::new(random, (first_ns, rates[0]), range, turn(1.0), seconds);
    let start = (first_ns + offset_ns, rates[1]);
    let second = Clock::new(random, start, range, turn(-1.0), seconds);
    let mut ways = [
        Way::new(setting.base_s[0], 1.0),
        Way::new(setting.base_s[1], setting.asymmetry),
    ];
    let (mut there, mut back) = (Vec::new(), Vec::new());
    let mut now_s = 0.1 * random.random::<f64>();
    while now_s < seconds as f64 - 1.0 {
        let arrives_s = ways[0].arrives(random, now_s);
        there.push(Message {
            sent: first.shows(now_s),
            received: second.shows(arrives_s),
        });
        let replied_s = arrives_s + 20e-6;
        let returns_s = ways[1].arrives(random, replied_s);
        back.push(Message {
            sent: second.shows(replied_s),
            received: first.shows(returns_s),
        });
        now_s = returns_s.max(now_s + exponential(random, 0.05));
    }
    Scene {
        first,
        second,
        seconds,
        there,
        back,
    }
}

/// Returns, at 5001 moments, also beyond the last message, the error of the middle, ns, and the
/// map's knot.
fn errors<'a>(scene: &'a Scene, map: &'a ClockMap) -> impl Iterator<Item = (f64, Knot)> + 'a {
    let offset_ns = scene.second.start_ns - scene.first.start_ns;
    (0..=5000).map(move |i| {
        let true_s = scene.seconds as f64 * f64::from(i) / 5000.0;
        let truth_ns = scene.second.ahead_ns(true_s) - scene.first.ahead_ns(true_s);
        let found = map.at(scene.first.shows(true_s)).unwrap();
        ((found.ahead - offset_ns) as f64 - truth_ns, found)
    })
}

/// Asserts that the truth is always inside; returns the errors of the middle over half-widths, and
/// the half-widths.
fn inside(scene: &Scene, map: &ClockMap, what: &str) -> (Vec<f64>, Vec<f64>) {
    let (mut shares, mut halves) = (Vec::new(), Vec::new());
    for (error_ns, found) in errors(scene, map) {
        let half_width = found.half_width as f64;
        assert!(
            error_ns.abs() <= half_width,
            "{what}: off by {error_ns} ns, {found:?}"
        );
        shares.push(error_ns.abs() / half_width);
        halves.push(half_width);
    }
    (shares, halves)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

fn map(scene: &Scene, limits: &Limits) -> ClockMap {
    let span = (
        scene.first.shows(0.0),
        scene.first.shows(scene.seconds as f64),
    );
    clock_map(&scene.there, &scene.back, Some(span), limits).unwrap()
}

/// Twenty pairs of hosts: offsets to 1000 s, rates to 100 ppm apart, each wandering by 1 ppm,
/// queues up to four times as long in one direction as in the other.
#[test]
fn the_truth_is_always_inside_and_near_the_middle() {
    let mut all = Vec::new();
    for seed in 0..20 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let base_s = 5e-6 + 95e-6 * random.random::<f64>();
        let setting = Setting {
            range: 0.999e-6,
            turns: seed % 2 == 0,
            base_s: [base_s, base_s * (1.0 + 0.1 * random.random::<f64>())],
            asymmetry: 1.0 + 3.0 * random.random::<f64>(),
        };
        let scene = scene(&mut random, &setting);
        let map = map(&scene, &Limits::default());
        assert!(!map.is_wander_raised(), "seed {seed}");
        let (mut shares, mut halves) = inside(&scene, &map, &format!("seed {seed}"));
        let half = median(&mut halves);
        all.append(&mut shares);
        println!(
            "seed {seed}: base {:.1} us, half-width {:.1} us",
            1e6 * base_s,
            half / 1e3
        );
        // The bounds are not much wider than the unknowable part.
        assert!(half < 1e9 * base_s + 30e3, "seed {seed}: {half}");
    }
    let median = median(&mut all);
    println!("error of the middle over the half-width: median {median:.3}");
    assert!(median <= 0.2, "{median}");
}

/// If the shortest delays differ, four to one, no message shows it. The middle is off by at most
/// 3/5 of the half-width, and the bounds still hold.
#[test]
fn ways_of_different_length_keep_the_truth_inside() {
    for seed in 100..120 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let short_s = 20e-6 + 80e-6 * random.random::<f64>();
        let base_s = if seed % 2 == 0 {
            [short_s, 4.0 * short_s]
        } else {
            [4.0 * short_s, short_s]
        };
        let setting = Setting {
            range: 0.999e-6,
            turns: seed % 2 == 0,
            base_s,
            asymmetry: 1.0 + 3.0 * random.random::<f64>(),
        };
        let scene = scene(&mut random, &setting);
        inside(
            &scene,
            &map(&scene, &Limits::default()),
            &format!("seed {seed}"),
        );
    }
}

/// The clocks keep their rates, and the limit says so. All messages count everywhere, so the bounds
/// come closer to the smallest that the delays allow.
#[test]
fn without_wander_bounds_are_narrower() {
    for seed in 200..210 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let setting = Setting {
            range: 0.0,
            turns: false,
            base_s: [100e-6; 2],
            asymmetry: 2.0,
        };
        let scene = scene(&mut random, &setting);
        let half = |wander: f64| {
            let limits = Limits {
                wander,
                ..Limits::default()
            };
            median(&mut inside(&scene, &map(&scene, &limits), &format!("seed {seed}")).1)
        };
        let (without, with) = (half(0.0), half(2e-6));
        assert!(without < with, "seed {seed}: {without} {with}");
        assert!(without < 102e3, "seed {seed}: {without}");
    }
}

/// The clocks wander more than the limit allows: either this is noticed, or the truth is missed
/// somewhere. The allowance is therefore needed.
#[test]
fn the_wander_must_be_allowed_for() {
    let (mut noticed, mut missed) = (0, 0);
    for seed in 300..320 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let setting = Setting {
            range: 4e-6,
            turns: seed % 2 == 0,
            base_s: [20e-6; 2],
            asymmetry: 1.0,
        };
        let scene = scene(&mut random, &setting);
        let limits = |wander| Limits {
            wander,
            ..Limits::default()
        };
        inside(&scene, &map(&scene, &limits(8e-6)), &format!("seed {seed}"));
        let without = map(&scene, &limits(0.0));
        if without.is_wander_raised() {
            noticed += 1;
        } else if errors(&scene, &without).any(|(e, k)| e.abs() > k.half_width as f64) {
            missed += 1;
        }
    }
    println!("of 20 runs {noticed} noticed, in {missed} the truth was missed");
    assert!(noticed >= 4 && noticed + missed >= 12);
}
