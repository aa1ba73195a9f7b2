//! The slowest calls on the page: what each of them spent more time on than the typical call.

use core::fmt::{Result, Write};

use undertick_document::explanation::{ExplainedPath, Explanation, PartCause, SlowCall};
use undertick_document::figures;

use crate::escape::Text;
use crate::explanation::{listed, name, shares, stack_text, stolen};
use crate::interposed::wait_text;
use crate::table::html::{self, with_micro};
use crate::table::{Cell, Columns};

/// Most paths, those with the largest excess, and most calls of each.
const MOST_PATHS: usize = 4;
const MOST_CALLS: usize = 10;
/// Most parts of a call in words.
const MOST_PARTS: usize = 3;
/// Most causes of the slowest calls together.
const MOST_SHARES: usize = 8;
/// Width and height of a bar, in units of the drawing.
const BAR_WIDTH: f64 = 200.0;
const BAR_HEIGHT: f64 = 14.0;

/// Groups of causes, with the class and the words of each.
const GROUPS: [(&str, &str); 6] = [
    ("others", "preempted, runnable, off the CPU"),
    ("waits", "waiting"),
    ("interrupts", "interrupts"),
    ("child", "spans inside"),
    ("known", "its state, page faults"),
    ("unknown", "unexplained"),
];

fn group(cause: PartCause) -> usize {
    match cause {
        PartCause::Preempted | PartCause::OwnThread | PartCause::Switched | PartCause::Queued => 0,
        PartCause::Waited | PartCause::Blocked | PartCause::Stopped => 1,
        PartCause::Interrupt | PartCause::SoftInterrupt | PartCause::OwnSoftInterrupt => 2,
        PartCause::Child => 3,
        PartCause::State | PartCause::Fault => 4,
        PartCause::Own | PartCause::Unexplained => 5,
    }
}

pub(super) fn write(page: &mut String, explanation: &Explanation) -> Result {
    page.push_str(
        "<section id=\"slowest\">\n<h2>Slowest calls</h2>\n<p class=\"hint\">The excess of each over the \
         typical call of its path, by cause. The typical call is the mean of the middle fifth by duration.</p>\n<p class=\"hint legend\">",
    );
    for (class, words) in GROUPS {
        write!(page, "<span class=\"key {class}\"></span>{words} ")?;
    }
    page.push_str("</p>\n");
    for (at, of) in explanation.paths.iter().take(MOST_PATHS).enumerate() {
        let open = if at == 0 { " open" } else { "" };
        writeln!(
            page,
            "<details{open}>\n<summary>{}: {} at the most; typical {}</summary>",
            Text(&name(of)),
            of.slowest
                .first()
                .map_or(String::new(), |call| micro(call.took_ns)),
            micro(of.typical.took_ns),
        )?;
        calls(page, of)?;
        page.push_str("</details>\n");
    }
    writeln!(
        page,
        "<p class=\"hint\">Error of one duration: {}. <code>undertick explain NAME.ut PATH</code> has all \
         parts, and more calls.</p>\n</section>",
        micro(explanation.error_ns)
    )
}

fn micro(ns: f64) -> String {
    with_micro(&figures::duration(ns))
}

fn calls(page: &mut String, of: &ExplainedPath) -> Result {
    let shown = &of.slowest[..of.slowest.len().min(MOST_CALLS)];
    let more = of.calls.saturating_sub(shown.len() as u64);
    writeln!(
        page,
        "<p>{}</p>",
        Text(&with_micro(&format!(
            "The {} slowest, of {} calls ({} are not shown), have an excess of {}: {}.",
            shown.len(),
            figures::count(of.calls),
            figures::count(more),
            figures::duration(shown.iter().map(|call| call.excess_ns).sum::<f64>()),
            shares(of, MOST_SHARES).join(", "),
        )))
    )?;
    let longest = shown.iter().map(|call| call.excess_ns).fold(0.0, f64::max);
    let bars = |call: &&SlowCall| bar(call, longest);
    html::write(
        page,
        &columns(),
        shown.iter(),
        false,
        Some(("by cause".to_owned(), &bars as _)),
    )
}

fn columns<'a>() -> Columns<'a, &'a SlowCall> {
    Columns::new()
        .page("began at", |call: &SlowCall| {
            Cell::Figure(format!("{:.6}\u{a0}s", call.start_ns / 1e9))
        })
        .page("took", |call| Cell::Duration(call.took_ns))
        .page("thread", |call| {
            Cell::text(match &call.thread {
                Some(name) => format!("{name} ({})", call.tid),
                None => call.tid.to_string(),
            })
        })
        .page("CPU", |call| {
            call.cpu
                .map_or(Cell::Nothing, |cpu| Cell::text(cpu.to_string()))
        })
        .page("excess over the typical call", |call| {
            Cell::Lines(lines(call))
        })
        .words()
}

/// The largest parts in words.
fn lines(call: &SlowCall) -> Vec<String> {
    let parts = listed(&call.parts, call.excess_ns, MOST_PARTS);
    (parts.into_iter().chain(stolen(call)))
        .chain(call.waits.iter().map(wait_text))
        .chain(call.stacks.first().map(stack_text))
        .map(|line| with_micro(&line))
        .collect()
}

/// The excess as a bar, divided by groups of causes.
fn bar(call: &SlowCall, longest_ns: f64) -> String {
    let mut by_group = [0.0; GROUPS.len()];
    for part in &call.parts {
        by_group[group(part.cause)] += part.ns.max(0.0);
    }
    let mut svg = format!(
        "<svg viewBox=\"0 0 {BAR_WIDTH} {BAR_HEIGHT}\" preserveAspectRatio=\"none\" aria-hidden=\"true\">"
    );
    let mut x = 0.0;
    for ((class, _), ns) in GROUPS.iter().zip(by_group) {
        let width = (BAR_WIDTH * ns / longest_ns.max(f64::MIN_POSITIVE)).min(BAR_WIDTH - x);
        if width >= 0.1 {
            svg.push_str(&format!(
                "<rect class=\"{class}\" x=\"{x:.1}\" y=\"0\" width=\"{width:.1}\" height=\"{BAR_HEIGHT}\"/>"
            ));
            x += width;
        }
    }
    svg.push_str("</svg>");
    svg
}
