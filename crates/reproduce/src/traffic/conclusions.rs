//! The published conclusions of the traffic controller's memo, compared with the figures of this
//! machine.

use undertick_document::Report;
use undertick_report::reproduce::Item;

use super::quantities::WAKES;
use super::{BACKENDS, BENT, BY_DEFAULT, ORDERED, PLACEMENTS, SLIGHT, ShareOf, Turned, of_steps};
use crate::compared::{Figures, cell, denominator, measured, times};

/// The published conclusions in the light of these figures.
pub(super) fn conclusions(items: &[Item], report: &Report, turns: &[Turned]) -> Vec<String> {
    let value = |id: String| Some(measured(items, &id)?.value);
    let wakeup = |backend: &str, place: &str| {
        denominator(measured(
            items,
            &format!("traffic/wakeup/{backend}/{place}"),
        )?)
    };
    let mut findings = Vec::new();
    for placement in &PLACEMENTS {
        let each: Vec<(&str, f64)> = (BACKENDS.iter())
            .filter_map(|backend| {
                let wakeup = wakeup(backend, placement.id)?;
                let both = value(format!("traffic/block-wakeup/{backend}/{}", placement.id))?;
                Some((*backend, both / wakeup))
            })
            .collect();
        findings.extend(twice(placement.id, &each));
        findings.extend(alike(placement.id, &value, &wakeup));
    }
    findings.extend(preempted(turns));
    let lines: Vec<(&str, Option<f64>, Option<f64>, String)> = (BACKENDS.iter())
        .filter_map(|backend| {
            let line =
                Figures(report).line("notify", &[("policy", ORDERED), ("backend", backend)])?;
            let p = line
                .lack_of_fit_p
                .filter(|_| line.worst_share > Some(SLIGHT));
            let slope = cell(Some(&line.slope));
            Some((*backend, line.slope.interval.lo, p, slope))
        })
        .collect();
    findings.extend(grows(&lines));
    findings
}

/// Is block + wakeup still about twice a wakeup?
fn twice(place: &str, each: &[(&str, f64)]) -> Option<String> {
    let published = 2000.0 / 850.0;
    let still = |ratio: f64| (1.5..3.5).contains(&ratio);
    let words = |(backend, ratio): &(&str, f64)| {
        let is = if still(*ratio) { "" } else { " (no longer)" };
        format!("{backend} {}{is}", times(Some(*ratio)))
    };
    if each.is_empty() {
        return None;
    }
    let all: Vec<String> = each.iter().map(words).collect();
    let held = each.iter().filter(|(_, ratio)| still(*ratio)).count();
    Some(format!(
        "Is block + wakeup still about twice a wakeup? Published: 2 ms over 0.85 ms, {} times. Here, {place}: {}; it \
         holds for {held} of {} backends.",
        times(Some(published)),
        all.join(", "),
        each.len()
    ))
}

/// Where does the wakeup contain the switch?
fn preempted(turns: &[Turned]) -> Option<String> {
    let known = |placement: &super::Placement| -> Vec<String> {
        (BACKENDS.iter())
            .filter_map(|backend| {
                let share = ShareOf::of(of_steps(turns, placement, backend, WAKES))?;
                Some(format!("{backend} {:.1} %", share.others().percent()))
            })
            .collect()
    };
    let (by_default, ordered) = (known(&BY_DEFAULT), known(&PLACEMENTS[0]));
    (!by_default.is_empty() || !ordered.is_empty()).then(|| {
        format!(
            "Where does the woken process push the waker off the CPU, so that \"wakeup\" contains the switch? By the \
             published order of the steps nowhere. Here, on one CPU, by the order of the stamps, with the default \
             policy: {}; with the policy {ORDERED}: {}.",
            by_default.join(", "),
            ordered.join(", ")
        )
    })
}

/// Are the four small ones still alike, and small?
fn alike(
    place: &str,
    value: &dyn Fn(String) -> Option<f64>,
    wakeup: &dyn Fn(&str, &str) -> Option<f64>,
) -> Option<String> {
    let small = ["wait-nothing", "notify-nobody", "add-event", "delete-event"];
    let each: Vec<(&str, f64, bool)> = (BACKENDS.iter())
        .filter_map(|backend| {
            let of = |id: &str| value(format!("traffic/{id}/{backend}/{place}"));
            let largest = (small.iter())
                .map(|id| of(id))
                .collect::<Option<Vec<f64>>>()?;
            let largest = largest.into_iter().fold(0.0, f64::max);
            let share = largest / wakeup(backend, place)?;
            Some((*backend, share, share <= 0.5))
        })
        .collect();
    if each.is_empty() {
        return None;
    }
    let broken: Vec<String> = (each.iter())
        .filter(|(_, _, holds)| !holds)
        .map(|(backend, share, _)| {
            format!(
                "{backend} breaks it (up to {} wakeups)",
                times(Some(*share))
            )
        })
        .collect();
    let verdict = match broken.is_empty() {
        true => {
            "all backends keep to it: the dearest of the four is less than half a wakeup".to_owned()
        }
        false => broken.join(", "),
    };
    Some(format!(
        "Published: waiting for nothing, notifying nobody, adding and deleting an event cost a quarter of a wakeup \
         (230 us over 894 us). Here, {place}: {verdict}."
    ))
}

/// Does notify still grow by a constant for each waiter? Backend, lower bound of the slope, p of
/// the lack of fit where it matters, slope in words.
fn grows(lines: &[(&str, Option<f64>, Option<f64>, String)]) -> Option<String> {
    let all: Vec<String> = (lines.iter())
        .map(|(backend, lo, p, slope)| {
            let verdict = match (lo, p) {
                (Some(lo), _) if *lo <= 0.0 => "does not surely grow",
                (None, _) => "does not surely grow",
                (_, Some(p)) if *p < BENT => "grows, but not by a constant",
                _ => "yes",
            };
            format!("{backend} {verdict} ({slope} a waiter)")
        })
        .collect();
    (!all.is_empty()).then(|| {
        format!(
            "Does notify still grow by a constant for each that waits (published 200 us + 100 us each)? Here: {}.",
            all.join(", ")
        )
    })
}
