//! Work on several CPUs whose results are needed in order.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Most jobs in work at a time: bounds memory on a machine with many CPUs.
const MOST_WORKERS: usize = 8;

/// A job, and where its result goes.
type Order<J, R, E> = (J, SyncSender<Result<R, E>>);

/// Passes jobs through `work` on as many CPUs as this process may use, and their results to `take`,
/// on this thread, in the order of the jobs. Another thread makes the jobs. At most two jobs for
/// each worker, and two more, have a result that was not taken: this bounds memory.
///
/// # Errors
/// The first error of a job, of `work` or of `take`; nothing is taken after it.
pub(super) fn in_order<J: Send, R: Send, E: Send>(
    jobs: impl Iterator<Item = Result<J, E>> + Send,
    work: impl Fn(J) -> Result<R, E> + Sync,
    mut take: impl FnMut(R) -> Result<(), E>,
) -> Result<(), E> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = cpus.min(MOST_WORKERS);
    let (orders, queue) = sync_channel::<Order<J, R, E>>(workers);
    let (promises, results) = sync_channel::<Receiver<Result<R, E>>>(2 * workers);
    let work = &work;
    std::thread::scope(|scope| {
        // Only the workers have it: if all of them panic, no job waits for one.
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..workers {
            let queue = Arc::clone(&queue);
            scope.spawn(move || {
                loop {
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((job, result)) = next else {
                        return;
                    };
                    // After an error nobody receives it.
                    let _ = result.send(work(job));
                }
            });
        }
        drop(queue);
        scope.spawn(move || {
            for job in jobs {
                let (result, promise) = sync_channel(1);
                if promises.send(promise).is_err() {
                    return;
                }
                match job {
                    Ok(job) => {
                        if orders.send((job, result)).is_err() {
                            return;
                        }
                    }
                    Err(error) => {
                        let _ = result.send(Err(error));
                        return;
                    }
                }
            }
        });
        for promise in results {
            // A worker that panicked sends nothing; the scope passes the panic on.
            let Ok(result) = promise.recv() else {
                break;
            };
            take(result?)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests;
