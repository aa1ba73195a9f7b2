//! How long are the tasks of a Tokio runtime busy, idle and queued, and when have its workers nothing
//! to do?
//!
//! ```
//! let mut builder = tokio::runtime::Builder::new_current_thread();
//! let runtime = undertick_tokio::hooks(&mut builder).build().unwrap();
//! runtime.block_on(async {
//!     let request = undertick_tokio::spawn!("request", async { 6 * 7 });
//!     assert_eq!(request.await.unwrap(), 42);
//! });
//! ```
//!
//! Run the program under `undertick record -o run.ut -- PROGRAM`, then run `undertick tasks run.ut`.
//!
//! Method: [`spawn!`] wraps a future in [`undertick::task_span!`]: creation, polls, wakes with the task or
//! thread that woke it, and end. [`hooks`] uses the callbacks of the runtime: a span `tokio parked` of each
//! worker thread while it has nothing to do. Built with `--cfg tokio_unstable`, the runtime also calls back for
//! tasks, and each task that it spawns is recorded under the place that spawned it, such as
//! `src/server.rs:42`.
//!
//! Caveats: a runtime has one callback of each kind, so those that the program sets later replace
//! these. Of tasks recorded by callbacks, wakes are not known: a task is idle until its next poll. One that is
//! aborted is dropped in a last poll, and counts as done. A task that
//! both records is in both names. Callbacks do not see the tasks of a `LocalSet`.

#[cfg(tokio_unstable)]
mod spawned;

use tokio::runtime::Builder;

/// Spawns a future as a task of that name: `spawn!("request", future)` is
/// `tokio::spawn(undertick::task_span!("request", future))`.
#[macro_export]
macro_rules! spawn {
    ($name:literal, $future:expr) => {
        $crate::__private::spawn($crate::__private::task_span!($name, $future))
    };
}

#[doc(hidden)]
pub mod __private {
    pub use tokio::spawn;
    pub use undertick::task_span;
}

/// Sets the callbacks of a runtime that is to be built, and returns its builder.
///
/// They replace callbacks that were set before.
pub fn hooks(builder: &mut Builder) -> &mut Builder {
    builder
        .on_thread_park(|| undertick::begin(parked()))
        .on_thread_unpark(|| undertick::end(parked()));
    #[cfg(tokio_unstable)]
    spawned::hooks(builder);
    builder
}

/// The event of the spans in which a worker has nothing to do.
fn parked() -> u16 {
    undertick::number_of!("tokio parked")
}
