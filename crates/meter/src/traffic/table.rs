//! From stamps to steps and passes, to values out of place, to their causes.

use undertick_document::figures;
use undertick_document::passes::{Counts, Mark as Marked, NO_EVIDENCE, ORDER, Passes, Step};
use undertick_experiment::script::{Plan, Setting, Verb};
use undertick_experiment::{Mark, Repetition};
use undertick_format::manifest::{Kernel, Manifest};

use super::bulk::{Bulk, CLOCK_STEPS, SCATTERS, TIMES, median};
use super::evidence::{By, CAUSES, Cause, Disturbances, Evidence, vector};
use super::read::{Recorded, Stamp};

/// Maximum distance of two kernel rows about one switch, ns.
const APART_NS: f64 = 2_000.0;
/// A disturbance in this share of a step's values is part of the step.
const USUAL: f64 = 0.5;

/// The trace's clock, and the available kernel evidence.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    pub(super) ns_per_tick: f64,
    pub(super) step_ticks: f64,
    pub(super) error_ticks: i64,
    /// Says which evidence the kernel provided.
    pub(super) evidence_text: String,
}

impl Scale {
    pub(super) fn from_manifest(manifest: &Manifest) -> Self {
        let ns_per_tick = manifest.clock.ns_per_tick();
        let error_ns = manifest.kernel.as_ref().map_or(0.0, |k| k.error_ns);
        Self {
            ns_per_tick,
            step_ticks: manifest.clock.granularity_ticks.max(1.0),
            error_ticks: (error_ns / ns_per_tick) as i64,
            evidence_text: evidence_text(manifest.kernel.as_ref()),
        }
    }

    pub(super) fn ns(&self, ticks: i64) -> f64 {
        ticks as f64 * self.ns_per_tick
    }

    pub(super) fn evidence(&self, recorded: &Recorded) -> Evidence {
        let apart = self.error_ticks + (APART_NS / self.ns_per_tick) as i64;
        Evidence::new(&recorded.kernel, self.error_ticks, apart)
    }
}

/// Says which evidence the kernel provided, and what is left without evidence.
pub(super) fn evidence_text(kernel: Option<&Kernel>) -> String {
    let Some(kernel) = kernel else {
        return "The kernel was not asked (--kernel off): nothing can be explained.".to_owned();
    };
    let used = kernel.sources.iter().filter(|source| source.used);
    let names: Vec<&str> = used.clone().map(|source| source.name.as_str()).collect();
    let tells = |what: &str| used.clone().any(|s| s.tells.iter().any(|t| t == what));
    let mut text = format!("The kernel's evidence is from {}.", names.join(", "));
    if !tells("switch_out") {
        text += " It tells no switches here: nothing can be explained.";
    } else if !tells("interrupt") {
        text += " Without tracefs (root) it reports neither interrupts nor softirqs nor which process was woken: such \
                 values stand without evidence.";
    } else {
        text += " It reports nothing below the kernel: what the host of a guest, the firmware or other CPUs' use of \
                 caches and memory took stands without evidence.";
    }
    if kernel.lost > 0 || kernel.losses_not_counted > 0 {
        text += " Some of its records were lost.";
    }
    text
}

/// The subject of a table.
pub(super) struct TableSubject<'a> {
    pub(super) script: &'a str,
    pub(super) setting: &'a Setting,
    pub(super) repetition: &'a Repetition,
}

/// One value of a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    pub(super) start: i64,
    /// The next stamp of any process, with that process and the step that the stamp ended.
    pub(super) next: Option<(i64, After)>,
    /// The next stamp of the same process.
    pub(super) own: Option<i64>,
    /// Whether it wakes a process that does not wait.
    pub(super) needless: bool,
}

/// The process that left a step, and the step; `None`: no step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct After {
    pub(super) process: usize,
    step: Option<usize>,
}

impl After {
    /// Whether that was a step in which the process waited.
    pub(super) fn waited(self, plan: &Plan) -> bool {
        let steps = &plan.processes[self.process].steps;
        self.step.is_some_and(|s| waits(&steps[s].verb))
    }
}

fn waits(verb: &Verb) -> bool {
    matches!(verb, Verb::Block | Verb::Wait)
}

/// The values of all steps, by process and step.
pub(super) struct Values {
    pub(super) of: Vec<Vec<Vec<Value>>>,
    passes: u64,
}

pub(super) fn values(stamps: &[Stamp], plan: &Plan) -> Values {
    let mut of: Vec<Vec<Vec<Value>>> = (plan.processes.iter())
        .map(|p| vec![Vec::new(); p.steps.len()])
        .collect();
    // The current step of each process.
    let mut inside: Vec<Option<usize>> = (plan.processes.iter())
        .map(|p| p.starts_blocked.then(|| p.steps.len() - 1))
        .collect();
    for (i, stamp) in stamps.iter().enumerate() {
        let step = inside[stamp.process].take();
        if let Some(value) = step.and_then(|step| of[stamp.process][step].last_mut()) {
            value.own = Some(stamp.ts);
        }
        if let Some(Mark::Step(step)) = stamp.begins {
            inside[stamp.process] = Some(step);
            of[stamp.process][step].push(Value {
                start: stamp.ts,
                next: stamps.get(i + 1).map(|next| {
                    let process = next.process;
                    let step = inside[process];
                    (next.ts, After { process, step })
                }),
                own: None,
                needless: needless(plan, stamp.process, step, &inside),
            });
        }
    }
    let counts = of.iter().flatten().map(Vec::len);
    Values {
        passes: counts.max().unwrap_or(0) as u64,
        of,
    }
}

/// Whether it wakes a process that is not in a step in which it waits. A process without a stamp so
/// far is inside its last step.
fn needless(plan: &Plan, process: usize, step: usize, inside: &[Option<usize>]) -> bool {
    let Verb::Wakeup { process: woken } = plan.processes[process].steps[step].verb else {
        return false;
    };
    let steps = &plan.processes[woken].steps;
    !inside[woken].is_some_and(|step| waits(&steps[step].verb))
}

/// The table of one repetition.
pub(super) fn passes(
    subject: &TableSubject<'_>,
    recorded: &Recorded,
    scale: &Scale,
    shown: usize,
) -> Passes {
    let plan = &subject.setting.plan;
    let values = values(&recorded.stamps, plan);
    let measured = |p: &usize| plan.processes[*p].measured;
    let cpus: Vec<Option<usize>> = ((0..plan.processes.len()).filter(measured))
        .map(|p| subject.repetition.cpus.get(p).copied().flatten())
        .collect();
    let one_cpu = cpus.iter().all(|cpu| cpu.is_some() && *cpu == cpus[0]);
    let evidence = scale.evidence(recorded);
    let shown = shown.min(values.passes as usize);
    let mut found = Passes {
        script: subject.script.to_owned(),
        parameters: subject.setting.parameters.iter().cloned().collect(),
        placement: placement(plan, subject.repetition),
        repetition: subject.repetition.repetition + 1,
        passes: values.passes,
        shown: shown as u64,
        one_cpu,
        rule: rule(one_cpu, scale),
        evidence: scale.evidence_text.clone(),
        steps: Vec::new(),
        marks: Vec::new(),
        counts: Counts::default(),
    };
    if recorded.cut {
        found.rule += " The repetition goes on: only its begin is looked at.";
    }
    for p in (0..plan.processes.len()).filter(measured) {
        for s in plan.processes[p].loop_to..plan.processes[p].steps.len() {
            let of_step = OfStep {
                plan,
                process: p,
                step: s,
                values: &values.of[p][s],
                one_cpu,
                recorded,
                evidence: &evidence,
                scale,
            };
            of_step.add_to(&mut found, shown);
        }
    }
    found.steps.sort_by_key(|step| step.number);
    found.marks.sort_by_key(|m| (m.pass, m.number));
    let counts = &mut found.counts;
    counts.without_evidence = (counts.out_of_place > 0).then(|| {
        let none = counts.by.get(NO_EVIDENCE).copied().unwrap_or(0);
        none as f64 / counts.out_of_place as f64
    });
    found
}

fn placement(plan: &Plan, repetition: &Repetition) -> String {
    let each = (plan.processes.iter().zip(&repetition.cpus)).map(|(process, cpu)| match cpu {
        Some(cpu) => format!("{} on CPU {cpu}", process.name),
        None => format!("{} anywhere", process.name),
    });
    each.chain(repetition.policy_words())
        .collect::<Vec<_>>()
        .join(", ")
}

fn rule(one_cpu: bool, scale: &Scale) -> String {
    let which = match one_cpu {
        true => "A value of \"pass\" is out of place",
        false => {
            "The processes are not on one CPU, so the next stamp does not tell who runs next: a value of \"own\" is \
             out of place"
        }
    };
    format!(
        "{which} if it is over {TIMES} times its step's median in this repetition, at least {CLOCK_STEPS} steps of the clock ({}) above it, and above it by {SCATTERS} times the scatter of the middle half of its values.",
        figures::duration(CLOCK_STEPS * scale.step_ticks * scale.ns_per_tick)
    )
}

/// A step with all its values.
struct OfStep<'a> {
    plan: &'a Plan,
    process: usize,
    step: usize,
    values: &'a [Value],
    one_cpu: bool,
    recorded: &'a Recorded,
    evidence: &'a Evidence,
    scale: &'a Scale,
}

impl OfStep<'_> {
    fn add_to(&self, found: &mut Passes, shown: usize) {
        let process = &self.plan.processes[self.process];
        let step = &process.steps[self.step];
        let ticks = |of: &dyn Fn(&Value) -> Option<i64>| -> Vec<Option<i64>> {
            self.values.iter().map(of).collect()
        };
        let next = ticks(&|v| Some(v.next?.0 - v.start));
        let own = ticks(&|v| Some(v.own? - v.start));
        let marked = if self.one_cpu { &next } else { &own };
        let (counted, marks) = self.out_of_place(marked);
        found.counts.values += counted;
        found.counts.out_of_place += marks.len() as u64;
        for (_, mark) in &marks {
            *found.counts.by.entry(mark.cause.clone()).or_default() += 1;
        }
        let ns = |of: &[Option<i64>]| -> Vec<Option<f64>> {
            let first = of.iter().take(shown);
            let mut ns: Vec<Option<f64>> =
                first.map(|t| t.map(|ticks| self.scale.ns(ticks))).collect();
            ns.resize(shown, None);
            ns
        };
        let middle = |of: &[Option<i64>]| {
            median(&of.iter().flatten().copied().collect::<Vec<i64>>())
                .map(|ticks| ticks * self.scale.ns_per_tick)
        };
        let others =
            (self.values.iter()).filter(|v| v.next.is_some_and(|n| n.1.process != self.process));
        found.steps.push(Step {
            process: process.name.clone(),
            number: step.number,
            name: step.name.clone(),
            next_ns: ns(&next),
            own_ns: ns(&own),
            next_median_ns: middle(&next),
            own_median_ns: middle(&own),
            given_away: others.count() as f64 / self.values.len().max(1) as f64,
            out_of_place: marks.len() as u64,
        });
        let in_table = marks.into_iter().filter(|(pass, _)| *pass < shown);
        found.marks.extend(in_table.map(|(_, mark)| mark));
    }

    /// The number of values, and those out of place.
    fn out_of_place(&self, ticks: &[Option<i64>]) -> (u64, Vec<(usize, Marked)>) {
        let there: Vec<i64> = ticks.iter().flatten().copied().collect();
        let Some(bulk) = Bulk::from_ticks(&there, self.scale.step_ticks) else {
            return (0, Vec::new());
        };
        let (mut out, mut usual, mut order) = (Vec::new(), Vec::new(), Vec::new());
        for (pass, (value, ticks)) in self.values.iter().zip(ticks).enumerate() {
            match ticks {
                Some(t) if bulk.is_out(*t) => out.push((pass, *t, self.found(value.start, *t))),
                Some(t) => {
                    usual.push(self.found(value.start, *t));
                    order.extend(value.next.map(|(_, after)| after));
                }
                None => {}
            }
        }
        let usual = Usual::from_disturbances(&usual);
        let order = most_often(&order);
        let marks = out.into_iter().map(|(pass, ticks, found)| {
            let over_ns = bulk.over(ticks) * self.scale.ns_per_tick;
            let mut mark = self.mark(pass, ticks, over_ns, usual.explain(&found, bulk.least_over));
            let after = self.values[pass].next.map(|(_, after)| after);
            if mark.cause == NO_EVIDENCE && self.one_cpu && after != order {
                mark.cause = ORDER.to_owned();
                mark.detail = format!("{}; usually {}", self.came(after), self.came(order));
            }
            (pass, mark)
        });
        (there.len() as u64, marks.collect())
    }

    fn found(&self, start: i64, ticks: i64) -> Disturbances {
        found(
            self.recorded,
            self.evidence,
            self.process,
            start,
            start + ticks,
        )
    }

    fn mark(&self, pass: usize, ticks: i64, over_ns: f64, why: Option<Why>) -> Marked {
        let process = &self.plan.processes[self.process];
        Marked {
            process: process.name.clone(),
            number: process.steps[self.step].number,
            pass: pass as u64 + 1,
            value_ns: self.scale.ns(ticks),
            over_ns,
            cause: why.map_or(NO_EVIDENCE, |why| why.cause.name()).to_owned(),
            taken_ns: why.and_then(|why| why.over).map(|t| self.scale.ns(t)),
            detail: why.map_or_else(String::new, |why| self.detail(why)),
        }
    }

    /// The process that ran next, in words.
    fn came(&self, after: Option<After>) -> String {
        let Some(After { process, step }) = after else {
            return "nobody".to_owned();
        };
        let process = &self.plan.processes[process];
        match step {
            Some(step) => format!("{} out of its {}", process.name, process.steps[step].number),
            None => format!("{} between two passes", process.name),
        }
    }

    fn detail(&self, why: Why) -> String {
        match (why.cause, why.by) {
            (Cause::Preempted, By::Thread(tid)) => {
                let is_it = |p: &Option<i32>| *p == Some(tid);
                match self.recorded.tids.iter().position(is_it) {
                    Some(p) => format!("by {}", self.plan.processes[p].name),
                    None => format!("by thread {tid}, of this experiment but not in its script"),
                }
            }
            (Cause::Preempted, _) => {
                "by a program that was not recorded: its name is not known".to_owned()
            }
            (Cause::Waited, _) => "it gave its CPU away, which it usually does not here".to_owned(),
            (Cause::Switched, _) => {
                "no process of the script had the CPU: another program, or nobody".to_owned()
            }
            (cause, By::Vector(number)) => vector(cause, number),
            (Cause::Migrated, By::Cpu(cpu)) => format!("from CPU {cpu}"),
            _ => String::new(),
        }
    }
}

/// The most frequent one.
fn most_often(all: &[After]) -> Option<After> {
    let mut counts: Vec<(After, usize)> = Vec::new();
    for after in all {
        match counts.iter_mut().find(|(other, _)| other == after) {
            Some((_, n)) => *n += 1,
            None => counts.push((*after, 1)),
        }
    }
    counts
        .into_iter()
        .max_by_key(|(_, n)| *n)
        .map(|(after, _)| after)
}

fn found(
    recorded: &Recorded,
    evidence: &Evidence,
    process: usize,
    start: i64,
    end: i64,
) -> Disturbances {
    let others: Vec<i32> = (recorded.tids.iter().enumerate())
        .filter(|(p, _)| *p != process)
        .filter_map(|(_, tid)| *tid)
        .collect();
    evidence.disturbances(recorded.tids[process].unwrap_or(-1), &others, start, end)
}

/// The explanation of a value.
#[derive(Clone, Copy, Debug)]
struct Why {
    cause: Cause,
    by: By,
    /// How much longer than usual it took, ticks; `None`: unknown.
    over: Option<i64>,
}

/// The disturbances in a step's values that are not out of place.
struct Usual {
    /// The share of these values in which each cause occurs.
    share: [f64; CAUSES],
    /// The usual duration of each cause there, ticks; 0 for one that is not usual.
    ticks: [f64; CAUSES],
}

impl Usual {
    fn from_disturbances(all: &[Disturbances]) -> Self {
        let mut usual = Self {
            share: [0.0; CAUSES],
            ticks: [0.0; CAUSES],
        };
        for cause in 0..CAUSES {
            let there: Vec<i64> = all.iter().filter_map(|f| f.ticks[cause]).collect();
            usual.share[cause] = there.len() as f64 / all.len().max(1) as f64;
            if usual.share[cause] >= USUAL {
                usual.ticks[cause] = median(&there).unwrap_or(0.0);
            }
        }
        usual
    }

    /// The cause with the largest excess over its usual time. Causes whose duration the kernel does
    /// not report come last.
    fn explain(&self, found: &Disturbances, least_over: f64) -> Option<Why> {
        let each = Cause::ALL.into_iter().filter_map(|cause| {
            let at = cause as usize;
            let ticks = found.ticks[at]?;
            let over = ticks as f64 - self.ticks[at];
            let by = found.by[at];
            // For a step that waits, a longer wait is not a cause.
            if cause == Cause::Waited && self.share[at] >= USUAL {
                return None;
            }
            if over >= least_over {
                return Some(Why {
                    cause,
                    by,
                    over: Some(over as i64),
                });
            }
            // If it does not usually occur in a step, its occurrence is sufficient.
            let is_point = matches!(cause, Cause::Migrated | Cause::Fault);
            (is_point && self.share[at] < USUAL).then_some(Why {
                cause,
                by,
                over: None,
            })
        });
        // Returns the first of equals: `max_by_key` would return the last.
        each.reduce(|best, one| if one.over > best.over { one } else { best })
    }
}
