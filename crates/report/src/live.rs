//! The view of a recording in progress, on a terminal of any size.
//!
//! **Question.** What is the program doing now, and is anything lost?
//!
//! **Method.** The screen shows, from top to bottom: what is recorded and how completely; the
//! events per second since the start; one entry for each interval with its figures of the last
//! seconds, each above its confidence interval; the last lines that the program printed; and the
//! keys. A larger screen has more columns, more entries and more lines. No line is longer than the
//! screen and no figure is cut: what does not fit is left out.

mod columns;

use std::cmp::Ordering;
use std::collections::VecDeque;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Borders, Clear, Paragraph, Sparkline};
use undertick_document::{IntervalReport, figures};

use crate::remarks::number_of;
use crate::text::{clean, columns as width_of, shorten};

/// Minimum size of a screen on which anything can be read: columns and rows.
const LEAST: (u16, u16) = (60, 12);

/// The whole state that is shown.
#[derive(Clone, Debug)]
pub struct State {
    /// The recorded command and its arguments.
    pub command: Vec<String>,
    /// Whether the program was running already and will run on.
    pub is_attached: bool,
    /// Time since the recording began, s.
    pub elapsed_s: f64,
    /// Number of events recorded.
    pub events: u64,
    /// Number of events lost, all causes.
    pub lost: u64,
    /// Bytes stored so far.
    pub bytes: u64,
    /// Number of threads that write.
    pub threads: usize,
    /// Events per second between refreshes, newest last.
    pub rates: VecDeque<f64>,
    /// CPU time of the recorder, and the part of it that the view takes, as shares of one CPU.
    pub own_use: Option<(f64, f64)>,
    /// Figures of the last seconds; `None` before the first ones are over.
    pub recent: Option<Recent>,
    /// The last lines that the program printed.
    pub output: Vec<String>,
    /// What the intervals are ordered by.
    pub order: Order,
    /// Number of intervals scrolled off above the screen.
    pub above: usize,
    /// Whether the figures are frozen.
    pub is_paused: bool,
    /// Whether the help is shown.
    pub is_help: bool,
    /// The share of the trace that is finalized, once the program has ended.
    pub finalizing: Option<f64>,
}

/// Figures of the last seconds.
#[derive(Clone, Debug)]
pub struct Recent {
    /// Intervals, in any order.
    pub entries: Vec<Entry>,
    /// Length of the analysed period, s.
    pub of_s: f64,
    /// Its end, seconds since the recording began.
    pub until_s: f64,
    /// Share of the time that was analysed.
    pub looked_share: f64,
    /// Level of the confidence intervals.
    pub confidence: f64,
}

/// An interval in the last seconds.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its figures, from the analysed part.
    pub interval: IntervalReport,
    /// How often it ended per second.
    pub per_s: f64,
    /// Share of these ends whose start was not in an analysed window.
    pub cut: f64,
}

impl Entry {
    /// Whether that share is large enough that the remaining samples may be too short.
    fn is_cut(&self) -> bool {
        self.cut > 0.05
    }
}

/// What the intervals are ordered by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Total time, longest first.
    #[default]
    Total,
    /// Rate of occurrence, highest first.
    Rate,
    /// Mean, longest first.
    Mean,
    /// The 99 % quantile, longest first.
    Slow,
    /// Name.
    Name,
}

impl Order {
    /// The order that follows this one.
    #[must_use]
    pub const fn next(self) -> Self {
        match self {
            Self::Total => Self::Rate,
            Self::Rate => Self::Mean,
            Self::Mean => Self::Slow,
            Self::Slow => Self::Name,
            Self::Name => Self::Total,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Total => "total time",
            Self::Rate => "per s",
            Self::Mean => "mean",
            Self::Slow => "99 %",
            Self::Name => "name",
        }
    }

    fn compare(self, a: &Entry, b: &Entry) -> Ordering {
        let of = |entry: &Entry| match self {
            Self::Total => entry.interval.total_ns.unwrap_or(0.0),
            Self::Rate => entry.per_s,
            Self::Mean => (entry.interval.mean.as_ref()).map_or(f64::NEG_INFINITY, |m| m.value),
            Self::Slow => (entry.interval.quantiles.get("0.99"))
                .map_or(f64::NEG_INFINITY, |quantile| quantile.value),
            Self::Name => 0.0,
        };
        (of(b).total_cmp(&of(a))).then_with(|| a.interval.name.cmp(&b.interval.name))
    }
}

/// Draws the state on the screen.
pub fn draw(frame: &mut Frame<'_>, state: &State) {
    let area = frame.area();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let text = format!(
            "{}x{} is too small: {}x{} at least. The recording goes on.",
            area.width, area.height, LEAST.0, LEAST.1
        );
        frame.render_widget(Paragraph::new(text).wrap(Default::default()), area);
        return;
    }
    let output = match area.height {
        _ if state.output.is_empty() => 0,
        ..20 => 0,
        20..40 => state.output.len().min(3) + 1,
        _ => state.output.len().min(10) + 1,
    };
    let [top, rates, about, table, printed, keys] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(if area.height < 20 { 1 } else { 2 }),
        Constraint::Length(1),
        Constraint::Min(4),
        Constraint::Length(output as u16),
        Constraint::Length(1),
    ])
    .areas(area);
    head(frame, top, state);
    rate(frame, rates, state);
    let about_all = both_ends(usize::from(about.width), &of_what(state), &used(state));
    line(frame, about, &about_all, Style::new().dim());
    entries(frame, table, state);
    if output > 0 {
        lines_printed(frame, printed, &state.output);
    }
    line(
        frame,
        keys,
        &keys_of(state),
        Style::new().add_modifier(Modifier::REVERSED),
    );
    if state.is_help {
        help(frame, area, state);
    }
}

/// Draws a line, padded to its end.
fn line(frame: &mut Frame<'_>, area: Rect, text: &str, style: Style) {
    let text = shorten(&text.replace('\u{a0}', " "), usize::from(area.width));
    frame.render_widget(Paragraph::new(text).style(style), area);
}

/// Two texts on one line, the second at its end; the first is shortened if necessary.
fn both_ends(room: usize, first: &str, last: &str) -> String {
    let kept = room.saturating_sub(width_of(last) + 1);
    let first = shorten(first, kept);
    let gap = (room.saturating_sub(width_of(last))).saturating_sub(width_of(&first));
    format!("{first}{}{last}", " ".repeat(gap))
}

fn head(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let [first, second] = Layout::vertical([Constraint::Length(1); 2]).areas(area);
    let seconds = state.elapsed_s as u64;
    let time = format!(
        "{}:{:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    );
    let command = clean(&state.command.join(" "));
    let doing = match state.finalizing {
        Some(share) => format!("ended, finalizing the trace: {}", figures::per_cent(share)),
        None if state.is_paused => format!("figures paused  {time}"),
        None => time,
    };
    let title = both_ends(
        usize::from(area.width),
        &command,
        &doing.replace('\u{a0}', " "),
    );
    frame.render_widget(Paragraph::new(title).bold(), first);

    let lost = match state.lost {
        0 => Span::raw("none lost"),
        lost => Span::raw(format!("{} LOST", figures::count(lost)))
            .fg(Color::Red)
            .bold(),
    };
    let mut parts = [
        Span::raw(format!("{} events  ", figures::count(state.events))),
        lost,
        Span::raw(format!(
            "  {:.1} MB  {}",
            state.bytes as f64 / 1e6,
            number_of(state.threads as u64, "thread")
        )),
    ];
    for part in &mut parts {
        part.content = part.content.replace('\u{a0}', " ").into();
    }
    frame.render_widget(Line::from(parts.to_vec()), second);
}

/// Draws the events per second, now and before.
fn rate(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let now = state.rates.back().copied().unwrap_or(0.0);
    let most = state.rates.iter().copied().fold(0.0, f64::max);
    let now = format!("now {}", per_second(now));
    let labels = Text::from(match area.height {
        1 => now,
        _ => format!("{now}\nmost {}", per_second(most)),
    });
    let [left, right] =
        Layout::horizontal([Constraint::Length(16), Constraint::Fill(1)]).areas(area);
    frame.render_widget(Paragraph::new(labels), left);
    let shown = state
        .rates
        .iter()
        .rev()
        .take(usize::from(right.width))
        .rev();
    // In units small enough for any rate.
    let bars: Vec<u64> = shown.map(|rate| (rate * 1e3) as u64).collect();
    frame.render_widget(Sparkline::default().data(bars), right);
}

/// A rate per second in at most nine columns.
fn per_second(rate: f64) -> String {
    let scales = [(1.0, "/s"), (1e3, " k/s"), (1e6, " M/s"), (1e9, " G/s")];
    let (scale, unit) = (scales.iter().rev())
        .find(|(scale, _)| rate >= *scale * 0.9995)
        .unwrap_or(&scales[0]);
    let value = rate / scale;
    let digits = match value {
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$}{unit}")
}

/// Which period and share of the time the figures below cover.
fn of_what(state: &State) -> String {
    let Some(recent) = &state.recent else {
        return "the first figures come in a moment".to_owned();
    };
    let looked = match recent.looked_share {
        0.999.. => "every event looked at".to_owned(),
        share => format!("{} of the time looked at", figures::per_cent(share)),
    };
    let of = figures::duration(recent.of_s * 1e9);
    match state.elapsed_s - recent.until_s {
        1.5.. => format!(
            "{of}, {:.0} s ago, {looked}",
            state.elapsed_s - recent.until_s
        ),
        _ => format!("last {of}, {looked}"),
    }
}

/// What CPU time the recorder takes.
fn used(state: &State) -> String {
    let Some((recorder, view)) = state.own_use else {
        return String::new();
    };
    let (recorder, view) = (figures::per_cent(recorder), figures::per_cent(view));
    format!("takes {recorder} of a CPU, view {view}").replace('\u{a0}', " ")
}

fn entries(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let Some(recent) = &state.recent else {
        return;
    };
    let mut entries: Vec<&Entry> = recent.entries.iter().collect();
    entries.sort_by(|a, b| state.order.compare(a, b));
    if entries.is_empty() {
        let text = "no section of the program ended in that time";
        return line(frame, area, text, Style::new().dim());
    }
    let cut = entries.iter().any(|entry| entry.is_cut());
    let [area, note] = Layout::vertical([
        Constraint::Min(1),
        Constraint::Length(if cut { 1 } else { 0 }),
    ])
    .areas(area);
    columns::table(frame, area, &entries, recent, state);
    if cut {
        let text = "† over 5 % of them began before what was looked at: long ones are missing";
        line(frame, note, text, Style::new().dim());
    }
}

fn lines_printed(frame: &mut Frame<'_>, area: Rect, printed: &[String]) {
    let block = Block::new()
        .borders(Borders::TOP)
        .title(" printed by the program ")
        .dim();
    let room = usize::from(area.height.saturating_sub(1));
    let last = &printed[printed.len().saturating_sub(room)..];
    let lines: Vec<Line<'_>> = (last.iter())
        .map(|line| Line::raw(head_of(&clean(line), usize::from(area.width))))
        .collect();
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

/// The start of a printed line, which says more than its end.
fn head_of(text: &str, room: usize) -> String {
    if width_of(text) <= room {
        return text.to_owned();
    }
    let mut head = String::new();
    for c in text.chars() {
        head.push(c);
        if width_of(&head) >= room {
            head.pop();
            break;
        }
    }
    head + "…"
}

fn keys_of(state: &State) -> String {
    let quit = if state.is_attached {
        "q stop recording"
    } else {
        "q leave the view"
    };
    let pause = if state.is_paused { "go on" } else { "pause" };
    format!(
        " {quit}  s order: {}  space {pause}  up down  ? help",
        state.order.name()
    )
}

fn help(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let quit = match state.is_attached {
        true => [
            "q       stop recording; the program runs on",
            "Ctrl-C  the same",
        ],
        false => [
            "q       leave the view; recording goes on until the program ends",
            "Ctrl-C  interrupts the program, as without the view",
        ],
    };
    let mut lines = quit.to_vec();
    lines.extend([
        "s       order by total time, rate, mean, 99 % or name",
        "space   let the figures stand still, or go on",
        "up down, Page Up, Page Down, Home, End: other intervals",
        "",
        "~ a rate from a part of what happened; no interval is claimed",
        "? a bound that the data cannot give",
    ]);
    let (width, height) = (area.width.min(70), lines.len() as u16 + 2);
    let place = Rect {
        x: (area.width - width) / 2,
        y: area.height.saturating_sub(height) / 2,
        width,
        height: height.min(area.height),
    };
    let lines: Vec<Line<'_>> = lines.into_iter().map(Line::raw).collect();
    let block = Block::bordered().title(" keys ");
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(lines).block(block), place);
}
