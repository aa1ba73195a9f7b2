//! The published conclusions of TRAMS, compared with the figures of this machine.

use undertick_report::reproduce::Item;

use super::contended::{CONTENDED, Contended};
use super::five::two_modes;
use crate::compared::{denominator, measured, ns_of, times};
use undertick_units::Estimate;

const CLOCKS: &str = "Are software clocks still two orders dearer than the recorder?";
const GRAIN: &str = "Is coarse grain still advised?";

/// The published conclusions in the light of these figures.
pub(super) fn conclusions(items: &[Item], contended: &[Contended]) -> Vec<String> {
    let of = |id: &str| measured(items, &format!("trams/{id}"));
    let in_ns = |id: &str, value: fn(&Estimate) -> Option<f64>| {
        let figure = of(id)?;
        Some(value(figure)? * ns_of(&figure.unit))
    };
    let value = |id: &str| in_ns(id, |e| Some(e.value));
    let below = |id: &str| in_ns(id, denominator);
    let mut findings = Vec::new();
    if let (Some(_), Some(time), Some(usage)) = (
        value("record/both"),
        value("clock/gettimeofday/median"),
        value("clock/getrusage/median"),
    ) {
        findings.push(match below("record/both") {
            Some(recorder) => clocks(time / recorder, usage / recorder),
            None => {
                format!("{CLOCKS} That cannot be told: a record may as well cost nothing here.")
            }
        });
    }
    if value("lock-unlock/alone").and(value("loop")).is_some() {
        let spin = (contended.iter()).find(|c| c.script == CONTENDED && c.kind == "spin");
        findings.push(match (below("lock-unlock/alone"), below("loop")) {
            (Some(both), Some(turn)) => grain(both, turn, spin, value("fork/0")),
            _ => format!("{GRAIN} That cannot be told: a turn of a loop, or a lock, may as well cost nothing here."),
        });
    }
    let slope = |kind: &str| of(&format!("fork/slope/{kind}"));
    if let (Some(shared), Some(private)) = (slope("shared"), slope("private")) {
        findings.push(forks(shared, private));
    }
    findings.extend(contended.iter().filter_map(two_modes));
    findings
}

/// Are software clocks still two orders of magnitude more expensive than the recorder?
fn clocks(time: f64, usage: f64) -> String {
    let verdict = |ratio: f64| match ratio {
        r if r >= 50.0 => "still about two orders dearer",
        r if r >= 5.0 => "one order dearer",
        r if r > 1.5 => "dearer, by less than one order",
        _ => "no dearer",
    };
    format!(
        "{CLOCKS} Published medians over 6 us: gettimeofday 108, \
         getrusage 140 times. Here gettimeofday is {} ({} times), getrusage {} ({} times).",
        verdict(time),
        times(Some(time)),
        verdict(usage),
        times(Some(usage)),
    )
}

/// Share of the waits that must find a lock taken, for a conclusion on contention.
const MOSTLY_TAKEN: f64 = 0.8;

/// Is coarse granularity still advisable? All times in ns.
pub(super) fn grain(
    both: f64,
    turn: f64,
    contended: Option<&Contended>,
    fork: Option<f64>,
) -> String {
    let turns = both / turn;
    // By subtraction: 46 us over what a turn takes in 7..11 us with a record of 3..6.
    let published = 46.0 / 4.5;
    let verdict = match turns {
        t if t > 2.0 * published => "more than then",
        t if t < published / 2.0 => "less than then, but",
        _ => "as then:",
    };
    let mut text = format!(
        "{GRAIN} A lock and unlock that nobody else wants cost about {} turns of a loop then (of 4 \
         to 5 us, by subtraction) and {} here, {verdict} work of {} turns between two is needed for them to be 1 % of the time.",
        times(Some(published)),
        times(Some(turns)),
        times(Some(turns * 99.0)),
    );
    // A lock that was mostly free says nothing about contention.
    if let Some(contended) = contended {
        let (hand_over, share) = (contended.hand_over(), contended.share_taken());
        text += &format!(
            " Where {} processes want it on as many CPUs, {:.0} % of the waits found it taken",
            contended.processes,
            share * 100.0
        );
        text += &match share {
            share if share < MOSTLY_TAKEN => {
                ", which is too few to say what contention costs.".to_owned()
            }
            _ if hand_over <= 0.0 => {
                ", and passing it on costs nothing beside holding it.".to_owned()
            }
            _ => format!(
                ", and passing it on costs {} turns beside holding it: {}.",
                times(Some(hand_over / turn)),
                match hand_over > 4.0 * both {
                    true => "coarse grain is advised",
                    false => "grain matters little",
                }
            ),
        };
    }
    if let Some(fork) = fork {
        text += &format!(
            " A process made by fork costs {} locks and unlocks (then 1957).",
            times(Some(fork / both))
        );
    }
    text
}

/// Does the time of fork still grow with shared memory? Slopes in ms per MiB.
fn forks(shared: &Estimate, private: &Estimate) -> String {
    let verdict = match denominator(private) {
        None => "that cannot be told",
        Some(private) if shared.value < private / 2.0 => "no longer",
        Some(_) => "yes",
    };
    let grows = |slope: &Estimate| match slope.interval.lo {
        Some(lo) if lo > 0.0 => format!("{:.1} us a MiB", slope.value * 1e3),
        _ => "nothing that can be distinguished from 0".to_owned(),
    };
    format!(
        "Does fork still grow with shared memory (66.7 ms a MiB by the published points)? Here by {} of shared and by {} \
         of private memory: {verdict}.",
        grows(shared),
        grows(private)
    )
}
