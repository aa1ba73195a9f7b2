use undertick_document::{TaskLife, TaskPolled, TaskReport, TaskTimes, TaskWaker, Tasks};

use super::*;

fn times(total_ns: f64) -> TaskTimes {
    TaskTimes {
        total_ns,
        n: 4,
        median_ns: Some(total_ns / 4.0),
        p99_ns: Some(total_ns / 4.0),
        max_ns: Some(total_ns / 4.0),
    }
}

fn polled() -> Tasks {
    Tasks {
        rows: vec![TaskReport {
            name: "request\u{1b}[2J".to_owned(),
            tasks: 4,
            done: 3,
            live: 1,
            polls: 9,
            wakes: 5,
            lifetime: times(4e6),
            busy: Some(times(1e6)),
            idle: Some(times(2e6)),
            queued: Some(times(1e6)),
            wakers: vec![
                TaskWaker {
                    task: Some("producer".to_owned()),
                    thread: None,
                    wakes: 4,
                },
                TaskWaker {
                    task: None,
                    thread: Some("timer".to_owned()),
                    wakes: 1,
                },
            ],
            ..TaskReport::default()
        }],
        ..Tasks::default()
    }
}

#[test]
fn a_line_for_each_name() {
    let text = tasks(&polled(), None, 100).replace('\u{a0}', " ");
    assert!(
        text.starts_with("4 tasks, of which 1 still lived at the end; 9 polls.\n"),
        "{text}"
    );
    let row = text
        .lines()
        .find(|line| line.contains("request"))
        .expect("a row");
    let cells: Vec<&str> = row.split_whitespace().collect();
    // Median and p99 of the lives, then shares of the lifetime.
    assert!(row.contains("25 %") && row.contains("50 %"), "{cells:?}");
    assert!(!text.contains('\u{1b}'), "{text:?}");
}

#[test]
fn a_name_in_detail() {
    let all = polled();
    let text = tasks(&all, Some(&all.rows[0].name), 200).replace('\u{a0}', " ");
    assert!(
        text.contains("3 done, 1 still live at the end; 9 polls"),
        "{text}"
    );
    assert!(
        text.contains("Woken by task producer (80 %), timer (20 %)."),
        "{text}"
    );
    assert!(!text.contains('\u{1b}'), "{text:?}");
    // What one of them waited for.
    let mut all = polled();
    all.rows[0].longest = vec![TaskLife {
        number: 12,
        lifetime_ns: 4e6,
        longest_idle_ns: Some(2e6),
        longest_queue_ns: Some(1e6),
        queued_behind: vec![TaskPolled {
            task: "scan".to_owned(),
            polled_ns: 9e5,
            longest_ns: 8e5,
        }],
        woken_by: Some(all.rows[0].wakers[0].clone()),
        ..TaskLife::default()
    }];
    let text = tasks(&all, Some(&all.rows[0].name), 200).replace('\u{a0}', " ");
    let why = "12: idle for 2.00 ms at a time, until task producer woke it; queued for 1.00 ms while \
               threads polled tasks scan for 900 us (longest poll 800 us).";
    assert!(text.contains(why), "{text}");
    // Nothing is known of polls.
    let row = TaskReport {
        name: "job".to_owned(),
        tasks: 1,
        done: 1,
        lifetime: times(1e3),
        ..TaskReport::default()
    };
    let all = Tasks {
        rows: vec![row],
        ..Tasks::default()
    };
    let text = tasks(&all, Some("job"), 100);
    assert!(text.starts_with("job: 1 task, 1 done.\n"), "{text}");
    assert!(!text.contains("busy"), "{text}");
}
