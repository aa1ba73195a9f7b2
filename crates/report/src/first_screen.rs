//! What a command prints unless everything is asked for: a heading, figures in groups or a table, the
//! notes that matter most, and how to see the rest; on one screen.

use crate::text::{columns, shorten, wrap};

/// Lines of one screen.
pub(crate) const LINES: usize = 40;
/// The most notes that are shown.
const NOTES: usize = 5;
/// The most columns of a group's title; a longer one is cut.
const TITLE: usize = 28;

/// Figures under a title, each as words: `getppid 85 ns`.
pub(crate) struct Group {
    pub(crate) title: String,
    pub(crate) figures: Vec<String>,
}

/// The parts of a first screen. Nothing in it is unsafe to show.
pub(crate) struct FirstScreen {
    /// What was measured, in a few lines.
    pub(crate) heading: Vec<String>,
    /// A table, as drawn; may be empty.
    pub(crate) table: String,
    pub(crate) groups: Vec<Group>,
    /// Those that matter most come first.
    pub(crate) notes: Vec<String>,
    /// The options that show more.
    pub(crate) more: &'static str,
}

impl FirstScreen {
    /// The screen in at most `room` columns. Ends with a line break.
    pub(crate) fn text(&self, room: usize) -> String {
        let heading = self.heading.iter().map(|line| wrap(line, room, 2));
        let mut parts = vec![heading.collect::<Vec<_>>().join("\n")];
        parts.extend((!self.table.is_empty()).then(|| self.table.trim_end().to_owned()));
        // A line above each part, and a group has at least one line.
        let used: usize = parts.iter().map(|part| lines(part) + 1).sum();
        let used = used + self.groups.len() + usize::from(!self.groups.is_empty());
        let notes = self.noted(room, LINES.saturating_sub(used + 4));
        let more = match self.notes.len() - notes.len() {
            0 => format!("more: {}", self.more),
            n => format!("{} more: {}", notes_in_words(n), self.more),
        };
        let lines_of_notes: usize = notes.iter().map(|note| lines(note)).sum();
        let left = LINES.saturating_sub(used + lines_of_notes + 4) + self.groups.len();
        let groups = self.grouped(room, left);
        parts.extend((!groups.is_empty()).then_some(groups));
        parts.extend((!notes.is_empty()).then(|| notes.join("\n")));
        parts.push(wrap(&more, room, 2));
        parts.join("\n\n").replace('\u{a0}', " ") + "\n"
    }

    /// The first notes, at least one, in about `most` lines.
    fn noted(&self, room: usize, most: usize) -> Vec<String> {
        let shown = self.notes.iter().take(NOTES);
        let mut notes: Vec<String> = shown
            .map(|note| wrap(&format!("* {note}"), room, 2))
            .collect();
        let mut used: usize = notes.iter().map(|note| lines(note)).sum();
        while notes.len() > 1 && used > most {
            used -= notes.pop().map_or(0, |note| lines(&note));
        }
        notes
    }

    /// The groups in at most about `most` lines: as many figures of each as fit.
    fn grouped(&self, room: usize, most: usize) -> String {
        let longest = self.groups.iter().map(|group| group.figures.len()).max();
        let widths = self.groups.iter().map(|group| columns(&group.title));
        let title = widths.max().unwrap_or(0).min(TITLE);
        let with = |each: usize| -> String {
            let all = self.groups.iter().map(|g| g.text(room, title, each));
            let all: Vec<String> = all.collect();
            all.join("\n")
        };
        let mut each = longest.unwrap_or(0);
        let mut text = with(each);
        while each > 1 && lines(&text) > most {
            each -= 1;
            text = with(each);
        }
        text
    }
}

impl Group {
    /// Its title, in that many columns, and the first `most` figures.
    fn text(&self, room: usize, width: usize, most: usize) -> String {
        let mut title = shorten(&self.title, width);
        while columns(&title) < width {
            title.push(' ');
        }
        let mut figures = self.figures.iter().take(most).cloned().collect::<Vec<_>>();
        match self.figures.len().saturating_sub(most) {
            0 => {}
            n => figures.push(format!("and {n} more")),
        }
        let indent = width + 2;
        let figures = figures.join("; ");
        let body = wrap(&figures, room.saturating_sub(indent), 0);
        let mut lines = body.lines();
        let mut text = format!("{title}  {}", lines.next().unwrap_or_default());
        for line in lines {
            text.push('\n');
            text.extend(core::iter::repeat_n(' ', indent));
            text.push_str(line);
        }
        text
    }
}

fn lines(text: &str) -> usize {
    text.lines().count()
}

fn notes_in_words(n: usize) -> String {
    match n {
        1 => "1 note and".to_owned(),
        n => format!("{n} notes and"),
    }
}

#[cfg(test)]
mod tests;
