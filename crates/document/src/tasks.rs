//! Tasks: futures, coroutines and other work that is polled, by name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tasks of this recording (`task_span` and its kin). All figures are a census; durations are as read,
/// the cost of recording included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tasks {
    /// Records of programs that were lost; if there are any, polls or wakes may be missing.
    pub lost: u64,
    /// Names of tasks beyond the 4096 that are reported.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub names_left_out: u64,
    /// A row for each name, the longest total lifetime first.
    pub rows: Vec<TaskReport>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Tasks of one name. Lifetimes are exactly busy, idle and queued time together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskReport {
    /// The name.
    pub name: String,
    /// Tasks that lived during the recording.
    pub tasks: u64,
    /// Of these, the tasks that ended.
    pub done: u64,
    /// Those that were dropped before they had ended.
    pub cancelled: u64,
    /// Those that still lived when the recording ended; their times count until then.
    pub live: u64,
    /// Those that were created before the recording began; their times count from their first record.
    pub begun_before: u64,
    /// Those of which another task has taken the number, so the record of their end is missing.
    pub end_unknown: u64,
    /// Polls: times that a thread worked on one of them.
    pub polls: u64,
    /// Polls by another thread than the poll before.
    pub moved: u64,
    /// Wakes of tasks that had not been woken since their last poll.
    pub wakes: u64,
    /// Polls without a recorded wake before them. The time before counts as idle.
    pub unwoken_polls: u64,
    /// From creation to end.
    pub lifetime: TaskTimes,
    /// Being polled; `null` where programs record no polls, as the next two.
    pub busy: Option<TaskTimes>,
    /// Neither being polled nor woken: waiting.
    pub idle: Option<TaskTimes>,
    /// Created or woken, but not being polled yet.
    pub queued: Option<TaskTimes>,
    /// Single polls.
    pub poll: Option<TaskTimes>,
    /// Single times between being created or woken, and the next poll.
    pub queue: Option<TaskTimes>,
    /// What woke them, the most frequent first, at most 16.
    pub wakers: Vec<TaskWaker>,
    /// The tasks that lived longest, the longest first, at most 10.
    pub longest: Vec<TaskLife>,
}

/// Distribution of durations, ns. Quantiles and the largest are those of tasks that were created and
/// ended during the recording, or of single polls or waits; the total is of all tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskTimes {
    /// Sum, ns.
    pub total_ns: f64,
    /// Durations of which the figures below are.
    pub n: u64,
    /// Median, ns (to 0.1 %); `null` without durations, as the next two.
    pub median_ns: Option<f64>,
    /// 99 % quantile, ns (to 0.1 %).
    pub p99_ns: Option<f64>,
    /// The largest, ns.
    pub max_ns: Option<f64>,
}

/// What woke tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskWaker {
    /// Name of the task that was being polled by the thread that woke them; `null` outside of tasks.
    pub task: Option<String>,
    /// Name of the thread, or its number where it has none; `null` where `task` says more.
    pub thread: Option<String>,
    /// Number of wakes.
    pub wakes: u64,
}

/// One task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskLife {
    /// Its number, unique while it lives.
    pub number: u64,
    /// Its process.
    pub pid: i32,
    /// Time of its creation, or of its first record, ns since the recording began.
    pub start_ns: f64,
    /// From creation to end, ns.
    pub lifetime_ns: f64,
    /// Being polled, ns; `null` where programs record no polls, as the next three.
    pub busy_ns: Option<f64>,
    /// Waiting, ns.
    pub idle_ns: Option<f64>,
    /// Created or woken, but not being polled, ns.
    pub queued_ns: Option<f64>,
    /// Longest time between being created or woken, and the next poll, ns.
    pub longest_queue_ns: Option<f64>,
    /// What threads polled in the longest of these times, that with most time first, at most 3; only of the
    /// 16 names with the longest total lifetime.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queued_behind: Vec<TaskPolled>,
    /// Longest time for which it was idle, ns; `null` where programs record no polls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_idle_ns: Option<f64>,
    /// What woke it then; absent where no wake is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub woken_by: Option<TaskWaker>,
    /// Polls of it.
    pub polls: u64,
    /// Its state when it ended or the recording did: `done`, `cancelled`, `live` or `unknown`.
    pub state: TaskState,
}

/// Polls of other tasks while a task was queued.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskPolled {
    /// Name of these tasks.
    pub task: String,
    /// Time of their polls within that time, of all threads together, ns.
    pub polled_ns: f64,
    /// The longest of these polls, from its begin to its end, ns.
    pub longest_ns: f64,
}

/// How the life of a task ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// It ended.
    Done,
    /// It was dropped before it had ended.
    Cancelled,
    /// It still lived when the recording ended.
    Live,
    /// The record of its end is missing.
    #[default]
    Unknown,
}

impl Tasks {
    /// Whether an event or an interval of that name is about tasks of one of these names.
    #[must_use]
    pub fn have_event(&self, name: &str) -> bool {
        let is_of = |row: &TaskReport| {
            (name.strip_prefix(row.name.as_str())).is_some_and(|end| end.starts_with(" task "))
        };
        self.rows.iter().any(is_of)
    }

    /// Removes what cannot be: rows whose parts are not their whole, or with impossible durations, and lives
    /// that begin before the recording.
    pub(crate) fn keep_possible(&mut self) {
        self.rows.retain(TaskReport::is_possible);
        for row in &mut self.rows {
            row.longest.retain(TaskLife::is_possible);
        }
    }
}

/// Relative error of sums of rounded figures.
const ROUNDING: f64 = 1e-9;

impl TaskReport {
    fn is_possible(&self) -> bool {
        let ends = [self.done, self.cancelled, self.live, self.end_unknown];
        let ended = ends.iter().copied().fold(0, u64::saturating_add);
        let parts = [&self.busy, &self.idle, &self.queued];
        let times = (parts.iter().copied().flatten())
            .chain([&self.lifetime])
            .chain(self.poll.iter().chain(&self.queue));
        let sum: f64 = (parts.iter().copied().flatten())
            .map(|of| of.total_ns)
            .sum();
        let is_whole = parts.iter().any(|of| of.is_none())
            || (sum - self.lifetime.total_ns).abs() <= ROUNDING * self.lifetime.total_ns + 1.0;
        ended == self.tasks
            && self.begun_before <= self.tasks
            && times.into_iter().all(TaskTimes::is_possible)
            && is_whole
    }
}

impl TaskTimes {
    fn is_possible(&self) -> bool {
        let rising = [Some(0.0), self.median_ns, self.p99_ns, self.max_ns];
        let mut below = 0.0;
        let is_rising = (rising.into_iter().flatten()).all(|ns| {
            let rises = ns.is_finite() && ns >= below * (1.0 - ROUNDING);
            below = ns;
            rises
        });
        is_rising && self.total_ns.is_finite() && self.total_ns >= 0.0
    }
}

impl TaskLife {
    fn is_possible(&self) -> bool {
        let parts = [self.busy_ns, self.idle_ns, self.queued_ns];
        let all = (parts.into_iter().flatten())
            .chain(self.longest_queue_ns)
            .chain(self.longest_idle_ns);
        let behind = (self.queued_behind.iter())
            .all(|of| of.polled_ns >= 0.0 && of.polled_ns.is_finite() && of.longest_ns.is_finite());
        self.start_ns.is_finite()
            && self.start_ns >= 0.0
            && self.lifetime_ns.is_finite()
            && behind
            && all
                .into_iter()
                .all(|ns| (0.0..=self.lifetime_ns * (1.0 + ROUNDING)).contains(&ns))
    }
}
