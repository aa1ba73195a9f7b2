//! Tasks, for the terminal; the columns are those of the page, too.

use std::fmt::Write as _;

use undertick_document::{TaskLife, TaskReport, TaskState, TaskTimes, TaskWaker, Tasks, figures};

use crate::table::terminal::draw;
use crate::table::{Cell, Columns};
use crate::text::{clean, shorten, wrap};

/// Most rows on a terminal.
const MOST_ROWS: usize = 25;
/// Columns of a name.
const NAME_COLUMNS: usize = 30;
/// Most lives of which a sentence says what they waited for.
const MOST_EXPLAINED: usize = 3;
/// Most wakers in a sentence.
const MOST_WAKERS: usize = 3;

/// The tasks by name, a line each; with a name, that one's tasks in detail.
#[must_use]
pub fn tasks(tasks: &Tasks, name: Option<&str>, width: usize) -> String {
    if let Some(row) = name.and_then(|name| tasks.rows.iter().find(|row| row.name == name)) {
        return of_name(row, width);
    }
    let mut text = wrap(&summary(tasks), width, 0) + "\n";
    let shown = tasks.rows.iter().take(MOST_ROWS);
    let _ = writeln!(text, "\n{}", draw(&columns(), shown, width));
    match tasks.rows.len().saturating_sub(MOST_ROWS) {
        0 => {}
        1 => text.push_str("1 more name: see --json\n"),
        n => {
            let _ = writeln!(text, "{n} more names: see --json");
        }
    }
    text
}

/// The tasks of one name.
fn of_name(row: &TaskReport, width: usize) -> String {
    let mut text = wrap(&about(row), width, 0) + "\n";
    let parts = parts(row);
    let _ = writeln!(text, "\n{}", draw(&part_columns(), parts.iter(), width));
    if !row.longest.is_empty() {
        let longest = draw(&life_columns(), row.longest.iter(), width);
        let _ = writeln!(text, "The longest lives:\n\n{longest}");
    }
    for life in row.longest.iter().take(MOST_EXPLAINED) {
        if let Some(why) = why(life) {
            let _ = writeln!(text, "{}", wrap(&why, width, 2));
        }
    }
    text
}

/// What one task waited for longest: as idle, and as queued.
fn why(life: &TaskLife) -> Option<String> {
    let mut text = format!("{}:", life.number);
    let idle = life.longest_idle_ns.filter(|ns| *ns > 0.0);
    if let Some(idle) = idle {
        let _ = write!(text, " idle for {} at a time", figures::duration(idle));
        match &life.woken_by {
            Some(by) => {
                let _ = write!(text, ", until {} woke it", waker_name(by));
            }
            None => text.push_str(", and no wake is recorded"),
        }
    }
    let queued = life.longest_queue_ns.filter(|ns| *ns > 0.0);
    if let Some(queued) = queued {
        let and = if idle.is_some() { ";" } else { "" };
        let _ = write!(text, "{and} queued for {}", figures::duration(queued));
        if let Some(most) = life.queued_behind.first() {
            let _ = write!(
                text,
                " while threads polled tasks {} for {} (longest poll {})",
                clean(&most.task),
                figures::duration(most.polled_ns),
                figures::duration(most.longest_ns)
            );
        }
    }
    text.push('.');
    (idle.is_some() || queued.is_some()).then_some(text)
}

/// What there was, in a sentence or two.
pub(crate) fn summary(tasks: &Tasks) -> String {
    let sum = |of: fn(&TaskReport) -> u64| (tasks.rows.iter().map(of)).fold(0, u64::saturating_add);
    let mut text = plural(sum(|row| row.tasks), "task");
    let live = sum(|row| row.live);
    if live > 0 {
        let _ = write!(
            text,
            ", of which {} still lived at the end",
            figures::count(live)
        );
    }
    let _ = write!(text, "; {}.", plural(sum(|row| row.polls), "poll"));
    match tasks.lost {
        0 => {}
        1 => text.push_str(" 1 record was lost, so a poll or a wake may be missing."),
        n => {
            let n = figures::count(n);
            let _ = write!(
                text,
                " {n} records were lost, so polls and wakes may be missing."
            );
        }
    }
    if tasks.names_left_out > 0 {
        let more = plural(tasks.names_left_out, "further name");
        let _ = write!(text, " Not counted: {more}.");
    }
    text
}

/// How the tasks of a name ended and what woke them.
fn about(row: &TaskReport) -> String {
    let mut text = format!("{}: {}", clean(&row.name), plural(row.tasks, "task"));
    let states = [
        (row.done, "done"),
        (row.cancelled, "cancelled"),
        (row.live, "still live at the end"),
        (row.end_unknown, "whose end is not recorded"),
        (row.begun_before, "created before the recording"),
    ];
    for (n, state) in states {
        if n > 0 {
            let _ = write!(text, ", {} {state}", figures::count(n));
        }
    }
    if row.polls > 0 {
        let _ = write!(text, "; {}", plural(row.polls, "poll"));
        if row.moved > 0 {
            let _ = write!(text, ", {} on another thread", figures::count(row.moved));
        }
    }
    text.push('.');
    if !row.wakers.is_empty() {
        let shown: Vec<String> = (row.wakers.iter().take(MOST_WAKERS))
            .map(|by| waker(by, row.wakes))
            .collect();
        let _ = write!(text, " Woken by {}", shown.join(", "));
        if row.wakers.len() > MOST_WAKERS {
            text.push_str(", and others");
        }
        text.push('.');
    }
    if row.unwoken_polls > 0 {
        let polls = plural(row.unwoken_polls, "poll");
        let _ = write!(text, " {polls} had no recorded wake before.");
    }
    text
}

fn waker_name(by: &TaskWaker) -> String {
    match (&by.task, &by.thread) {
        (Some(task), _) => format!("task {}", clean(task)),
        (None, Some(thread)) => clean(thread),
        (None, None) => "a thread".to_owned(),
    }
}

fn waker(by: &TaskWaker, all: u64) -> String {
    format!(
        "{} ({})",
        waker_name(by),
        figures::per_cent(by.wakes as f64 / all.max(1) as f64)
    )
}

fn plural(n: u64, one: &str) -> String {
    match n {
        1 => format!("1 {one}"),
        n => format!("{} {one}s", figures::count(n)),
    }
}

fn time(ns: Option<f64>) -> Cell<'static> {
    ns.map_or(Cell::Nothing, Cell::Duration)
}

/// A share of the lifetime.
fn share(row: &TaskReport, part: Option<&TaskTimes>) -> Cell<'static> {
    match part {
        Some(part) if row.lifetime.total_ns > 0.0 => {
            Cell::share(part.total_ns / row.lifetime.total_ns)
        }
        _ => Cell::Nothing,
    }
}

/// All columns of the table by name.
pub(crate) fn columns<'a>() -> Columns<'a, &'a TaskReport> {
    let p99 = |times: &Option<TaskTimes>| time(times.as_ref().and_then(|of| of.p99_ns));
    lives(NAME_COLUMNS)
        .column("p99\nlife", |row| time(row.lifetime.p99_ns))
        .column("polls", |row| Cell::Count(row.polls))
        .column("p99\npoll", move |row| p99(&row.poll))
        .column("p99\nqueue", move |row| p99(&row.queue))
}

/// The first columns of that table; a name takes at most `name_columns`.
pub(crate) fn lives<'a>(name_columns: usize) -> Columns<'a, &'a TaskReport> {
    Columns::new()
        .column("task", move |row: &TaskReport| {
            Cell::text(shorten(&clean(&row.name), name_columns))
        })
        .words()
        .column("tasks", |row| Cell::Count(row.tasks))
        .column("median\nlife", |row| time(row.lifetime.median_ns))
        .column("busy", |row| share(row, row.busy.as_ref()))
        .column("idle", |row| share(row, row.idle.as_ref()))
        .column("queued", |row| share(row, row.queued.as_ref()))
}

/// A row of the parts of a lifetime.
struct Part<'a> {
    name: &'static str,
    times: &'a TaskTimes,
    share: Option<f64>,
}

fn parts<'a>(row: &'a TaskReport) -> Vec<Part<'a>> {
    let whole = row.lifetime.total_ns;
    let named = [
        ("lifetime", Some(&row.lifetime)),
        ("busy", row.busy.as_ref()),
        ("idle", row.idle.as_ref()),
        ("queued", row.queued.as_ref()),
        ("one poll", row.poll.as_ref()),
        ("one wait in the queue", row.queue.as_ref()),
    ];
    let part = |(at, (name, times)): (usize, (&'static str, Option<&'a TaskTimes>))| {
        let times = times?;
        let share = ((1..=3).contains(&at) && whole > 0.0).then(|| times.total_ns / whole);
        Some(Part { name, times, share })
    };
    named.into_iter().enumerate().filter_map(part).collect()
}

fn part_columns<'a>() -> Columns<'a, &'a Part<'a>> {
    Columns::new()
        .column("", |part: &Part<'_>| Cell::text(part.name.to_owned()))
        .words()
        .column("total", |part| Cell::Duration(part.times.total_ns))
        .column("share", |part| {
            part.share.map_or(Cell::Nothing, Cell::share)
        })
        .column("n", |part| Cell::Count(part.times.n))
        .column("median", |part| time(part.times.median_ns))
        .column("p99", |part| time(part.times.p99_ns))
        .column("max", |part| time(part.times.max_ns))
}

pub(crate) fn life_columns<'a>() -> Columns<'a, &'a TaskLife> {
    Columns::new()
        .column("number", |life: &TaskLife| {
            Cell::Figure(life.number.to_string())
        })
        .column("created\nafter", |life| Cell::Duration(life.start_ns))
        .column("life", |life| Cell::Duration(life.lifetime_ns))
        .column("busy", |life| time(life.busy_ns))
        .column("idle", |life| time(life.idle_ns))
        .column("queued", |life| time(life.queued_ns))
        .column("longest\nqueue", |life| time(life.longest_queue_ns))
        .column("polls", |life| Cell::Count(life.polls))
        .column("end", |life| {
            let state = match life.state {
                TaskState::Done => "done",
                TaskState::Cancelled => "cancelled",
                TaskState::Live => "live",
                TaskState::Unknown => "?",
            };
            Cell::text(state.to_owned())
        })
        .words()
}

#[cfg(test)]
mod tests;
