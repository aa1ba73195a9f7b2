//! Edge interpolation on a simulated clock whose polls cost time.

mod slow_sim;

use slow_sim::{Source, band};
use undertick_estimate::slow::{EdgeSamples, EdgeShot};

const TICK_NS: f64 = 1e6;
const TRUTH_NS: f64 = 50_000.0;
const LEVEL: f64 = 0.9;

/// Time and clock of a loop that waits for edges. Polls are not stepped through
/// one by one: their number is computed.
struct Waiting {
    source: Source,
    now_ns: f64,
    /// Cost of a poll, and how much it changes from wait to wait.
    poll_ns: f64,
    poll_sd_ns: f64,
    /// How late a tick shows, one standard deviation.
    edge_sd_ns: f64,
}

impl Waiting {
    fn new(seed: u64, poll_ns: f64, poll_sd_ns: f64, edge_sd_ns: f64) -> Self {
        let mut source = Source::new(seed);
        let now_ns = 1e7 + TICK_NS * source.uniform();
        Self {
            source,
            now_ns,
            poll_ns,
            poll_sd_ns,
            edge_sd_ns,
        }
    }

    /// Polls until the next tick shows: that tick, and the polls.
    fn poll_to_edge(&mut self) -> (i64, u64) {
        let tick = (self.now_ns / TICK_NS).floor() as i64 + 1;
        let late_ns = (self.edge_sd_ns * self.source.normal()).abs();
        let poll_ns = self.poll_ns + self.poll_sd_ns * self.source.normal();
        let polls = ((tick as f64 * TICK_NS + late_ns - self.now_ns) / poll_ns).ceil();
        self.now_ns += polls * poll_ns;
        (tick, polls as u64)
    }

    /// Waits for an edge, works, counts polls to the next edge.
    fn shot(&mut self, work_ns: f64) -> EdgeShot {
        let (before, _) = self.poll_to_edge();
        // 12 ns from the edge to the start, 7 ns from the end to the polls.
        self.now_ns += 12.0 + work_ns + 7.0;
        let (after, polls) = self.poll_to_edge();
        EdgeShot {
            ticks: after - before,
            polls,
        }
    }
}

/// 50 us, d = 1 ms: 12 pairs reach the half-width of 20 691 cycles of 2.5 ms
/// (2.49 us) with a clock whose edges are 100 ns late or more, in at least 100
/// times less time; and the intervals cover.
#[test]
fn edges_cover_in_a_hundredth_of_the_time() {
    let repetitions = 1000;
    for (poll_ns, poll_sd_ns, edge_sd_ns) in
        [(25.0, 0.0, 0.0), (25.0, 0.01, 100.0), (400.0, 0.2, 1000.0)]
    {
        let (mut hits, mut half, mut time_s) = (0, 0.0, 0.0);
        for seed in 0..repetitions {
            let mut waiting = Waiting::new(seed, poll_ns, poll_sd_ns, edge_sd_ns);
            let begin_ns = waiting.now_ns;
            let mut samples = EdgeSamples::new();
            for _ in 0..12 {
                // The loop's other work: the shots begin anywhere in a tick.
                waiting.now_ns += 450_000.0 + 1000.0 * waiting.source.uniform();
                let null = waiting.shot(0.0);
                let shot = waiting.shot(TRUTH_NS);
                samples.push(shot, null);
            }
            time_s += (waiting.now_ns - begin_ns) / 1e9 / repetitions as f64;
            let estimate = samples.estimate(TICK_NS, LEVEL).unwrap();
            let interval = estimate.interval;
            hits += u64::from((interval.lo.unwrap()..=interval.hi.unwrap()).contains(&TRUTH_NS));
            half += interval.half_width().unwrap() / repetitions as f64;
        }
        println!(
            "poll {poll_ns} ns, edges late by {edge_sd_ns} ns: half-width {half:.1} ns in {time_s:.4} s, covered {hits} of {repetitions}"
        );
        assert!(half < 2492.0, "{half}");
        assert!(100.0 * time_s < 20_691.0 * 2.5e-3, "{time_s}");
        assert!(hits >= band(repetitions, 0.9, 1e-7).0, "{hits}");
    }
}

/// An activity longer than a tick.
#[test]
fn more_than_a_tick() {
    let mut waiting = Waiting::new(1, 25.0, 0.0, 0.0);
    let mut samples = EdgeSamples::new();
    for _ in 0..12 {
        let null = waiting.shot(0.0);
        let shot = waiting.shot(2_345_678.0);
        samples.push(shot, null);
    }
    let estimate = samples.estimate(TICK_NS, LEVEL).unwrap();
    // The overhead of 19 ns is 2e-5 of the tick, so of the result.
    assert!(
        (estimate.value - 2_345_678.0).abs() < 60.0,
        "{}",
        estimate.value
    );
}
