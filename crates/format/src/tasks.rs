//! Events of tasks, which are known by their names: `docs/format.md`, section 14.

/// What an event says of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskEvent {
    /// It was created.
    New,
    /// The span that its thread begins next is a poll of it.
    Polled,
    /// It was woken: it is to be polled again.
    Woken,
    /// It ended.
    Done,
    /// It was dropped before it had ended.
    Cancelled,
}

impl TaskEvent {
    /// All of them, in the order in which a task passes through them.
    pub const ALL: [Self; 5] = [
        Self::New,
        Self::Polled,
        Self::Woken,
        Self::Done,
        Self::Cancelled,
    ];

    /// The end of the names of these events; the name of the task comes before it.
    #[must_use]
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::New => " task new",
            Self::Polled => " task polled",
            Self::Woken => " task woken",
            Self::Done => " task done",
            Self::Cancelled => " task cancelled",
        }
    }

    /// Splits the name of an event of tasks into the name of the tasks and what it says; `None` for the
    /// names of other events.
    ///
    /// ```
    /// use undertick_format::tasks::TaskEvent;
    ///
    /// assert_eq!(TaskEvent::split("accept task woken"), Some(("accept", TaskEvent::Woken)));
    /// assert_eq!(TaskEvent::split("accept"), None);
    /// ```
    #[must_use]
    pub fn split(name: &str) -> Option<(&str, Self)> {
        let found = |event: Self| Some((name.strip_suffix(event.suffix())?, event));
        (Self::ALL.into_iter().find_map(found)).filter(|(task, _)| !task.is_empty())
    }
}
