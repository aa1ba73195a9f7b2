//! Futures with a `tracing` span that are recorded as tasks.

use std::cell::Cell;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use tracing::span::Entered;
use tracing::{Id, Span};
use undertick::{TaskName, TaskSpan};

thread_local! {
    /// The id of the span whose poll is being recorded by its task; 0: none.
    static POLLED: Cell<u64> = const { Cell::new(0) };
}

/// Whether a task records that this span is entered and left.
pub(crate) fn is_polled(id: &Id) -> bool {
    POLLED.try_with(Cell::get) == Ok(id.into_u64())
}

/// Attaches a `tracing` span to a future, as `tracing::Instrument` does, and records the future as a task
/// of the span's name: its polls, what woke it, and its end (`undertick tasks`). The span is not entered while the
/// future is dropped. Functions with the attribute `#[tracing::instrument]` use that of `tracing`.
///
/// ```
/// use undertick_tracing::Instrument as _;
///
/// async fn serve() {}
/// let request = serve().instrument(tracing::info_span!("request"));
/// # drop(request);
/// ```
pub trait Instrument: Future + Sized {
    /// Returns the future with the span, which is entered for each poll.
    fn instrument(self, span: Span) -> Instrumented<Self> {
        let name = span.metadata().map(|metadata| task_name(metadata.name()));
        Instrumented {
            task: match name {
                Some(name) => undertick::task_span(name, self),
                // A span that no layer wants.
                None => TaskSpan::unrecorded(self),
            },
            span,
        }
    }
}

impl<F: Future> Instrument for F {}

/// A future with a `tracing` span, which is recorded as a task; made by [`Instrument::instrument`].
#[derive(Debug)]
#[must_use = "futures do nothing unless they are polled"]
pub struct Instrumented<F> {
    task: TaskSpan<F>,
    span: Span,
}

impl<F: Future> Future for Instrumented<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: the task is never moved, and the span need not be pinned.
        let (task, span) = unsafe {
            let this = self.get_unchecked_mut();
            (Pin::new_unchecked(&mut this.task), &this.span)
        };
        let _entered = EnteredByTask::new(span);
        task.poll(context)
    }
}

/// A span that is entered while this lives, without a record of that.
struct EnteredByTask<'a> {
    id: u64,
    entered: Option<Entered<'a>>,
}

impl<'a> EnteredByTask<'a> {
    fn new(span: &'a Span) -> Self {
        let id = span.id().map_or(0, |id| id.into_u64());
        let _by_task = ByTask::new(id);
        Self {
            id,
            entered: Some(span.enter()),
        }
    }
}

impl Drop for EnteredByTask<'_> {
    fn drop(&mut self) {
        let _by_task = ByTask::new(self.id);
        self.entered = None;
    }
}

/// While it lives, a span is entered and left without a record.
struct ByTask {
    before: u64,
}

impl ByTask {
    fn new(id: u64) -> Self {
        Self {
            before: POLLED.with(|polled| polled.replace(id)),
        }
    }
}

impl Drop for ByTask {
    fn drop(&mut self) {
        POLLED.with(|polled| polled.set(self.before));
    }
}

/// The tasks of a name: one for the whole program, because a callsite's name is in its text.
fn task_name(name: &'static str) -> &'static TaskName {
    static KNOWN: Mutex<Option<HashMap<&'static str, &'static TaskName>>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_with(HashMap::new);
    known
        .entry(name)
        .or_insert_with(|| Box::leak(Box::new(TaskName::new(name))))
}
