//! A histogram in characters: one row per range of values. Ranges grow with the value, and the
//! length of a bar shows its count.

use undertick_document::{Histogram, IntervalReport, figures};

use crate::remarks;
use crate::text::{clean, columns, shorten, wrap};

/// Maximum number of rows between the rows for the tails.
const MOST_ROWS: usize = 16;

/// Maximum share of the samples on either side that a tail row gathers.
const TAIL_SHARE: f64 = 0.001;

/// One row: lower end, upper end, number of samples. `None` is an open end.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Row {
    from: Option<f64>,
    to: Option<f64>,
    count: u64,
}

pub(super) fn render(interval: &IntervalReport, room: usize) -> Option<String> {
    let rows = rows(&interval.histogram)?;
    let total: u64 = interval.histogram.counts.iter().sum();
    let most = rows.iter().map(|row| row.count).max()?;
    let name = shorten(&clean(&interval.name), room - 30);
    let mut lines = vec![format!("{name}, n = {}", figures::count(total))];
    if let Some(modes) = remarks::modes(interval) {
        let wrapped = wrap(&format!("{modes}; > marks them"), room - 2, 2);
        lines.extend(wrapped.lines().map(|line| format!("  {line}")));
    }
    let labels: Vec<String> = rows.iter().map(label).collect();
    let counts: Vec<String> = rows
        .iter()
        .map(|row| {
            format!(
                "{:>9} {:>7}",
                figures::short_count(row.count),
                figures::per_cent(row.count as f64 / total as f64)
            )
        })
        .collect();
    let label_columns = labels.iter().map(|l| columns(l)).max()?;
    let bar_room = room.saturating_sub(label_columns + 3 + 18 + 1).max(10);
    for ((row, label), count) in rows.iter().zip(&labels).zip(&counts) {
        let bar = bar(row.count, most, bar_room);
        let gap = " ".repeat(label_columns - columns(label));
        lines.push(
            format!("{} {gap}{label} {count} {bar}", mark(row, interval))
                .trim_end()
                .to_owned(),
        );
    }
    Some(lines.join("\n"))
}

/// Joins neighbouring bins until there are few enough; each tail becomes one row. `None` without
/// samples.
fn rows(histogram: &Histogram) -> Option<Vec<Row>> {
    let Histogram { edges, counts, .. } = histogram;
    let total: u64 = counts.iter().sum();
    if total == 0 || edges.len() != counts.len() + 1 {
        return None;
    }
    let tail = (total as f64 * TAIL_SHARE) as u64;
    let (first, below) = leading_tail(counts.iter(), tail);
    let (last, above) = leading_tail(counts.iter().rev(), tail);
    let last = counts.len() - last;
    let per_row = (last - first).div_ceil(MOST_ROWS).max(1);
    let mut rows = Vec::new();
    if below > 0 {
        rows.push(Row {
            from: None,
            to: Some(edges[first]),
            count: below,
        });
    }
    for start in (first..last).step_by(per_row) {
        let end = (start + per_row).min(last);
        rows.push(Row {
            from: Some(edges[start]),
            to: Some(edges[end]),
            count: counts[start..end].iter().sum(),
        });
    }
    if above > 0 {
        rows.push(Row {
            from: Some(edges[last]),
            to: None,
            count: above,
        });
    }
    Some(rows)
}

/// Number of bins from this end that hold no more than `tail` samples, and the number of their
/// samples.
fn leading_tail<'a>(counts: impl Iterator<Item = &'a u64>, tail: u64) -> (usize, u64) {
    let mut sum = 0;
    for (bins, count) in counts.enumerate() {
        if sum + count > tail {
            return (bins, sum);
        }
        sum += count;
    }
    (0, 0)
}

/// The mark of a row in which a mode lies, if there is more than one mode.
fn mark(row: &Row, interval: &IntervalReport) -> char {
    let holds = |at: f64| row.from.is_none_or(|from| from <= at) && row.to.is_none_or(|to| at < to);
    let several = interval.modes.len() > 1;
    match several && interval.modes.iter().any(|mode| holds(mode.at)) {
        true => '>',
        false => ' ',
    }
}

fn label(row: &Row) -> String {
    match (row.from, row.to) {
        (Some(from), Some(to)) => {
            format!("{} .. {}", figures::duration(from), figures::duration(to))
        }
        (None, Some(to)) => format!("below {}", figures::duration(to)),
        (Some(from), None) => format!("from {}", figures::duration(from)),
        (None, None) => String::new(),
    }
}

/// A bar of whole blocks and eighths; a count above zero is never shown as nothing.
fn bar(count: u64, most: u64, room: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if count == 0 {
        return String::new();
    }
    let eighths = (count as f64 / most as f64 * room as f64 * 8.0).round() as usize;
    let eighths = eighths.clamp(1, room * 8);
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

#[cfg(test)]
mod tests;
