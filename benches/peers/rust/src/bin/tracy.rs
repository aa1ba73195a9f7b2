//! Tracy's client beside the floor, without a reader: its records stay in its queue.

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
    // A normal exit would wait for a reader of the queue.
    std::process::exit(0);
}
