//! Invented tasks.

use undertick_document::{
    IntervalReport, TaskLife, TaskPolled, TaskReport, TaskState, TaskTimes, TaskWaker, Tasks,
};

fn times(total_ns: f64, n: u64) -> TaskTimes {
    let each = (n > 0).then(|| total_ns / n as f64);
    TaskTimes {
        total_ns,
        n,
        median_ns: each,
        p99_ns: each.map(|ns| ns * 1.5),
        max_ns: each.map(|ns| ns * 2.0),
    }
}

/// Tasks of the report with six intervals.
pub(super) fn tasks(intervals: &[IntervalReport]) -> Option<Tasks> {
    (intervals.len() == 6).then(|| Tasks {
        lost: 2,
        names_left_out: 0,
        rows: vec![
            TaskReport {
                name: "<b>request".to_owned(),
                tasks: 20,
                done: 17,
                cancelled: 1,
                live: 2,
                begun_before: 1,
                polls: 60,
                moved: 20,
                wakes: 39,
                unwoken_polls: 1,
                lifetime: times(9e7, 17),
                busy: Some(times(2e7, 17)),
                idle: Some(times(4e7, 17)),
                queued: Some(times(3e7, 17)),
                poll: Some(times(2e7, 60)),
                queue: Some(times(3e7, 59)),
                wakers: vec![
                    TaskWaker {
                        task: Some("<script>alert(4)</script>".to_owned()),
                        thread: None,
                        wakes: 30,
                    },
                    TaskWaker {
                        task: None,
                        thread: Some("<i>driver".to_owned()),
                        wakes: 9,
                    },
                ],
                longest: vec![TaskLife {
                    number: 12,
                    pid: 4711,
                    start_ns: 5e5,
                    lifetime_ns: 9e6,
                    busy_ns: Some(2e6),
                    idle_ns: Some(4e6),
                    queued_ns: Some(3e6),
                    longest_queue_ns: Some(2.9e6),
                    queued_behind: vec![TaskPolled {
                        task: "<b>scan".to_owned(),
                        polled_ns: 2.8e6,
                        longest_ns: 2.5e6,
                    }],
                    longest_idle_ns: Some(3e6),
                    woken_by: Some(TaskWaker {
                        task: None,
                        thread: Some("<i>timer".to_owned()),
                        wakes: 1,
                    }),
                    polls: 4,
                    state: TaskState::Done,
                }],
                ..TaskReport::default()
            },
            TaskReport {
                name: "goroutine".to_owned(),
                tasks: 5,
                done: 5,
                lifetime: times(1e6, 5),
                ..TaskReport::default()
            },
        ],
    })
}
