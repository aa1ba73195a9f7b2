//! What threads waited for and allocated, for the terminal; the columns are those of the page, too.

use std::fmt::Write as _;

use undertick_document::explanation::CallWait;
use undertick_document::{
    Allocations, Lock, LockKind, LockWaits, Locks, PathAllocations, Report, figures,
};

use crate::stacks::{OPEN, OUTSIDE};
use crate::table::terminal::draw;
use crate::table::{Cell, Columns};
use crate::text::{clean, shorten, wrap};

/// Most rows on a terminal.
const MOST_ROWS: usize = 25;
/// Columns of the name of a span.
const NAME_COLUMNS: usize = 30;

/// What something that threads wait for is called.
pub(crate) fn lock(lock: &Lock) -> String {
    let kind = match lock.kind {
        LockKind::Mutex => "mutex",
        LockKind::RwLockToRead => "rwlock (read)",
        LockKind::RwLockToWrite => "rwlock (write)",
        LockKind::Condition => "condition",
        LockKind::Semaphore => "semaphore",
    };
    let name = lock.name.as_ref().unwrap_or(&lock.address);
    format!("{kind} {}", shorten(&clean(name), NAME_COLUMNS))
}

/// Whether a thread holds it; conditions and semaphores are signalled and posted.
const fn is_held(kind: LockKind) -> bool {
    matches!(
        kind,
        LockKind::Mutex | LockKind::RwLockToRead | LockKind::RwLockToWrite
    )
}

/// What a slow call waited for, in words.
pub(crate) fn wait_text(wait: &CallWait) -> String {
    let mut text = format!(
        "waited {} for {}",
        figures::duration(wait.waited_ns),
        lock(&wait.lock)
    );
    if wait.n > 1 {
        let _ = write!(text, " ({} times)", figures::count(wait.n));
    }
    if let Some(by) = &wait.by {
        let verb = match wait.lock.kind {
            LockKind::Condition => "signalled",
            LockKind::Semaphore => "posted",
            _ => "held",
        };
        let _ = write!(text, ", {verb} by {}", clean(by));
        if !wait.by_in.is_empty() {
            let _ = write!(text, " in {}", clean(&wait.by_in.join("/")));
        }
    }
    text
}

/// The waits by lock, waiting span and holder, a line each; those of a path and the spans inside it, or
/// all.
#[must_use]
pub fn locks(report: &Report, locks: &Locks, path: Option<usize>, width: usize) -> String {
    let mut text = wrap(&locks_summary(locks), width, 0) + "\n";
    let rows: Vec<&LockWaits> = (locks.rows.iter())
        .filter(|row| path.is_none_or(|path| report.is_inside((row.path, &row.still_open), path)))
        .collect();
    if let Some(path) = path {
        let waits: u64 = rows.iter().map(|row| row.n).sum();
        let line = format!(
            "{}, with the spans inside it: {}, {}.",
            clean(&report.path_name(path)),
            plural(waits, "wait"),
            figures::duration(rows.iter().map(|row| row.waited_ns).sum())
        );
        let _ = writeln!(text, "{}", wrap(&line, width, 0));
    }
    if rows.is_empty() {
        return text;
    }
    let shown = rows.iter().copied().take(MOST_ROWS);
    let _ = writeln!(text, "\n{}", draw(&lock_columns(report), shown, width));
    left_out(&mut text, rows.len());
    text
}

/// The allocations by path, a line each; those of a path and the spans inside it, or all.
#[must_use]
pub fn allocations(
    report: &Report,
    found: &Allocations,
    path: Option<usize>,
    width: usize,
) -> String {
    let mut text = wrap(&allocations_summary(found), width, 0) + "\n";
    if let Some(path) = path {
        let inside = found.inside(report, path);
        let line = format!(
            "{}, with the spans inside it: {}.",
            clean(&report.path_name(path)),
            counted(&inside)
        );
        let _ = writeln!(text, "{}", wrap(&line, width, 0));
    }
    let rows: Vec<&PathAllocations> = (found.paths.iter())
        .filter(|of| path.is_none_or(|path| report.is_inside((of.path, &of.still_open), path)))
        .collect();
    if rows.is_empty() {
        return text;
    }
    let shown = rows.iter().copied().take(MOST_ROWS);
    let columns = allocation_columns(report, found);
    let _ = writeln!(text, "\n{}", draw(&columns, shown, width));
    left_out(&mut text, rows.len());
    text
}

fn left_out(text: &mut String, rows: usize) {
    match rows.saturating_sub(MOST_ROWS) {
        0 => {}
        1 => text.push_str("1 more row: see --json\n"),
        n => {
            let _ = writeln!(text, "{n} more rows: see --json");
        }
    }
}

pub(crate) fn locks_summary(locks: &Locks) -> String {
    let mut text = match locks.waits {
        0 => "No thread waited for a lock, a condition or a semaphore of the C library.".to_owned(),
        1 => format!(
            "1 wait for a lock, a condition or a semaphore: {}.",
            figures::duration(locks.waited_ns)
        ),
        n => format!(
            "{} waits for locks, conditions and semaphores, {} in total.",
            figures::count(n),
            figures::duration(locks.waited_ns)
        ),
    };
    match locks.still_waiting {
        0 => {}
        1 if locks.waits == 1 => text.push_str(" It had not ended when the recording did."),
        1 => text.push_str(" 1 of them had not ended when the recording did."),
        n => {
            let _ = write!(text, " {n} of them had not ended when the recording did.");
        }
    }
    lost(&mut text, locks.lost, "waits");
    text
}

pub(crate) fn allocations_summary(found: &Allocations) -> String {
    let all = PathAllocations {
        calls: found.calls,
        bytes: found.bytes,
        frees: found.frees,
        ..PathAllocations::default()
    };
    let mut text = format!("{}.", counted(&all));
    if found.unplaced_calls > 0 {
        let _ = write!(
            text,
            " {} allocations belong to no known span.",
            figures::count(found.unplaced_calls)
        );
    }
    lost(&mut text, found.lost, "calls");
    text
}

fn lost(text: &mut String, lost: u64, what: &str) {
    match lost {
        0 => {}
        1 => {
            let _ = write!(text, " 1 record was lost, so some {what} may be missing.");
        }
        n => {
            let n = figures::count(n);
            let _ = write!(
                text,
                " {n} records were lost, so some {what} may be missing."
            );
        }
    }
}

fn counted(of: &PathAllocations) -> String {
    format!(
        "{} ({} requested), {}",
        plural(of.calls, "allocation"),
        bytes(of.bytes),
        plural(of.frees, "free")
    )
}

fn plural(n: u64, one: &str) -> String {
    match n {
        1 => format!("1 {one}"),
        n => format!("{} {one}s", figures::count(n)),
    }
}

/// A number of bytes, to three digits.
pub(crate) fn bytes(n: u64) -> String {
    let (mut scaled, mut unit) = (n as f64, "B");
    for larger in ["KiB", "MiB", "GiB", "TiB", "PiB"] {
        if scaled < 999.5 {
            break;
        }
        scaled /= 1024.0;
        unit = larger;
    }
    let digits = match (unit, scaled) {
        ("B", _) => 0,
        (_, ..9.995) => 2,
        (_, ..99.95) => 1,
        _ => 0,
    };
    format!("{scaled:.digits$}\u{a0}{unit}")
}

/// The name of a span: of one in the report, of one that never ended, or of none.
fn span(report: &Report, path: Option<u32>, still_open: &[String]) -> String {
    let short = |name: &str| shorten(&clean(name), NAME_COLUMNS);
    match path {
        Some(path) => short(&report.path_name(path as usize)),
        None if still_open.is_empty() => OUTSIDE.to_owned(),
        None => format!("{}{OPEN}", short(&still_open.join("/"))),
    }
}

/// The waits of spans that took most time, of those for something that another thread held.
pub(crate) fn longest_held(locks: &Locks) -> Option<&LockWaits> {
    (locks.rows.iter()).find(|row| row.path.is_some() && row.by_is_known && is_held(row.lock.kind))
}

/// Which thread a row waited for, and in which span that thread was.
pub(crate) fn by(report: &Report, row: &LockWaits) -> String {
    if !row.by_is_known {
        return "?".to_owned();
    }
    let span = span(report, row.by_path, &row.by_still_open);
    let thread = row.by.as_deref().map(clean);
    match (thread, row.by_path, row.by_still_open.is_empty()) {
        // Where the report has roles, the path already begins with one.
        (Some(thread), None, true) => format!("{thread}, {OUTSIDE}"),
        _ => span,
    }
}

pub(crate) fn lock_columns<'a>(report: &'a Report) -> Columns<'a, &'a LockWaits> {
    Columns::new()
        .column("waited for", |row: &LockWaits| Cell::text(lock(&row.lock)))
        .words()
        .column("in", |row| {
            Cell::text(span(report, row.path, &row.still_open))
        })
        .words()
        .column("held or woken by", |row| Cell::text(by(report, row)))
        .words()
        .column("waits", |row| Cell::Count(row.n))
        .column("time", |row| Cell::Duration(row.waited_ns))
        .column("longest", |row| Cell::Duration(row.longest_ns))
}

pub(crate) fn allocation_columns<'a>(
    report: &'a Report,
    found: &Allocations,
) -> Columns<'a, &'a PathAllocations> {
    let all = found.calls.max(1) as f64;
    let calls = |of: &PathAllocations| {
        let path = report.paths.get(of.path? as usize)?;
        (path.calls > 0).then_some(path.calls as f64)
    };
    Columns::new()
        .column("path", |of: &PathAllocations| {
            Cell::text(span(report, of.path, &of.still_open))
        })
        .column("allocations", |of| Cell::Count(of.calls))
        .column("of all", move |of| Cell::share(of.calls as f64 / all))
        .column("requested", |of| Cell::Figure(bytes(of.bytes)))
        .column("frees", |of| Cell::Count(of.frees))
        .column("allocations\nper span", move |of| {
            calls(of).map_or(Cell::Nothing, |n| {
                Cell::Figure(per_span(of.calls as f64 / n))
            })
        })
        .column("bytes\nper span", move |of| {
            calls(of).map_or(Cell::Nothing, |n| {
                Cell::Figure(bytes((of.bytes as f64 / n).round() as u64))
            })
        })
}

/// A mean of counts, to three digits.
fn per_span(mean: f64) -> String {
    match mean {
        ..9.995 => format!("{mean:.2}"),
        ..99.95 => format!("{mean:.1}"),
        _ => figures::three_digits(mean.round() as u64),
    }
}

#[cfg(test)]
mod tests;
