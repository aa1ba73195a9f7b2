//! Runs simulations on all CPUs. Each depends on its job alone, so the results are the same on one
//! CPU and on many.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};

/// The jobs were stopped before their end.
#[derive(Debug)]
pub struct Stopped;

/// Runs every job; results are in the order of the jobs. Calls `go_on` with the share done; when it
/// returns false no more jobs are started.
///
/// # Errors
/// The jobs were stopped.
///
/// # Panics
/// A job panicked.
pub fn run<J: Sync, T: Send>(
    all: &[J],
    job: impl Fn(&J) -> T + Sync,
    go_on: &mut dyn FnMut(f64) -> bool,
) -> Result<Vec<T>, Stopped> {
    let (next, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let results: Mutex<Vec<Option<T>>> = Mutex::new(all.iter().map(|_| None).collect());
    let (sender, receiver) = mpsc::channel();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads.min(all.len()) {
            let sender = sender.clone();
            scope.spawn(|| {
                let sender = sender;
                while !over.load(Ordering::Relaxed) {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(one) = all.get(i) else { break };
                    let result = job(one);
                    results.lock().expect("no job panics with it")[i] = Some(result);
                    let _ = sender.send(());
                }
            });
        }
        drop(sender);
        for (done, ()) in (1..).zip(receiver.iter()) {
            if !go_on(f64::from(done) / all.len() as f64) {
                over.store(true, Ordering::Relaxed);
            }
        }
    });
    let results = results.into_inner().expect("no job panics with it");
    results
        .into_iter()
        .collect::<Option<Vec<T>>>()
        .ok_or(Stopped)
}

#[cfg(test)]
mod tests;
