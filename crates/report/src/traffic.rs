//! The traffic controller's table: every step of the first passes, with the values that are out of
//! place marked and explained, as text.

use std::fmt::Write as _;

use comfy_table::CellAlignment;
use undertick_document::figures;
use undertick_document::passes::{Mark, Passes, Step};

use crate::table::terminal::new_table;
use crate::text::{clean, wrap};

/// The tables as text, one for each setting.
#[must_use]
pub fn render(all: &[Passes], columns: usize) -> String {
    let tables: Vec<String> = all.iter().map(|p| one(p, columns)).collect();
    tables.join("\n").replace('\u{a0}', " ")
}

fn one(passes: &Passes, columns: usize) -> String {
    let mut text = wrap(&title(passes), columns, 2) + "\n";
    let mut table = new_table(columns);
    let shown = passes.shown as usize;
    let mut header = vec!["step".to_owned(), "process".to_owned(), "what".to_owned()];
    header.extend((1..=shown).map(|pass| format!("pass {pass}")));
    header.push("median".to_owned());
    header.extend((1..=shown).map(|pass| format!("own {pass}")));
    header.push("median".to_owned());
    let figures = 3..header.len();
    table.set_header(header);
    for step in &passes.steps {
        let mut row = vec![
            step.number.to_string(),
            clean(&step.process),
            clean(&step.name),
        ];
        row.extend(cells(passes, step, &step.next_ns, passes.one_cpu));
        row.push(time(step.next_median_ns));
        row.extend(cells(passes, step, &step.own_ns, !passes.one_cpu));
        row.push(time(step.own_median_ns));
        table.add_row(row);
    }
    for column in [0].into_iter().chain(figures) {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let _ = writeln!(text, "{table}");
    for (index, mark) in passes.marks.iter().enumerate() {
        text += &wrap(&explained(index, mark), columns, 4);
        text.push('\n');
    }
    for line in [legend(passes), counted(passes), passes.evidence.clone()] {
        text += &wrap(&clean(&line), columns, 0);
        text.push('\n');
    }
    text
}

fn title(passes: &Passes) -> String {
    let values: Vec<String> = (passes.parameters.iter())
        .map(|(name, value)| format!(", {} = {}", clean(name), clean(value)))
        .collect();
    format!(
        "{}{} ({}): passes of repetition {}",
        clean(&passes.script),
        values.concat(),
        clean(&passes.placement),
        passes.repetition
    )
}

/// The cells of a step's values; values out of place carry the letter of their explanation.
fn cells(passes: &Passes, step: &Step, values: &[Option<f64>], marked: bool) -> Vec<String> {
    (values.iter().enumerate())
        .map(|(pass, value)| {
            let is_it = |m: &Mark| {
                (&m.process, m.number, m.pass) == (&step.process, step.number, pass as u64 + 1)
            };
            match passes.marks.iter().position(is_it).filter(|_| marked) {
                Some(mark) => format!("({}) {}", letter(mark), time(*value)),
                None => time(*value),
            }
        })
        .collect()
}

fn time(ns: Option<f64>) -> String {
    ns.map_or_else(|| "–".to_owned(), figures::duration)
}

/// The letter of an explanation: a to z, then letters with a number.
fn letter(index: usize) -> String {
    let letter = char::from(b'a' + (index % 26) as u8);
    match index / 26 {
        0 => letter.to_string(),
        round => format!("{letter}{round}"),
    }
}

fn explained(index: usize, mark: &Mark) -> String {
    let taken = mark.taken_ns.map_or_else(String::new, |ns| {
        format!(", {} of it", figures::duration(ns))
    });
    let detail = match mark.detail.is_empty() {
        true => String::new(),
        false => format!(" ({})", clean(&mark.detail)),
    };
    format!(
        "({}) step {} of {}, pass {}: {} over the median: {}{taken}{detail}",
        letter(index),
        mark.number,
        clean(&mark.process),
        mark.pass,
        figures::duration(mark.over_ns),
        mark.cause,
    )
}

fn legend(passes: &Passes) -> String {
    format!(
        "pass 1, ...: from the step's stamp to the next stamp of any process; own 1, ...: to the next of the same \
         process, waiting included. Nothing is taken off. {}",
        passes.rule
    )
}

fn counted(passes: &Passes) -> String {
    let counts = &passes.counts;
    let mut text = format!(
        "Out of place in all {} passes: {} of {} values",
        passes.passes, counts.out_of_place, counts.values
    );
    for (index, (cause, n)) in counts.by.iter().enumerate() {
        let separator = if index == 0 { ": " } else { ", " };
        let _ = write!(text, "{separator}{n} {cause}");
    }
    if let Some(share) = counts.without_evidence {
        let _ = write!(text, "; without evidence {}", figures::per_cent(share));
    }
    text + "."
}
