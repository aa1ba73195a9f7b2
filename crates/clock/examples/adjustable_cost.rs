//! Measures the cost of the adjustable clock by tick: the table in `docs/book/clocks.md`. Run on an
//! idle machine; about 8 s.

use std::time::Duration;

use undertick_clock::adjustable::{AdjustableClock, on_same_cpu};
use undertick_clock::cpus;

fn main() -> std::io::Result<()> {
    let cpu = cpus::allowed()[0];
    println!(
        "tick, us   CPU time a wake-up, us   missed of ticks   share by CPU time   same CPU: lost, by CPU time"
    );
    for tick_us in [50, 100, 250, 1_000, 4_000, 10_000, 100_000] {
        let clock = AdjustableClock::start(tick_us * 1_000, None)?;
        std::thread::sleep(Duration::from_millis(600));
        let cost = clock.cost();
        drop(clock);
        let same = on_same_cpu(tick_us * 1_000, cpu)?;
        println!(
            "{tick_us:8}   {:22.2}   {:6} / {:6}   {:15.2} %   {:14.2} +- {:.2} %, {:.2} %",
            cost.cpu_ns_per_wakeup() / 1e3,
            cost.missed,
            cost.ticks,
            100.0 * cost.share(),
            100.0 * same.share,
            100.0 * same.share_spread,
            100.0 * same.thread_share
        );
    }
    Ok(())
}
