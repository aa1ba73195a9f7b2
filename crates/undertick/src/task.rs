//! Tasks: futures whose polls, wakes and lives are recorded.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::task::{Context, Poll, Waker};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::{Arc, OnceLock};
use std::task::Wake;

use crate::{Span, enabled, event, number};

/// The events of tasks of one name; a `static` holds them, as [`task_span!`](crate::task_span!) does.
pub struct TaskName {
    name: &'static str,
    events: OnceLock<TaskEvents>,
}

/// Event numbers (`docs/format.md`, section 14).
#[derive(Clone, Copy)]
struct TaskEvents {
    poll: u16,
    new: u16,
    polled: u16,
    woken: u16,
    done: u16,
    cancelled: u16,
}

impl TaskName {
    /// Returns a name of tasks. Its six event numbers are requested at the first use.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            events: OnceLock::new(),
        }
    }

    fn events(&self) -> TaskEvents {
        *self.events.get_or_init(|| {
            let begin = &self.name[..cut(self.name)];
            let of = |end: &str| number(&format!("{begin}{end}"));
            TaskEvents {
                poll: of(""),
                new: of(" task new"),
                polled: of(" task polled"),
                woken: of(" task woken"),
                done: of(" task done"),
                cancelled: of(" task cancelled"),
            }
        })
    }

    /// Returns a future that records the life of `future`: see [`task_span()`].
    pub fn span<F: Future>(&'static self, future: F) -> TaskSpan<F> {
        let task = enabled().then(|| Task::new(self));
        TaskSpan {
            name: Some(self),
            future,
            task,
        }
    }
}

impl<F> TaskSpan<F> {
    /// Returns a future of the same type that records nothing, for code that decides at run time.
    pub fn unrecorded(future: F) -> Self {
        Self {
            name: None,
            future,
            task: None,
        }
    }
}

/// How many bytes of a name are used: names are cut at 255, and the ends must stay.
fn cut(name: &str) -> usize {
    const LONGEST: usize = 239;
    (0..=LONGEST.min(name.len()))
        .rev()
        .find(|&at| name.is_char_boundary(at))
        .unwrap_or(0)
}

impl fmt::Debug for TaskName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TaskName").field(&self.name).finish()
    }
}

/// Returns a future that records what becomes of `future`, as one task: its creation (now), each poll (a
/// span of the polling thread, in which other spans may lie), who woke it, and its end or that it was
/// dropped before. `undertick tasks` shows how long tasks were busy, idle and queued.
///
/// ```
/// # fn spawn(_: impl core::future::Future) {}
/// # async fn serve() {}
/// static REQUEST: undertick::TaskName = undertick::TaskName::new("request");
/// spawn(undertick::task_span(&REQUEST, serve()));
/// spawn(undertick::task_span!("request", serve())); // the same
/// ```
///
/// A poll costs three events, a wake one; a task allocates at its first poll, and again only if it moves to
/// another executor or task. While nothing is recorded, a poll costs a branch.
pub fn task_span<F: Future>(name: &'static TaskName, future: F) -> TaskSpan<F> {
    name.span(future)
}

/// A future whose life is recorded; made by [`task_span()`].
#[must_use = "futures do nothing unless they are polled"]
pub struct TaskSpan<F> {
    /// `None`: nothing is recorded.
    name: Option<&'static TaskName>,
    future: F,
    /// `None`: nothing has been recorded, or the future has ended.
    task: Option<Task>,
}

/// A task that lives.
struct Task {
    events: TaskEvents,
    number: u32,
    waker: Option<(Arc<TaskWaker>, Waker)>,
}

impl Task {
    fn new(name: &'static TaskName) -> Self {
        let task = Self::begun_before(name);
        event(task.events.new, task.number);
        task
    }

    /// A task whose creation was not recorded.
    fn begun_before(name: &'static TaskName) -> Self {
        Self {
            events: name.events(),
            number: next_number(),
            waker: None,
        }
    }

    /// Returns a waker that records wakes and passes them on.
    fn waker(&mut self, inner: &Waker) -> &Waker {
        match &self.waker {
            // A wake from now on is for the next poll.
            Some((known, _)) if known.inner.will_wake(inner) => {
                known.is_woken.store(false, Ordering::Release);
            }
            _ => {
                let waker = Arc::new(TaskWaker {
                    inner: inner.clone(),
                    event: self.events.woken,
                    number: self.number,
                    is_woken: AtomicBool::new(false),
                });
                self.waker = Some((Arc::clone(&waker), Waker::from(waker)));
            }
        }
        &self.waker.as_ref().expect("was just made").1
    }
}

/// Returns a number that no other task of the process is likely to have: a library may have another copy of
/// this crate, so they begin at random.
fn next_number() -> u32 {
    static FIRST: OnceLock<u32> = OnceLock::new();
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let first = *FIRST.get_or_init(|| RandomState::new().build_hasher().finish() as u32);
    first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Records the first wake since the last poll began, and passes all on.
struct TaskWaker {
    inner: Waker,
    event: u16,
    number: u32,
    is_woken: AtomicBool,
}

impl TaskWaker {
    fn record(&self) {
        // Before the task is woken: another thread may poll it at once.
        if !self.is_woken.swap(true, Ordering::AcqRel) {
            event(self.event, self.number);
        }
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.record();
        match Arc::try_unwrap(self) {
            Ok(last) => last.inner.wake(),
            Err(shared) => shared.inner.wake_by_ref(),
        }
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.record();
        self.inner.wake_by_ref();
    }
}

impl<F: Future> Future for TaskSpan<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: the future is never moved, and the rest need not be pinned.
        let (name, future, task) = unsafe {
            let this = self.get_unchecked_mut();
            let future = Pin::new_unchecked(&mut this.future);
            (&mut this.name, future, &mut this.task)
        };
        if task.is_none() {
            // A recorder may have attached after the task was created.
            *task = name.filter(|_| enabled()).map(Task::begun_before);
        }
        let Some(known) = task.as_mut() else {
            return future.poll(context);
        };
        let (events, number) = (known.events, known.number);
        let mut context = Context::from_waker(known.waker(context.waker()));
        event(events.polled, number);
        let span = Span::new(events.poll);
        let result = future.poll(&mut context);
        drop(span);
        if result.is_ready() {
            event(events.done, number);
            // Some futures may be polled again: that is no task.
            (*name, *task) = (None, None);
        }
        result
    }
}

impl<F> Drop for TaskSpan<F> {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            event(task.events.cancelled, task.number);
        }
    }
}

impl<F: fmt::Debug> fmt::Debug for TaskSpan<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("TaskSpan");
        text.field("name", &self.name).field("future", &self.future);
        text.finish_non_exhaustive()
    }
}

/// `task_span!("request", future)`: a future that is recorded as a task of that name; see
/// [`task_span()`].
#[macro_export]
macro_rules! task_span {
    ($name:literal, $future:expr) => {{
        static NAME: $crate::TaskName = $crate::TaskName::new($name);
        $crate::task_span(&NAME, $future)
    }};
}
