//! Tracy's client beside the floor. Nothing reads: what it records stays in its queue.

use peers::{Floor, timed, told};
use tracy_client::{Client, plot, span};

fn main() {
    let (blocks, n) = told();
    let _client = Client::start();
    let mut floor = Floor::default();
    for _ in 0..blocks {
        timed("floor", n, |n| floor.run(n));
        timed("event", n, |n| {
            (0..n).for_each(|i| plot!("event", f64::from(i)))
        });
        timed("section", n, |n| {
            (0..n).for_each(|_| drop(span!("section")))
        });
    }
    // What is queued waits for a reader otherwise.
    std::process::exit(0);
}
