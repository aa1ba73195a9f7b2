//! What is known of the calls of a path, as numbers for the estimator and as words for the report.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use undertick_document::{Must, StateCondition, StateFact, StateReport};
use undertick_estimate::states::{Condition, Fact, Observed, State};
use undertick_format::manifest::Manifest;
use undertick_units::Estimate;

use undertick_analyze::watch::running::Running;
use undertick_analyze::watch::{Call, MOST_INSIDE};

/// Most threads whose running beside a call is looked up.
const MOST_THREADS: usize = 64;
/// Most events inside calls that are told apart, the most frequent ones.
const MOST_EVENTS: usize = 16;
/// Share of the calls that carry a number, from which that number is a fact of them.
const CARRY: f64 = 0.99;

/// What is known of the trace of a run.
pub(crate) struct About {
    /// Name of the run, where there are several.
    pub(crate) run: Option<String>,
    pub(crate) running: Running,
    pub(crate) ns_per_tick: f64,
    /// The time from which times count, ticks.
    pub(crate) first: i64,
    /// The program's points were switched off and on.
    pub(crate) is_switched: bool,
    /// Names of threads, by their numbers.
    pub(crate) roles: HashMap<i32, String>,
    /// Threads of rings.
    pub(crate) threads: HashMap<i32, i32>,
}

impl About {
    /// When a call began, ns.
    pub(crate) fn at_ns(&self, call: &Call) -> f64 {
        call.start.wrapping_sub(self.first) as f64 * self.ns_per_tick
    }
}

/// Names of threads, by their numbers.
pub(crate) fn roles(manifest: &Manifest) -> HashMap<i32, String> {
    let threads = manifest.threads.iter();
    threads
        .map(|thread| (thread.tid, thread.name.clone()))
        .collect()
}

/// Whether points of the program were switched off and on.
pub(crate) fn is_switched(manifest: &Manifest) -> bool {
    let switched = manifest.perturbation.as_ref();
    switched.is_some_and(|switched| switched.pairs > 0 && !switched.is_of_kernel())
}

/// Threads of rings.
pub(crate) fn threads(manifest: &Manifest) -> HashMap<i32, i32> {
    let rings = manifest.rings.iter();
    rings.map(|ring| (ring.ring, ring.tid)).collect()
}

/// What a fact is about.
#[derive(Clone)]
struct Word {
    fact: StateFact,
    of: Option<String>,
    /// The words of its kinds; empty where the kinds are no and yes, or it is a number.
    kinds: Vec<String>,
}

/// The facts of the calls of one path.
#[derive(Clone)]
pub(crate) struct Facts {
    words: Vec<Word>,
    facts: Vec<Fact>,
    times: Vec<f64>,
    values: Vec<f64>,
}

impl Facts {
    /// `abouts`: what is known of each run of the calls.
    pub(crate) fn new(
        abouts: &[About],
        intervals: &[String],
        events: &[String],
        calls: &[Call],
    ) -> Self {
        let about = |call: &Call| &abouts[call.run];
        let mut all = Self {
            words: Vec::new(),
            facts: Vec::new(),
            times: calls.iter().map(|call| about(call).at_ns(call)).collect(),
            values: (calls.iter())
                .map(|call| call.ticks as f64 * about(call).ns_per_tick)
                .collect(),
        };
        // What the program does comes before what happens to it: of two facts that always come
        // together the first is named. Where points were switched off and on, a call without a span
        // inside may be one whose points were off.
        if !abouts.iter().any(|about| about.is_switched) {
            for (interval, name) in (0..MOST_INSIDE).zip(intervals) {
                let is_inside = |call: &Call| call.inside >> interval & 1 == 1;
                all.whether(StateFact::With, Some(name), calls, is_inside);
            }
            all.numbers(events, calls);
            let nothing = "nothing".to_owned();
            all.among(StateFact::After, calls, |call| {
                let after = call.after.and_then(|after| intervals.get(after as usize));
                Some(after.unwrap_or(&nothing).clone())
            });
        }
        all.whether(StateFact::Faulted, None, calls, |call| call.is_faulted);
        all.whether(StateFact::Resumed, None, calls, |call| call.is_resumed);
        all.among(StateFact::Run, calls, |call| about(call).run.clone());
        all.beside(abouts, calls);
        let are_several = abouts.len() > 1;
        all.among(StateFact::Thread, calls, |call| {
            let About { roles, threads, .. } = about(call);
            let tid = threads.get(&call.ring)?;
            Some(match roles.get(tid) {
                Some(name) => name.clone(),
                // Each run has other numbers.
                None if are_several => "a thread without a name".to_owned(),
                None => format!("thread {tid}"),
            })
        });
        all.among(StateFact::Cpu, calls, |call| {
            let about = about(call);
            let tid = about.threads.get(&call.ring)?;
            Some(about.running.cpu(*tid, call.start)?.to_string())
        });
        all
    }

    /// The facts of some of the calls, by their indices.
    pub(crate) fn some(&self, calls: &[usize]) -> Self {
        let numbers = |of: &[f64]| calls.iter().map(|&at| of[at]).collect();
        Self {
            words: self.words.clone(),
            facts: (self.facts.iter())
                .map(|fact| match fact {
                    Fact::Kind(of) => Fact::Kind(calls.iter().map(|&at| of[at]).collect()),
                    Fact::Number(of) => Fact::Number(numbers(of)),
                })
                .collect(),
            times: numbers(&self.times),
            values: numbers(&self.values),
        }
    }

    /// How long the call with that index took, ns.
    pub(crate) fn value(&self, call: usize) -> f64 {
        self.values[call]
    }

    pub(crate) fn observed(&self, step: f64) -> Observed<'_> {
        Observed {
            times: &self.times,
            values: &self.values,
            step,
            facts: &self.facts,
        }
    }

    /// A fact that is so or not.
    fn whether(
        &mut self,
        fact: StateFact,
        of: Option<&str>,
        calls: &[Call],
        is: impl Fn(&Call) -> bool,
    ) {
        let kinds: Vec<u32> = calls.iter().map(|call| u32::from(is(call))).collect();
        self.add(
            Word {
                fact,
                of: of.map(str::to_owned),
                kinds: Vec::new(),
            },
            kinds,
        );
    }

    /// A fact in words, if it is known of all calls.
    fn among(&mut self, fact: StateFact, calls: &[Call], word: impl Fn(&Call) -> Option<String>) {
        let Some(words) = calls.iter().map(word).collect::<Option<Vec<String>>>() else {
            return;
        };
        let kinds: BTreeSet<&String> = words.iter().collect();
        let kinds: Vec<String> = kinds.into_iter().cloned().collect();
        let place = |word: &String| kinds.partition_point(|kind| kind < word) as u32;
        let places: Vec<u32> = words.iter().map(place).collect();
        self.add(
            Word {
                fact,
                of: None,
                kinds,
            },
            places,
        );
    }

    /// Adds a fact of which there is more than one kind.
    fn add(&mut self, word: Word, kinds: Vec<u32>) {
        if kinds.windows(2).any(|two| two[0] != two[1]) {
            self.words.push(word);
            self.facts.push(Fact::Kind(kinds));
        }
    }

    /// Which events were inside, and the numbers that they carried.
    fn numbers(&mut self, events: &[String], calls: &[Call]) {
        let mut seen: BTreeMap<u32, usize> = BTreeMap::new();
        for (event, _) in calls.iter().flat_map(|call| call.numbers.iter().flatten()) {
            *seen.entry(*event).or_default() += 1;
        }
        let mut seen: Vec<(u32, usize)> = seen.into_iter().collect();
        seen.sort_by_key(|&(event, n)| (std::cmp::Reverse(n), event));
        for (event, n) in seen.into_iter().take(MOST_EVENTS) {
            let Some(name) = events.get(event as usize) else {
                continue;
            };
            let number = |call: &Call| {
                let mut of = call.numbers.iter().flatten();
                of.find(|(other, _)| *other == event)
                    .map(|(_, number)| *number as f64)
            };
            self.whether(StateFact::WithEvent, Some(name), calls, |call| {
                number(call).is_some()
            });
            if (n as f64) < CARRY * calls.len() as f64 {
                continue;
            }
            let numbers: Vec<f64> = calls
                .iter()
                .map(|call| number(call).unwrap_or(0.0))
                .collect();
            if numbers.windows(2).any(|two| two[0] != two[1]) {
                let fact = StateFact::Value;
                self.words.push(Word {
                    fact,
                    of: Some(name.clone()),
                    kinds: Vec::new(),
                });
                self.facts.push(Fact::Number(numbers));
            }
        }
    }

    /// Which threads ran beside a call, by their names.
    fn beside(&mut self, abouts: &[About], calls: &[Call]) {
        let mut by_role: BTreeMap<&String, Vec<(usize, i32)>> = BTreeMap::new();
        for (run, about) in abouts.iter().enumerate() {
            for tid in about.running.threads().take(MOST_THREADS) {
                if let Some(role) = about.roles.get(&tid) {
                    by_role.entry(role).or_default().push((run, tid));
                }
            }
        }
        for (role, threads) in by_role {
            self.whether(StateFact::Beside, Some(role), calls, |call| {
                let about = &abouts[call.run];
                let own = about.threads.get(&call.ring);
                let of_run = threads.iter().filter(|(run, _)| *run == call.run);
                of_run
                    .map(|(_, tid)| tid)
                    .any(|tid| Some(tid) != own && about.running.cpu(*tid, call.start).is_some())
            });
        }
    }

    /// Whether a condition is true of the call with that index.
    pub(crate) fn holds(&self, condition: &Condition, at: usize) -> bool {
        let is_within = |number: f64, from: Option<f64>, below: Option<f64>| {
            from.is_none_or(|from| number >= from) && below.is_none_or(|below| number < below)
        };
        match condition {
            Condition::Among { fact, kinds } => {
                matches!(&self.facts[*fact], Fact::Kind(of) if kinds.contains(&of[at]))
            }
            Condition::Within { fact, from, below } => {
                matches!(&self.facts[*fact], Fact::Number(of) if is_within(of[at], *from, *below))
            }
            Condition::During { from, before } => is_within(self.times[at], *from, *before),
        }
    }

    /// A state in the words of the report; `counts`: of its calls, in bins.
    pub(crate) fn tell(&self, state: State, share: Estimate, counts: Vec<u64>) -> StateReport {
        StateReport {
            conditions: self.conditions(state.conditions),
            share,
            // What was subtracted for recording may exceed a short span.
            median: (state.median)
                .and_then(|mut ns| Must::NotNegative.judge(&mut ns).is_none().then_some(ns)),
            counts,
        }
    }

    /// Conditions in the words of the report.
    pub(crate) fn conditions(&self, of: Vec<Condition>) -> Vec<StateCondition> {
        let condition = |condition: Condition| match condition {
            Condition::Among { fact, kinds } => {
                let word = &self.words[fact];
                let names = kinds
                    .iter()
                    .filter_map(|&kind| word.kinds.get(kind as usize));
                StateCondition {
                    is: word.kinds.is_empty().then(|| kinds.contains(&1)),
                    among: names.cloned().collect(),
                    ..about(word)
                }
            }
            Condition::Within { fact, from, below } => StateCondition {
                from,
                below,
                ..about(&self.words[fact])
            },
            Condition::During { from, before } => StateCondition {
                from,
                below: before,
                ..about(&Word {
                    fact: StateFact::Time,
                    of: None,
                    kinds: Vec::new(),
                })
            },
        };
        of.into_iter().map(condition).collect()
    }
}

fn about(word: &Word) -> StateCondition {
    StateCondition {
        fact: word.fact,
        of: word.of.clone(),
        is: None,
        among: Vec::new(),
        from: None,
        below: None,
    }
}
