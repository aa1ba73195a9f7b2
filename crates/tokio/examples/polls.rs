//! Polls tasks on one worker: `polls plain|tasks TASKS POLLS WORK_NS`. Prints the ns of all polls, and of them the
//! ns that the worker was on a CPU.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::runtime::Builder;
use undertick::task_span;

/// CPU time of the worker between its first poll and now, ns.
fn on_cpu_ns() -> u64 {
    // The first number: ns on a CPU.
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().and_then(|n| n.parse().ok());
    first.unwrap_or(0)
}

static BEGAN: AtomicU64 = AtomicU64::new(0);
static ENDED: AtomicU64 = AtomicU64::new(0);

/// Works in each poll, and is polled again at once.
struct Works {
    left: u32,
    work: Duration,
}

impl Future for Works {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if BEGAN.load(Ordering::Relaxed) == 0 {
            BEGAN.store(on_cpu_ns(), Ordering::Relaxed);
        }
        let start = Instant::now();
        while start.elapsed() < self.work {}
        self.left -= 1;
        if self.left == 0 {
            ENDED.store(on_cpu_ns(), Ordering::Relaxed);
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [how, numbers @ ..] = &words[..] else {
        panic!("polls plain|tasks TASKS POLLS WORK_NS");
    };
    let numbers: Vec<u64> = numbers.iter().map(|word| word.parse().unwrap()).collect();
    let [tasks, polls, work_ns] = numbers[..] else {
        panic!("three numbers");
    };
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .unwrap();
    let works = || Works {
        left: polls as u32,
        work: Duration::from_nanos(work_ns),
    };
    let start = Instant::now();
    runtime.block_on(async {
        let all: Vec<_> = (0..tasks)
            .map(|_| match how == "tasks" {
                true => runtime.spawn(task_span!("polled", works())),
                false => runtime.spawn(works()),
            })
            .collect();
        for one in all {
            one.await.unwrap();
        }
    });
    let wall = start.elapsed().as_nanos();
    let cpu = ENDED.load(Ordering::Relaxed) - BEGAN.load(Ordering::Relaxed);
    println!("{wall} {cpu}");
}
