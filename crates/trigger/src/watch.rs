//! Applies rules to the records of a running program.

mod events;
mod learned;
mod open_spans;
mod rate;

use std::collections::{BTreeSet, HashMap};

use undertick_ring::{Kind, Record};

use crate::rule::{Condition, Limit, Rule};
use events::{Events, Known};
use learned::Learned;
use open_spans::OpenSpans;
use rate::Rate;

/// A ring, and the thread that writes to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Number of the ring.
    pub number: u32,
    /// Whether process and thread mean to the reader what they mean to the writer: they are of the
    /// same namespace.
    pub is_here: bool,
    /// Process.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
}

/// The name of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'a> {
    /// The process that gave it; `None` if it holds for all.
    pub pid: Option<i32>,
    /// Number of the event.
    pub event: u16,
    /// The name.
    pub name: &'a str,
}

/// A rule was met.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// Index of the rule.
    pub rule: usize,
    /// The thread; `None` for what is of no thread.
    pub ring: Option<Ring>,
    /// Reading of the recording clock at which it was met, ticks.
    pub at: u64,
    /// Reading at which the span began, ticks.
    pub began: Option<u64>,
    /// What was measured.
    pub measured: Measured,
}

/// What met a rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measured {
    /// A span took this long, and was to take at most the second, ns.
    Took(f64, f64),
    /// A span has been open for this long, ns.
    OpenFor(f64),
    /// An event came.
    Came,
    /// Events per second.
    PerSecond(f64),
    /// Number of events that were lost since the last look.
    Lost(u64),
}

/// Hits of one rule between two calls of [`Watch::hits`]; further ones are only counted.
const MOST_HITS: usize = 32;

/// The rules, and what they need to know of the past.
#[derive(Debug)]
pub struct Watch {
    rules: Vec<Rule>,
    ns_per_tick: f64,
    events: Events,
    /// Events that had no name when one was looked for. They may get one later.
    nameless: BTreeSet<u16>,
    open: HashMap<u32, OpenSpans>,
    /// The rules that an event meets, as bits.
    about_events: u64,
    learned: Vec<Option<Learned>>,
    rates: Vec<Option<Rate>>,
    lost: u64,
    /// By rule: a name that it is about was seen.
    named: Vec<bool>,
    hits: Vec<Hit>,
    /// Number of hits by rule since they were last asked for.
    counts: Vec<usize>,
}

impl Watch {
    /// Most rules of a watch.
    pub const MOST_RULES: usize = 64;

    /// Makes a watch; of more than [`Self::MOST_RULES`] rules the last are ignored.
    #[must_use]
    pub fn new(mut rules: Vec<Rule>, ns_per_tick: f64) -> Self {
        rules.truncate(Self::MOST_RULES);
        let learned = (rules.iter())
            .map(|rule| match rule.condition() {
                Condition::Longer { limit, .. } => Learned::new(*limit),
                _ => None,
            })
            .collect();
        let rates = (rules.iter())
            .map(|rule| match *rule.condition() {
                Condition::Rate {
                    is_below,
                    per_second,
                    ..
                } => Some(Rate::new(is_below, per_second)),
                _ => None,
            })
            .collect();
        let is_about_event = |rule: &Rule| matches!(rule.condition(), Condition::Event { .. });
        let about_events = as_bits(&rules, is_about_event);
        Self {
            about_events,
            named: vec![false; rules.len()],
            learned,
            rates,
            ns_per_tick,
            events: Events::default(),
            nameless: BTreeSet::new(),
            open: HashMap::new(),
            lost: 0,
            hits: Vec::new(),
            counts: vec![0; rules.len()],
            rules,
        }
    }

    /// The rules.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Takes all names that programs have given so far, later ones last.
    pub fn take_names<'a>(&mut self, names: impl IntoIterator<Item = Name<'a>>) {
        let rules = |name: Name<'a>| {
            (
                name.pid,
                name.event,
                self.rules_about(name.event, name.name),
            )
        };
        let all: Vec<_> = names.into_iter().map(rules).collect();
        self.note_named(all.iter().fold(0, |rules, (.., more)| rules | more));
        self.events = Events::of_names(&all);
        for event in std::mem::take(&mut self.nameless) {
            self.know(event);
        }
    }

    /// The rules about an event, as bits. A rule may give the number of an event in place of its
    /// name.
    fn rules_about(&self, event: u16, name: &str) -> u64 {
        let is_about = |rule: &Rule| {
            (rule.name()).is_some_and(|wanted| wanted == name || wanted.parse() == Ok(event))
        };
        as_bits(&self.rules, is_about)
    }

    fn note_named(&mut self, rules: u64) {
        for rule in bits(rules) {
            self.named[rule] = true;
        }
    }

    /// Takes the next records of a ring, as they lie in it, up to the first whose event was never
    /// seen: [`Self::take_names`] should come before it, and then the rest. Returns how many were
    /// taken. With `all`, events that have no name are taken to have none.
    pub fn take(&mut self, ring: Ring, records: &[[u64; 2]], all: bool) -> usize {
        let mut open = (self.open.remove(&ring.number)).unwrap_or_else(|| OpenSpans::new(ring));
        let mut taken = 0;
        // The event of the record before, and the rules about it: mostly the next one has the same.
        let mut last = (0, self.events.rules(ring.pid, 0));
        for words in records {
            // The fields of `Record`, without the others.
            let event = (words[1] >> 32) as u16;
            let kind = Kind::from_code((words[1] >> 59) as u16);
            let known = match kind {
                Kind::Continuation => {
                    // Of the spans that are open it is not known which ended in the gap.
                    if words[1] as u32 == Record::GAP {
                        open.clear();
                        self.gap_in_rates();
                    }
                    Known::Unwanted
                }
                Kind::Pair => Known::Unwanted,
                Kind::Next => self
                    .events
                    .known(event)
                    .max(self.events.known(words[1] as u16)),
                _ => self.events.known(event),
            };
            match known {
                Known::Unwanted => {}
                Known::Wanted => {
                    if last.0 != event {
                        last = (event, self.events.rules(ring.pid, event));
                    }
                    let record = Record::from_words(*words);
                    self.take_one(ring, &mut open, record, last.1);
                }
                Known::Never if !all => break,
                Known::Never => {
                    self.know(event);
                    if kind == Kind::Next {
                        self.know(words[1] as u16);
                    }
                    last = (event, self.events.rules(ring.pid, event));
                    let record = Record::from_words(*words);
                    self.take_one(ring, &mut open, record, last.1);
                }
            }
            taken += 1;
        }
        if !open.is_empty() {
            self.open.insert(ring.number, open);
        }
        taken
    }

    /// Takes an event to have no name, if it has none yet: its number may be in a rule.
    fn know(&mut self, event: u16) {
        if self.events.known(event) == Known::Never {
            let rules = self.rules_about(event, "");
            self.nameless.insert(event);
            self.events.without_name(event, rules);
            self.note_named(rules);
        }
    }

    /// Takes a record; `rules` are those about its event.
    #[inline(never)]
    fn take_one(&mut self, ring: Ring, open: &mut OpenSpans, record: Record, rules: u64) {
        let (event, ts) = (record.event, record.ts);
        match record.kind {
            Kind::Continuation | Kind::Pair => {}
            Kind::Instant => self.came(ring, rules, ts, true),
            Kind::Begin | Kind::BeginOrdered => self.begin(ring, open, (event, rules), ts),
            Kind::End | Kind::EndOrdered => self.end(ring, open, (event, rules), ts),
            Kind::Next => {
                self.end(ring, open, (event, rules), ts);
                let next = record.payload as u16;
                let rules = self.events.rules(ring.pid, next);
                self.begin(ring, open, (next, rules), ts);
            }
        }
    }

    fn begin(&mut self, ring: Ring, open: &mut OpenSpans, (event, rules): (u16, u64), ts: u64) {
        if rules & self.about_events != 0 {
            self.came(ring, rules, ts, false);
        }
        if rules != 0 {
            open.begin(event, ts);
        }
    }

    fn end(&mut self, ring: Ring, open: &mut OpenSpans, (event, rules): (u16, u64), ts: u64) {
        if rules == 0 {
            return;
        }
        let began = open.end(event);
        for rule in bits(rules) {
            if let Some(rate) = &mut self.rates[rule] {
                rate.count();
            }
            // Without a begin it began before the watch did, or while records were overwritten.
            let Some(began) = began else {
                continue;
            };
            let took_ns = ts.wrapping_sub(began) as i64 as f64 * self.ns_per_tick;
            let limit_ns = match (self.rules[rule].condition(), &mut self.learned[rule]) {
                (Condition::Longer { .. }, Some(learned)) => learned.limit_for(took_ns),
                (
                    Condition::Longer {
                        limit: Limit::Nanoseconds(ns),
                        ..
                    },
                    None,
                ) => Some(*ns),
                _ => None,
            };
            if let Some(limit_ns) = limit_ns.filter(|&limit_ns| took_ns > limit_ns) {
                let measured = Measured::Took(took_ns, limit_ns);
                self.hit(rule, Some(ring), ts, Some(began), measured);
            }
        }
    }

    /// An event came, or a span began.
    fn came(&mut self, ring: Ring, rules: u64, ts: u64, is_counted: bool) {
        for rule in bits(rules) {
            if let Some(rate) = self.rates[rule].as_mut().filter(|_| is_counted) {
                rate.count();
            }
            if matches!(self.rules[rule].condition(), Condition::Event { .. }) {
                self.hit(rule, Some(ring), ts, None, Measured::Came);
            }
        }
    }

    /// Records of a ring were overwritten before they were read: of its spans that are open, it is
    /// not known which have ended.
    pub fn gap(&mut self, ring: u32) {
        self.open.remove(&ring);
        self.gap_in_rates();
    }

    fn gap_in_rates(&mut self) {
        self.rates.iter_mut().flatten().for_each(Rate::gap);
    }

    /// A thread has ended, and all its records were taken.
    pub fn ended(&mut self, ring: u32) {
        self.open.remove(&ring);
    }

    /// Looks at what is not in a record: spans that are still open, rates, and events that were
    /// lost. All records up to `now` (a reading, ticks) should have been taken; `lost` is the number
    /// of events lost so far.
    pub fn look(&mut self, now: u64, lost: u64) {
        for rule in 0..self.rules.len() {
            match self.rules[rule].condition() {
                Condition::Open { for_ns, .. } => self.look_at_open(rule, *for_ns, now),
                Condition::Rate { .. } => {
                    let rate = self.rates[rule].as_mut();
                    if let Some((from, found)) = rate.and_then(|r| r.look(now, self.ns_per_tick)) {
                        self.hit(rule, None, now, Some(from), Measured::PerSecond(found));
                    }
                }
                Condition::Lost => {
                    if lost > self.lost {
                        let more = Measured::Lost(lost - self.lost);
                        self.hit(rule, None, now, None, more);
                    }
                }
                Condition::Longer { .. } | Condition::Event { .. } => {}
            }
        }
        // It falls where threads are given up, which take their losses with them.
        self.lost = lost;
        for learned in self.learned.iter_mut().flatten() {
            learned.settle();
        }
    }

    fn look_at_open(&mut self, rule: usize, for_ns: f64, now: u64) {
        let mut open = std::mem::take(&mut self.open);
        for spans in open.values_mut() {
            let ring = spans.ring;
            let limit_ticks = for_ns / self.ns_per_tick;
            for (event, began) in spans.open_since(now, limit_ticks, rule) {
                if self.events.rules(ring.pid, event) & 1 << rule != 0 {
                    let open_ns = now.wrapping_sub(began) as i64 as f64 * self.ns_per_tick;
                    self.hit(
                        rule,
                        Some(ring),
                        now,
                        Some(began),
                        Measured::OpenFor(open_ns),
                    );
                }
            }
        }
        self.open = open;
    }

    fn hit(
        &mut self,
        rule: usize,
        ring: Option<Ring>,
        at: u64,
        began: Option<u64>,
        measured: Measured,
    ) {
        self.counts[rule] += 1;
        if self.counts[rule] <= MOST_HITS {
            self.hits.push(Hit {
                rule,
                ring,
                at,
                began,
                measured,
            });
        }
    }

    /// Returns the hits since the last call, in the order in which they were found, and the number
    /// of those that are left out: each rule has room for 32.
    pub fn hits(&mut self) -> (Vec<Hit>, u64) {
        let hits = std::mem::take(&mut self.hits);
        let all: usize = self.counts.iter().sum();
        self.counts.fill(0);
        let more = (all - hits.len()) as u64;
        (hits, more)
    }

    /// The rules whose event no program has recorded.
    pub fn without_events(&self) -> impl Iterator<Item = &Rule> {
        let is_unnamed = |&(rule, is_named): &(&Rule, &bool)| rule.name().is_some() && !*is_named;
        (self.rules.iter().zip(&self.named))
            .filter(is_unnamed)
            .map(|(rule, _)| rule)
    }
}

/// The rules of which something holds, as bits.
fn as_bits(rules: &[Rule], holds: impl Fn(&Rule) -> bool) -> u64 {
    let chosen = rules.iter().enumerate().filter(|(_, rule)| holds(rule));
    chosen.fold(0, |bits, (index, _)| bits | 1 << index)
}

/// The indices of the bits that are set.
fn bits(mut of: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (of != 0).then(|| of.trailing_zeros() as usize)?;
        of &= of - 1;
        Some(bit)
    })
}

#[cfg(test)]
mod tests;
