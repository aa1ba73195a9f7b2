//! A comparison on a terminal: the summary first, then what differs, then the rest by group.

use undertick_document::{Warning, figures};
use undertick_units::{Estimate, Interval};

use super::{Comparison, FEW_RUNS, Row, Sequential, SequentialEnd, Source};
use crate::remarks::{number_of, unix_date};
use crate::survey::{self, figure, machine};
use crate::table::terminal::draw;
use crate::table::{Cell, Columns};
use crate::text::{clean, wrap};

/// Minimum number of columns that the tables fit in.
const FEWEST_COLUMNS: usize = 60;
/// Maximum number of names listed for figures that only one document has.
const MOST_LONELY: usize = 20;

/// The comparison as text in at most `columns` columns. Ends with a line break.
#[must_use]
pub fn render(found: &Comparison, columns: usize) -> String {
    let columns = columns.max(FEWEST_COLUMNS);
    let line = |text: &str| wrap(text, columns, 2);
    let mut parts = vec![
        [source_line("A", &found.a), source_line("B", &found.b)]
            .map(|text| line(&text))
            .join("\n"),
        line(&summary(found)),
    ];
    // Why nothing may be known stands beside that nothing is.
    let is_why = |warning: &&Warning| warning.code == FEW_RUNS;
    let (why, others): (Vec<&Warning>, Vec<&Warning>) = found.warnings.iter().partition(is_why);
    let warning = |warning: &&Warning| line(&format!("warning: {}", clean(&warning.text)));
    parts.extend(why.iter().map(warning));
    let (differ, rest): (Vec<&Row>, Vec<&Row>) = found.rows.iter().partition(|row| row.differs());
    parts.extend(gate(found).map(|text| line(&text)));
    if !differ.is_empty() {
        parts.push(table("What differs", found, &differ, columns));
    }
    for (index, row) in rest.iter().enumerate() {
        let is_first = !rest[..index].iter().any(|other| other.group == row.group);
        if is_first {
            let these: Vec<&Row> = (rest.iter().copied())
                .filter(|other| other.group == row.group)
                .collect();
            let title = match differ.is_empty() {
                true => survey::title(&row.group).to_owned(),
                false => format!("{}: the rest", survey::title(&row.group)),
            };
            parts.push(table(&title, found, &these, columns));
        }
    }
    parts.push(wrap(&legend(found), columns, 0));
    let lonely = [("A", &found.only_in_a), ("B", &found.only_in_b)];
    for (which, names) in lonely.iter().filter(|(_, names)| !names.is_empty()) {
        parts.push(line(&only_in(which, names)));
    }
    let warnings: Vec<String> = others.iter().map(warning).collect();
    if !warnings.is_empty() {
        parts.push(warnings.join("\n"));
    }
    parts.join("\n\n").replace('\u{a0}', " ") + "\n"
}

impl Row {
    /// Whether the verdict is a difference.
    #[must_use]
    pub const fn differs(&self) -> bool {
        self.verdict.differs()
    }
}

pub(crate) fn source_line(which: &str, source: &Source) -> String {
    let runs = source.runs.map_or(String::new(), |runs| {
        format!(", {}", number_of(runs, "run"))
    });
    format!(
        "{which}: {}{runs}: {}, {}",
        clean(&source.file),
        machine(&source.host),
        unix_date((source.begun_unix_s * 1e9) as i64)
    )
}

/// The summary, which is the first thing to read.
pub(crate) fn summary(found: &Comparison) -> String {
    let s = &found.summary;
    if s.compared == 0 {
        return "No figure is in both.".to_owned();
    }
    let of = number_of(s.compared, "figure");
    let differ = match s.differ {
        0 => format!("None of {of} is known to differ"),
        1 => format!(
            "1 of {of} differs ({} better in B, {} worse)",
            s.better, s.worse
        ),
        n => format!(
            "{n} of {of} differ ({} better in B, {} worse)",
            s.better, s.worse
        ),
    };
    let found_so = format!(
        "{differ}; {} alike, {} cannot be told.",
        s.alike, s.cannot_tell
    );
    if let Some(sequential) = &found.sequential {
        return format!(
            "{} {found_so} If no benchmark differed, at most {} of such comparisons would call one different, whenever \
             they end.",
            ended(sequential),
            figures::per_cent(sequential.false_alarms)
        );
    }
    format!(
        "{found_so} Alone, {} would be called different at {}; chance makes about {:.1} of {of} if nothing differs. \
         False discoveries are controlled: on average at most {} of those called different.",
        s.differ_alone,
        figures::per_cent(found.confidence),
        s.expected_by_chance,
        figures::per_cent(found.false_share),
    )
}

/// How many rounds there were and why no more, in a sentence.
fn ended(of: &Sequential) -> String {
    let (rounds, most) = (number_of(of.rounds, "round"), figures::count(of.most));
    match of.end {
        SequentialEnd::Decided => format!("{rounds} of at most {most} sufficed."),
        SequentialEnd::Rounds => format!("All {rounds} that were planned are made."),
        SequentialEnd::Time => {
            format!("The time was over after {rounds} of {most} that were planned.")
        }
        SequentialEnd::Failed => format!("A program failed after {rounds} of at most {most}."),
        SequentialEnd::Interrupted => format!("Stopped after {rounds} of at most {most}."),
    }
}

/// The figures of both sides, for a terminal and for Markdown.
pub(crate) fn columns(found: &Comparison) -> Columns<'_, &Row> {
    let too_slow = (found.gate.as_ref()).map_or(&[][..], |gate| &gate.too_slow);
    Columns::<&Row>::new()
        .column("what", |row| Cell::text(&row.name))
        .on_page("")
        .column("A", |row| Cell::Figure(figure(&row.a).0))
        .column("B", |row| Cell::Figure(figure(&row.b).0))
        .terminal("B/A", |row| {
            let plus = row.ratio.is_none() && row.difference.value > 0.0;
            Cell::Figure(format!("{}{}", if plus { "+" } else { "" }, change(row).0))
        })
        .page("B/A", |row| Cell::Figure(change(row).0))
        .column("interval", |row| Cell::text(change(row).1))
        .on_page(format!("{} interval", figures::per_cent(found.confidence)))
        .terminal("verdict", |row| {
            Cell::text(clean(&row.words).replace("larger than", ">"))
        })
        .page("", |row| {
            match row.differs() || too_slow.contains(&row.id) {
                true => Cell::Notable(row.words.clone()),
                false => Cell::text(&row.words),
            }
        })
        .words()
}

fn table(title: &str, found: &Comparison, rows: &[&Row], room: usize) -> String {
    let table = draw(&columns(found), rows.iter().copied(), room);
    format!("{}\n{table}", clean(title))
}

/// The ratio with its interval, to three digits after the point; the difference where a ratio has
/// no meaning.
fn change(row: &Row) -> (String, String) {
    let Some(ratio) = &row.ratio else {
        return figure(&row.difference);
    };
    of_ratio(ratio)
}

/// A ratio and its interval.
pub(crate) fn of_ratio(ratio: &Estimate) -> (String, String) {
    let bound = |bound: Option<f64>| bound.map_or("?".to_owned(), |bound| format!("{bound:.3}"));
    let Interval { lo, hi } = ratio.interval;
    (
        format!("{:.3}", ratio.value),
        format!("[{}, {}]", bound(lo), bound(hi)),
    )
}

/// The sentence on whether something is slower than the gate allows; `None` without a gate.
pub(crate) fn gate(found: &Comparison) -> Option<String> {
    let gate = found.gate.as_ref()?;
    let share = figures::per_cent(gate.share);
    let names: Vec<String> = (found.rows.iter())
        .filter(|row| gate.too_slow.contains(&row.id))
        .map(|row| clean(&row.name))
        .collect();
    Some(match names.is_empty() {
        true => format!("Nothing is surely slower by more than {share}."),
        false => format!("Surely slower by more than {share}: {}.", names.join(", ")),
    })
}

pub(crate) fn legend(found: &Comparison) -> String {
    let level = figures::per_cent(found.confidence);
    let how = match (found.a.runs.is_some(), found.paired) {
        (true, true) => {
            "made from what rounds differ by, each a run of A and one of B in random order (Wilcoxon); \
             A and B are the middle runs"
        }
        (true, false) => {
            "made from what runs differ by (Mann and Whitney); A and B are the middle runs. What changed \
             between the two sets besides the program is in the difference: `undertick compare --runs` \
             records them in turn"
        }
        (false, _) => {
            "made from the two intervals (MOVER); a difference where a ratio has no meaning. The intervals know \
             what repetitions within one run differ by: two runs of one machine say what it differs by from \
             hour to hour"
        }
    };
    format!("B/A with its {level} interval, {how}.")
}

pub(super) fn only_in(which: &str, names: &[String]) -> String {
    let listed: Vec<String> = names
        .iter()
        .take(MOST_LONELY)
        .map(|name| clean(name))
        .collect();
    let more = match names.len().saturating_sub(MOST_LONELY) {
        0 => String::new(),
        n => format!(", and {n} more"),
    };
    format!("Only in {which}: {}{more}", listed.join(", "))
}
