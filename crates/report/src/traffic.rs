//! The traffic controller's table: every step of the first passes, with the values that are out of
//! place marked and explained. It is in the document and on a terminal.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use comfy_table::CellAlignment;
use serde::{Deserialize, Serialize};

use crate::figures;
use crate::terminal::tables::new_table;
use crate::text::{clean, wrap};

/// The passes of one repetition of one setting. The field names are the JSON shape
/// that other programs read; extend, never rename.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Passes {
    /// Name of the script.
    pub script: String,
    /// Parameters and their values.
    pub parameters: BTreeMap<String, String>,
    /// The CPU of each process, in words.
    pub placement: String,
    /// Number of the repetition, from 1.
    pub repetition: u32,
    /// Number of passes that the counts below cover.
    pub passes: u64,
    /// Number of these passes in the table.
    pub shown: u64,
    /// Whether all processes shared one CPU. The next stamp then shows which process ran next, and
    /// the time until it is what is marked; otherwise it is the time until the process's own next
    /// stamp.
    pub one_cpu: bool,
    /// The rule by which a value is out of place, in words.
    pub rule: String,
    /// The kernel events that were available, in words.
    pub evidence: String,
    /// Every step, ordered by its number.
    pub steps: Vec<Step>,
    /// Values out of place in the passes shown, by step and pass.
    pub marks: Vec<Mark>,
    /// Counts over all passes.
    pub counts: Counts,
}

/// A step of a process in each pass shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The process's name.
    pub process: String,
    /// Its number in the script.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Time until the next stamp of any process, ns, by pass; `None` where it is not in the trace.
    pub next_ns: Vec<Option<f64>>,
    /// Time until the next stamp of the same process, ns, by pass.
    pub own_ns: Vec<Option<f64>>,
    /// Median of `next_ns` over all passes, ns.
    pub next_median_ns: Option<f64>,
    /// Median of `own_ns` over all passes, ns.
    pub own_median_ns: Option<f64>,
    /// Share of the passes in which the next stamp belonged to another process.
    pub given_away: f64,
    /// Number of passes in which its value is out of place.
    pub out_of_place: u64,
}

/// A value out of place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// The process's name.
    pub process: String,
    /// The step's number.
    pub number: u32,
    /// The pass, from 1.
    pub pass: u64,
    /// The value, ns.
    pub value_ns: f64,
    /// Excess over the step's median, ns.
    pub over_ns: f64,
    /// The cause. From the kernel's rows: `interrupt`, `softirq`, `preempted`, `switched`,
    /// `migration`, `fault`, `waited`; from the stamps: `order`; or `no evidence`.
    pub cause: String,
    /// Time that the cause took beyond what it usually takes in that step, ns; `None` where the
    /// kernel gives no length.
    pub taken_ns: Option<f64>,
    /// What the kernel reports of it, in words.
    pub detail: String,
}

/// Numbers of values out of place over all passes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// Number of values examined.
    pub values: u64,
    /// Number of values out of place.
    pub out_of_place: u64,
    /// Number of values out of place by cause.
    pub by: BTreeMap<String, u64>,
    /// Share of the values out of place that nothing explains; `None` if there are none.
    pub without_evidence: Option<f64>,
}

/// The cause when no row of the kernel explains a value.
pub const NO_EVIDENCE: &str = "no evidence";

/// The cause when no row of the kernel explains a value, but another process or step came next than
/// in most passes.
pub const ORDER: &str = "order";

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
