//! Why a snapshot is made, in words and figures.

use std::path::Path;

use undertick_format::manifest;
use undertick_trigger::{Hit, Measured, Ring, Rule};

use crate::thread_state;

/// What happened, for the manifest. The state of a thread is read only if its process has `session`
/// mapped: a program may write the number of any process.
pub(super) fn reason(hit: &Hit, rule: &Rule, session: &Path) -> manifest::Triggered {
    let name = rule.name().unwrap_or_default();
    let (text, took_ns, is_open) = match hit.measured {
        Measured::Took(ns, limit) => {
            let text = format!("{name} took {}, more than {}", time(ns), time(limit));
            (text, Some(ns), false)
        }
        Measured::OpenFor(ns) => {
            let text = format!("{name} was open for {} and had not ended", time(ns));
            (text, Some(ns), true)
        }
        Measured::Came => (format!("{name} came"), None, false),
        Measured::PerSecond(rate) => (
            format!("{name} came {} times a second", figure(rate)),
            None,
            false,
        ),
        Measured::Lost(1) => ("1 event was lost".to_owned(), None, false),
        Measured::Lost(n) => (format!("{n} events were lost"), None, false),
    };
    let thread = hit.ring.map(|ring| (ring.pid, ring.tid));
    let is_ours = |ring: &Ring| ring.is_here && has_mapped(ring.pid, session);
    let state = (hit.ring.filter(|_| is_open))
        .filter(is_ours)
        .and_then(|ring| thread_state::of_thread(ring.pid, ring.tid));
    manifest::Triggered {
        rule: rule.to_string(),
        text: match &state {
            Some(state) => format!("{text}: its thread was {}", says(state)),
            None => text,
        },
        pid: thread.map(|(pid, _)| pid),
        tid: thread.map(|(_, tid)| tid),
        ts: hit.at as i64,
        began_ts: hit.began.map(|began| began as i64),
        took_ns,
        state,
    }
}

fn says(state: &manifest::ThreadState) -> String {
    let mut text = match &state.waits_in {
        Some(function) => format!("{} in {function}", state.state),
        None => state.state.clone(),
    };
    if let (Some(cpu), false) = (state.cpu, state.others_on_cpu.is_empty()) {
        text += &format!(
            " or ready on CPU {cpu}, beside {}",
            state.others_on_cpu.join(", ")
        );
    }
    text
}

/// A time in words, with three digits.
fn time(ns: f64) -> String {
    let (unit, by) = match ns.abs() {
        ..1e3 => ("ns", 1.0),
        ..1e6 => ("us", 1e3),
        ..1e9 => ("ms", 1e6),
        _ => ("s", 1e9),
    };
    format!("{} {unit}", figure(ns / by))
}

/// A figure with three digits.
fn figure(value: f64) -> String {
    let decimals = match value.abs() {
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Whether a process has a file of the session mapped.
fn has_mapped(pid: i32, session: &Path) -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    maps.contains(&*session.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits() {
        let shown = [5.2e6, 999.4, 1.0e9, 12_345.0, 70.0].map(time);
        assert_eq!(shown, ["5.2 ms", "999 ns", "1 s", "12.3 us", "70 ns"]);
    }

    /// A program may write any process number into its rings.
    #[test]
    fn the_state_of_a_process_without_the_session_is_not_read() {
        let own = std::process::id() as i32;
        let rule = "request open for 1s".parse().unwrap();
        let hit = |is_here| Hit {
            rule: 0,
            ring: Some(Ring {
                number: 1,
                is_here,
                pid: own,
                tid: own,
            }),
            at: 5,
            began: Some(1),
            measured: Measured::OpenFor(2e9),
        };
        let program = std::env::current_exe().unwrap();
        assert!(reason(&hit(true), &rule, &program).state.is_some());
        assert!(reason(&hit(false), &rule, &program).state.is_none());
        let other = reason(&hit(true), &rule, Path::new("/dev/shm/undertick-0-1-2-3"));
        assert!(other.state.is_none());
        assert_eq!(other.text, "request was open for 2 s and had not ended");
    }
}
