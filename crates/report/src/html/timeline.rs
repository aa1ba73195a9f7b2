//! The timeline of a chosen second: its description in words and in a table. A script draws it.

use core::fmt::{Result, Write};
use undertick_document::figures;
use undertick_document::timeline::{Detail, Lane, LaneKind, Timeline};
use undertick_text::shell_word;

use crate::escape::Text;
use crate::remarks::number_of;
use crate::table::html::{sortable, with_micro};
use crate::table::{Cell, Columns};

/// Buttons of the timeline, and their actions in the script.
const BUTTONS: [(&str, &str); 6] = [
    ("in", "Zoom in"),
    ("out", "Zoom out"),
    ("left", "Earlier"),
    ("right", "Later"),
    ("whole", "Whole second"),
    ("detail", "Slowest span"),
];

/// The section of the timeline, with its data in a separate element.
pub(super) fn write(page: &mut String, timeline: &Timeline) -> Result {
    write!(
        page,
        "<section id=\"timeline-section\">\n<h2>Timeline</h2>\n<p>{}</p>\n",
        Text(&with_micro(&about(timeline)))
    )?;
    if let Some(detail) = &timeline.detail {
        let words = slowest(timeline, detail);
        writeln!(page, "<p>{}</p>", Text(&with_micro(&words)))?;
    }
    drawing(page)?;
    lanes(page, timeline)?;
    writeln!(page, "</section>")
}

fn about(timeline: &Timeline) -> String {
    let left_out = match timeline.lanes_left_out {
        0 => String::new(),
        n => format!(" {} had no room here.", number_of(n, "more thread")),
    };
    format!(
        "From {} to {} of {}: {}. {} of {} are here one by one, the longest ones; the others \
         in columns of {}.{left_out}",
        figures::duration(timeline.from_ns),
        figures::duration(timeline.from_ns + timeline.length_ns),
        figures::duration(timeline.of_ns),
        timeline.chosen,
        figures::count(timeline.spans.len() as u64),
        number_of(timeline.spans_all, "span"),
        figures::duration(timeline.length_ns / f64::from(timeline.columns.max(1))),
    )
}

fn slowest(timeline: &Timeline, detail: &Detail) -> String {
    let name = |number: u32| {
        timeline
            .names
            .get(number as usize)
            .map_or("", String::as_str)
    };
    let (_, _, start, length, number, why) = detail.slowest;
    let why = match timeline
        .dropped
        .get(why as usize)
        .map_or("", String::as_str)
    {
        "" => "it is in the figures".to_owned(),
        why => format!("dropped from the figures: {why}"),
    };
    let all = match detail.shorter_left_out_ns {
        None => "every span".to_owned(),
        Some(ns) => format!("every span of {} or more", figures::duration(ns)),
    };
    format!(
        "The span furthest over its median: {}, {} long, {} over it, at {} ({why}). In {} \
         around its middle, {all} is here.",
        name(number),
        figures::duration(length),
        figures::duration(detail.over_median_ns),
        figures::duration(timeline.from_ns + start),
        figures::duration(detail.length_ns),
    )
}

fn drawing(page: &mut String) -> Result {
    page.push_str("<div id=\"timeline-drawing\" hidden>\n<p class=\"acts\">");
    for (act, name) in BUTTONS {
        write!(
            page,
            "<button type=\"button\" data-act=\"{act}\">{name}</button> "
        )?;
    }
    page.push_str(
        "</p>\n<div class=\"canvas\" tabindex=\"0\" role=\"img\" aria-label=\"Timeline; the table \
         below says the same in numbers. Plus, minus, arrows, 0 and Enter zoom and move.\"></div>\n\
         <output></output>\n<p class=\"hint\">Drag to zoom. Each row is a depth of spans, a \
         column as solid as it was busy, in the colour of what took most of it. Crossed by lines: \
         spans dropped from the figures. Upright lines: events lost. Shaded: points switched \
         off.</p>\n</div>\n",
    );
    Ok(())
}

fn lanes(page: &mut String, timeline: &Timeline) -> Result {
    let columns = Columns::new()
        .column("lane", |lane: &Lane| Cell::Name(&lane.label))
        .column("busy", |lane| Cell::share(lane.busy))
        .column("spans", |lane| Cell::Count(lane.spans))
        .column("mostly", |lane| Cell::text(mostly(timeline, lane)))
        .column("losses", |lane| {
            Cell::Count(lane.losses.iter().map(|(_, n)| n).sum())
        });
    sortable(page, &columns, &timeline.lanes)
}

/// The name that took the most columns of the lane's first row.
fn mostly(timeline: &Timeline, lane: &Lane) -> String {
    let mut columns = std::collections::BTreeMap::<u32, u64>::new();
    let cells = lane.rows.first().map_or(&[][..], |row| &row.cells);
    for cell in cells.chunks_exact(4) {
        *columns.entry(cell[1]).or_default() += u64::from(cell[2]);
    }
    let most = columns.into_iter().max_by_key(|&(_, share)| share);
    let name = most.and_then(|(name, _)| timeline.names.get(name as usize));
    match (name, lane.kind) {
        (Some(name), LaneKind::Thread | LaneKind::Cpu | LaneKind::Interrupts) => name.clone(),
        (None, _) => "–".to_owned(),
    }
}

/// How to open the whole trace in another tool.
pub(super) fn elsewhere(page: &mut String, trace: &str) -> Result {
    let file = trace.trim_end_matches(".ut");
    write!(
        page,
        "<section id=\"elsewhere\">\n<h2>The whole trace</h2>\n<p>In Perfetto, with every event: \
         write it with this command, and open the file at \
         <a href=\"https://ui.perfetto.dev\">ui.perfetto.dev</a> (it stays on this machine).</p>\n\
         <p><code id=\"export-command\">undertick export {} --to perfetto {}</code> \
         <button type=\"button\" data-copy=\"export-command\" hidden>Copy</button></p>\n",
        Text(&shell_word(trace)),
        Text(&shell_word(&format!("{file}.pftrace"))),
    )?;
    let second = format!(
        "undertick report {} --html page.html --second 0s",
        shell_word(trace)
    );
    write!(
        page,
        "<p>Another second in this page:</p>\n<p><code id=\"second-command\">{}</code> \
         <button type=\"button\" data-copy=\"second-command\" hidden>Copy</button></p>\n</section>\n",
        Text(&second),
    )?;
    Ok(())
}
