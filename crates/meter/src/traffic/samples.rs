//! Single samples of a step, the causes of those far over the median, and how many of a lock found
//! it taken.

use super::bulk::median;
use super::evidence::Cause;
use super::read::Recorded;
use super::read::Stamp;
use super::table::{Scale, values};
use undertick_experiment::Mark;
use undertick_experiment::script::{Plan, Verb};

/// Every sample of one step of a process in one repetition.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// Durations until the process's next stamp, ns.
    pub ns: Vec<f64>,
    /// Samples over ten times the median, with their causes.
    pub anomalies: Vec<Anomaly>,
    /// For a step that takes a lock: the number of samples at whose begin another process had it.
    pub found_taken: u64,
}

/// A sample over ten times the median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Anomaly {
    /// Duration until the process's next stamp, ns.
    pub ns: f64,
    /// The disturbance of the process itself.
    pub cause: Option<Cause>,
    /// Whether another thread of the recording came onto a CPU during the sample.
    pub another_came: bool,
}

/// Anomalies are over this many times the median. (TRAMS's are over as many times the minimum; but
/// the minimum of a wait is that of the few that found the lock free.)
const ANOMALY: f64 = 10.0;

pub(super) fn samples(
    recorded: &Recorded,
    plan: &Plan,
    scale: &Scale,
    process: usize,
    step: usize,
) -> Samples {
    let values = values(&recorded.stamps, plan);
    let evidence = scale.evidence(recorded);
    let all: Vec<(i64, i64)> = (values.of[process][step].iter())
        .filter_map(|v| Some((v.start, v.own? - v.start)))
        .collect();
    let ticks: Vec<i64> = all.iter().map(|(_, ticks)| *ticks).collect();
    let usual = median(&ticks).unwrap_or(0.0).max(1.0);
    let tid = recorded.tids[process].unwrap_or(-1);
    let anomalies = (all.iter())
        .filter(|(_, ticks)| *ticks as f64 > ANOMALY * usual)
        .map(|&(start, ticks)| {
            let found = evidence.disturbances(tid, &[], start, start + ticks);
            let there = |c: &Cause| found.ticks[*c as usize].is_some();
            Anomaly {
                ns: scale.ns(ticks),
                cause: Cause::ALL.into_iter().find(there),
                another_came: evidence.another_came(tid, start, start + ticks),
            }
        });
    Samples {
        ns: all.iter().map(|(_, ticks)| scale.ns(*ticks)).collect(),
        anomalies: anomalies.collect(),
        found_taken: match plan.processes[process].steps[step].verb {
            Verb::Lock { lock } => found_taken(&recorded.stamps, plan, lock, process),
            _ => 0,
        },
    }
}

/// Number of times that the process began to take the lock while another had it. A process has it
/// from the stamp after its step that takes it to the stamp after its step that releases it.
fn found_taken(stamps: &[Stamp], plan: &Plan, lock: usize, process: usize) -> u64 {
    let verb = |process: usize, mark: Option<Mark>| match mark {
        Some(Mark::Step(step)) => Some(&plan.processes[process].steps[step].verb),
        _ => None,
    };
    let mut inside: Vec<Option<Mark>> = vec![None; plan.processes.len()];
    let (mut holder, mut found) = (None, 0);
    for stamp in stamps {
        match verb(stamp.process, inside[stamp.process]) {
            Some(Verb::Lock { lock: taken }) if *taken == lock => holder = Some(stamp.process),
            Some(Verb::Unlock { lock: left }) if *left == lock && holder == Some(stamp.process) => {
                holder = None;
            }
            _ => {}
        }
        inside[stamp.process] = stamp.begins;
        let takes = verb(stamp.process, stamp.begins);
        if stamp.process == process
            && matches!(takes, Some(Verb::Lock { lock: wanted }) if *wanted == lock)
        {
            found += u64::from(holder.is_some_and(|holder| holder != process));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use undertick_experiment::Experiment;

    use super::*;

    #[test]
    fn a_lock_is_found_taken() {
        let process = |name: &str| {
            format!(
                "[[process]]\nname = {name:?}\n[[process.step]]\nlock = \"m\"\n[[process.step]]\nnull = true\n\
                 [[process.step]]\nunlock = \"m\"\n[[process.step]]\nnull = true\nname = \"away\"\n"
            )
        };
        let text = format!(
            "[lock.m]\nkind = \"spin\"\n{}{}",
            process("A"),
            process("B")
        );
        let experiment = Experiment::new([("s".to_owned(), text)]).expect("a good script");
        let plan = &experiment.setting(0).plan;
        const LOCK: Option<Mark> = Some(Mark::Step(0));
        const HOLD: Option<Mark> = Some(Mark::Step(1));
        const UNLOCK: Option<Mark> = Some(Mark::Step(2));
        const AWAY: Option<Mark> = Some(Mark::Step(3));
        let order = [
            (0, LOCK), // free
            (0, HOLD),
            (1, LOCK), // B finds it taken
            (0, UNLOCK),
            (1, HOLD), // B has it before A is out of its unlock
            (0, AWAY),
            (0, LOCK), // A finds it taken
            (1, UNLOCK),
            (0, HOLD),
            (1, AWAY),
            (1, LOCK), // B finds it taken
            (0, UNLOCK),
            (0, AWAY),
            (0, LOCK), // nobody is out of the step that takes it
            (1, HOLD),
            (1, UNLOCK),
            (1, AWAY),
            (0, HOLD),
            (0, UNLOCK),
            (0, AWAY),
            (1, LOCK), // free: A has released it
            (1, HOLD),
            (1, UNLOCK),
            (1, AWAY),
            (1, None),
            (0, LOCK), // free
            (0, HOLD),
            (0, None),
        ];
        let stamps: Vec<Stamp> = (order.into_iter().enumerate())
            .map(|(ts, (process, begins))| Stamp {
                ts: ts as i64,
                process,
                begins,
            })
            .collect();
        assert_eq!(found_taken(&stamps, plan, 0, 0), 1);
        assert_eq!(found_taken(&stamps, plan, 0, 1), 2);
    }
}
