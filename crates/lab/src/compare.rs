//! Two documents beside each other: two surveys, two runs of the primitives, two
//! reports.
//!
//! **Question.** What differs between two machines, or two days, and what only seems
//! to?
//!
//! **Method.** Figures of the same name are set beside each other, by their ratio
//! where they are above 0. Its interval and the probability of such a distance by
//! chance come from the two intervals alone ([`undertick_estimate::versus`]). Of many
//! figures some differ by chance: the probabilities are adjusted (Benjamini and
//! Hochberg), so that of those called different on average at most the share
//! 1 - level is not. Of the others, one whose interval lies near 1 is alike, and of
//! one whose interval is wide nothing is told.
//!
//! **Caveats.** An interval knows what repetitions within one run differ by. What a
//! machine differs by from hour to hour is in no single run, and is called a
//! difference here.

use std::collections::HashMap;
use std::path::Path;

use undertick_estimate::fleet::adjusted;
use undertick_estimate::versus;
use undertick_report::compare::{
    Comparison, KIND, Row, SCHEMA_VERSION, Side, Subject, Summary, Verdict, subject,
};
use undertick_report::document::Warning;
use undertick_report::survey::{Better, Metric, Scale};
use undertick_units::Estimate;

/// Figures within this share of each other are alike, where that is known.
const ALIKE: f64 = 0.1;
/// Files larger than this are no documents of ours.
const LARGEST_FILE: u64 = 256 << 20;

/// Reads a document that can be compared.
///
/// # Errors
/// The file, where in it, what is wrong, the mend.
pub fn read(path: &Path) -> Result<Side, String> {
    let file = path.display();
    let about = std::fs::metadata(path).map_err(|e| {
        format!("{file}: {e}; give a file that `undertick survey --json` or `undertick primitives --json` printed")
    })?;
    if about.is_dir() {
        return Err(format!(
            "{file}: a directory; of a trace give the file that `undertick report {file} --json` prints, of a fleet use `undertick survey --fleet {file}`"
        ));
    }
    Ok(document(path, about.len())?.side(&file.to_string()))
}

/// The document in a file of that length.
pub(crate) fn document(path: &Path, bytes: u64) -> Result<Subject, String> {
    let file = path.display();
    if bytes > LARGEST_FILE {
        return Err(format!(
            "{file}: {} MiB, larger than any document of undertick; give another file",
            bytes >> 20
        ));
    }
    let bytes = std::fs::read(path).map_err(|e| format!("{file}: {e}; make it readable"))?;
    let text = String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        format!("{file}: byte {at}: not UTF-8, so no JSON; make the file again")
    })?;
    subject(&text).map_err(|wrong| format!("{file}: {wrong}"))
}

/// The second beside the first; both of one kind.
///
/// # Errors
/// They are of two kinds.
pub fn compare(a: Side, b: Side, level: f64) -> Result<Comparison, String> {
    if a.about.kind != b.about.kind {
        return Err(format!(
            "{} is a {} and {} is a {}: only two of a kind can be compared; make both with the same command",
            a.about.file, a.about.kind, b.about.file, b.about.kind
        ));
    }
    let of_b: HashMap<&str, &Metric> = b.metrics.iter().map(|m| (m.id.as_str(), m)).collect();
    let pairs: Vec<(&Metric, &Metric)> = (a.metrics.iter())
        .filter_map(|metric| Some((metric, *of_b.get(metric.id.as_str())?)))
        .collect();
    let (same, other): (Vec<_>, Vec<_>) =
        (pairs.into_iter()).partition(|(a, b)| a.estimate.unit == b.estimate.unit);
    let rows = rows(&same, level);
    let mut warnings = warnings(&a, &b);
    warnings.extend(other.iter().map(|(a, b)| Warning {
        code: "units".to_owned(),
        text: format!(
            "{} is in {:?} in A and in {:?} in B: not compared",
            a.id, a.estimate.unit, b.estimate.unit
        ),
    }));
    let lonely = |of: &Side, others: &Side| -> Vec<String> {
        let ids: std::collections::HashSet<&str> =
            others.metrics.iter().map(|m| m.id.as_str()).collect();
        let alone = of.metrics.iter().filter(|m| !ids.contains(m.id.as_str()));
        alone.map(|m| m.id.clone()).collect()
    };
    Ok(Comparison {
        schema_version: SCHEMA_VERSION,
        kind: KIND.to_owned(),
        confidence: level,
        false_share: 1.0 - level,
        summary: summary(&rows, level),
        only_in_a: lonely(&a, &b),
        only_in_b: lonely(&b, &a),
        rows,
        warnings,
        a: a.about,
        b: b.about,
    })
}

fn rows(pairs: &[(&Metric, &Metric)], level: f64) -> Vec<Row> {
    let each: Vec<_> = (pairs.iter())
        .map(|(a, b)| versus(&a.estimate, &b.estimate, level))
        .collect();
    let known: Vec<f64> = each.iter().filter_map(|v| v.p).collect();
    let mut adjusted = adjusted(&known).into_iter();
    (pairs.iter().zip(each))
        .map(|((a, b), found)| {
            let adjusted_p = found.p.and_then(|_| adjusted.next());
            let ratio = found.ratio.filter(|_| a.scale == Scale::Ratio);
            let bound = ratio.as_ref().and_then(bound);
            let differs = adjusted_p.is_some_and(|p| p <= 1.0 - level);
            let verdict = match (differs, bound) {
                (true, _) => direction(a, found.difference.value),
                (false, Some(bound)) if bound <= ALIKE => Verdict::Alike,
                (false, _) => Verdict::CannotTell,
            };
            Row {
                id: a.id.clone(),
                group: a.group.clone(),
                name: a.name.clone(),
                better: a.better,
                a: a.estimate.clone(),
                b: b.estimate.clone(),
                words: words(verdict, ratio.as_ref(), bound, found.p.is_some()),
                ratio,
                difference: found.difference,
                p: found.p,
                adjusted_p,
                verdict,
                bound,
            }
        })
        .collect()
}

/// How far from 1 the ratio may be, at most.
fn bound(ratio: &Estimate) -> Option<f64> {
    let (lo, hi) = (ratio.interval.lo?, ratio.interval.hi?);
    Some((hi - 1.0).abs().max((1.0 - lo).abs()))
}

fn direction(metric: &Metric, difference: f64) -> Verdict {
    let is_of_speed = matches!(metric.estimate.unit.as_str(), "ns" | "GHz" | "1/s");
    let is_more = difference > 0.0;
    match (metric.better, is_of_speed) {
        (Better::Lower, true) if is_more => Verdict::Slower,
        (Better::Lower, true) => Verdict::Faster,
        (Better::Higher, true) if is_more => Verdict::Faster,
        (Better::Higher, true) => Verdict::Slower,
        _ if is_more => Verdict::More,
        _ => Verdict::Less,
    }
}

fn words(verdict: Verdict, ratio: Option<&Estimate>, bound: Option<f64>, has_p: bool) -> String {
    let by = ratio.map_or(String::new(), |ratio| match ratio.value {
        r if r >= 2.0 => format!(", {r:.1} times"),
        r if r <= 0.5 => format!(", {:.1} times less", 1.0 / r),
        r => format!(" by {:.1} %", (r - 1.0).abs() * 100.0),
    });
    match verdict {
        Verdict::Faster => format!("faster{}", by.replace(" less", "")),
        Verdict::Slower => format!("slower{}", by.replace(" less", "")),
        Verdict::Less => format!("less{}", by.replace(" less", "")),
        Verdict::More => format!("more{by}"),
        Verdict::Alike => {
            let per_cent = bound.unwrap_or(0.0) * 100.0;
            format!("no difference larger than {} %", upwards(per_cent))
        }
        Verdict::CannotTell if !has_p => "cannot tell: no interval".to_owned(),
        Verdict::CannotTell => "cannot tell".to_owned(),
    }
}

/// Two digits at most, never less than it is.
fn upwards(per_cent: f64) -> String {
    let tenths = (per_cent * 10.0 - 1e-9).ceil().max(0.0) / 10.0;
    match tenths {
        large if large >= 10.0 => format!("{:.0}", per_cent.ceil()),
        small => format!("{small:.1}"),
    }
}

fn summary(rows: &[Row], level: f64) -> Summary {
    let count = |is: &dyn Fn(&Row) -> bool| rows.iter().filter(|row| is(row)).count() as u64;
    let tested = count(&|row| row.p.is_some());
    let is_better = |row: &Row| match row.better {
        Better::Lower => row.difference.value < 0.0,
        Better::Higher => row.difference.value > 0.0,
        Better::Neither => false,
    };
    let is_worse = |row: &Row| row.better != Better::Neither && !is_better(row);
    Summary {
        compared: rows.len() as u64,
        differ: count(&Row::differs),
        better: count(&|row| row.differs() && is_better(row)),
        worse: count(&|row| row.differs() && is_worse(row)),
        differ_alone: count(&|row| row.p.is_some_and(|p| p <= 1.0 - level)),
        expected_by_chance: tested as f64 * (1.0 - level),
        alike: count(&|row| row.verdict == Verdict::Alike),
        cannot_tell: count(&|row| row.verdict == Verdict::CannotTell),
    }
}

/// What makes two documents hard to compare.
fn warnings(a: &Side, b: &Side) -> Vec<Warning> {
    let (of_a, of_b) = (&a.about.host, &b.about.host);
    let mut warnings = Vec::new();
    let mut warn = |code: &str, text: String| {
        warnings.push(Warning {
            code: code.to_owned(),
            text,
        });
    };
    let mut other = |what: &str, a: &str, b: &str| {
        if a != b {
            warn("other_machine", format!("{what}: {a:?} in A, {b:?} in B"));
        }
    };
    other("CPU model", &of_a.cpu_model, &of_b.cpu_model);
    other("clock", &of_a.clock, &of_b.clock);
    other(
        "version of undertick",
        &of_a.tool_version,
        &of_b.tool_version,
    );
    for (which, side) in [("A", a), ("B", b)] {
        if side.interrupted {
            warn(
                "interrupted",
                format!("{which} was interrupted: its figures have fewer repetitions"),
            );
        }
    }
    if a == b {
        warn("same", "both are the same document".to_owned());
    }
    warnings
}

#[cfg(test)]
#[path = "compare/tests.rs"]
mod tests;
