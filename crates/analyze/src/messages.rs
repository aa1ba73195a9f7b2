//! Starts and ends in different threads, matched by key.
//!
//! Threads are analysed one after the other, or in parallel, so the two sides of a message may
//! come far apart. All boundaries are gathered and sorted first.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::reading::{Ends, Reading};
use crate::spool::{Spool, Words};

/// Most unmatched boundaries of one key that wait; with more, the newest is dropped and counted.
const MOST_WAITING: usize = 1 << 20;

/// One boundary of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Boundary {
    pub(crate) ts: i64,
    pub(crate) is_start: bool,
    pub(crate) ordered: bool,
    pub(crate) host: i16,
}

/// A start and the end that belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) rule: u32,
    pub(crate) end: i64,
    /// End less start, ticks.
    pub(crate) ticks: i64,
    pub(crate) ends: Ends,
    /// The hosts on which it starts and ends.
    pub(crate) hosts: [i16; 2],
}

/// Boundaries, in the order in which they arrive.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Messages(Spool);

/// The result of matching.
#[derive(Debug, Default)]
pub(crate) struct Matched {
    messages: Spool,
    /// Rule, whether it is a start, and how many found no other side.
    pub(crate) unmatched: Vec<(u32, bool, u64)>,
    /// Of these, the number for which there was no room.
    pub(crate) pushed_out: u64,
}

impl Messages {
    pub(crate) fn add(&mut self, rule: u32, key: i64, boundary: Boundary) {
        let flags = i64::from(boundary.is_start) << 1 | i64::from(boundary.ordered);
        let how = i64::from(boundary.host) << 2 | flags;
        self.0.push([i64::from(rule), key, boundary.ts, how]);
    }

    pub(crate) fn append(&mut self, other: Self) {
        self.0.append(other.0);
    }

    /// Per key the k-th start belongs to the k-th end, by their times.
    pub(crate) fn matched(self) -> Matched {
        let mut matched = Matched::default();
        let mut current: Option<(u32, i64)> = None;
        // All of one side.
        let mut waiting: VecDeque<Boundary> = VecDeque::new();
        for [rule, key, ts, how] in self.0.sorted() {
            let rule = rule as u32;
            if current != Some((rule, key)) {
                matched.give_up(current, &mut waiting);
                current = Some((rule, key));
            }
            let boundary = Boundary {
                ts,
                is_start: how & 2 != 0,
                ordered: how & 1 != 0,
                host: (how >> 2) as i16,
            };
            match waiting.front() {
                Some(first) if first.is_start != boundary.is_start => {
                    let pair = if boundary.is_start {
                        [boundary, *first]
                    } else {
                        [*first, boundary]
                    };
                    waiting.pop_front();
                    matched.messages.push(words(rule, pair));
                }
                _ if waiting.len() >= MOST_WAITING => {
                    matched.pushed_out += 1;
                    matched.without_other(rule, boundary.is_start, 1);
                }
                _ => waiting.push_back(boundary),
            }
        }
        matched.give_up(current, &mut waiting);
        matched
    }
}

fn words(rule: u32, [start, end]: [Boundary; 2]) -> Words {
    let ordered = i64::from(start.ordered) << 1 | i64::from(end.ordered);
    let hosts = i64::from(start.host) << 16 | i64::from(end.host as u16);
    // By time within a rule. Neighbours in time have more in common than neighbours by key, and
    // the confidence intervals of the figures must include that.
    [
        i64::from(rule),
        end.ts,
        end.ts.saturating_sub(start.ts),
        hosts << 2 | ordered,
    ]
}

/// How a boundary was read, as far as it is stored: nothing is subtracted from a message.
fn reading(ordered: bool) -> Reading {
    match ordered {
        true => Reading::Ordered,
        false => Reading::Plain,
    }
}

impl Matched {
    fn give_up(&mut self, current: Option<(u32, i64)>, waiting: &mut VecDeque<Boundary>) {
        if let (Some((rule, _)), Some(first)) = (current, waiting.front()) {
            self.without_other(rule, first.is_start, waiting.len() as u64);
        }
        waiting.clear();
    }

    fn without_other(&mut self, rule: u32, is_start: bool, more: u64) {
        match self.unmatched.last_mut() {
            Some((last, side, n)) if (*last, *side) == (rule, is_start) => *n += more,
            _ => self.unmatched.push((rule, is_start, more)),
        }
    }

    /// Returns the messages in the order of their ends.
    pub(crate) fn messages(self) -> impl Iterator<Item = Message> {
        self.messages
            .sorted()
            .map(|[rule, end, ticks, ordered]| Message {
                rule: rule as u32,
                end,
                ticks,
                ends: Ends::from_readings(reading(ordered & 2 != 0), reading(ordered & 1 != 0)),
                hosts: [(ordered >> 18) as i16, (ordered >> 2) as i16],
            })
    }
}

#[cfg(test)]
mod tests;
