//! Maps every host's clock to the first host's, from messages between the hosts.
//!
//! Clocks are compared pair by pair ([`clock_map`]). The pairs used are those that connect each
//! host to the first one with the smallest half-widths; half-widths add up along the way. The
//! other pairs serve as a check: [`Closure`].

use std::collections::HashMap;

use undertick_estimate::two_clocks::{ClockMap, Limits, Message, NoMap, clock_map};
use undertick_format::TraceError;
use undertick_format::identity::ClockIdentity;
use undertick_format::manifest::{Clock, Closure, HostMap};
use undertick_format::messages::Messages;

use super::lines::{Knots, compose, near};
use super::scale::Scale;

/// A clock to be mapped to the first host's.
#[derive(Clone, Debug)]
pub struct HostClock {
    /// The host's name, for messages to the user.
    pub name: String,
    /// The identity of the clock.
    pub identity: ClockIdentity,
    /// Ticks per second, numerator and denominator.
    pub ticks_per_second: [u64; 2],
    /// Bound on the error of a stamp, ticks.
    pub stamp_error_ticks: f64,
    /// The readings that the map must cover; `None`: those of the messages.
    pub span: Option<(i64, i64)>,
}

impl HostClock {
    /// The clock of a trace.
    #[must_use]
    pub fn from_clock(name: String, identity: ClockIdentity, clock: &Clock) -> Self {
        // The stamps of CPUs whose clocks were found apart differ by as much.
        let apart = (clock.across_cpus.as_ref())
            .filter(|found| found.cpus_apart > 0)
            .and_then(|found| {
                Some(
                    found
                        .offset_lo_ticks?
                        .abs()
                        .max(found.offset_hi_ticks?.abs()),
                )
            })
            .unwrap_or(0);
        Self {
            name,
            identity,
            ticks_per_second: [
                clock.ticks_per_second_numerator,
                clock.ticks_per_second_denominator,
            ],
            stamp_error_ticks: clock.granularity_ticks.max(1.0) + apart as f64,
            span: None,
        }
    }

    pub(super) fn ns_per_tick(&self) -> f64 {
        1e9 * self.ticks_per_second[1] as f64 / self.ticks_per_second[0] as f64
    }
}

/// The relations of the hosts' clocks.
#[derive(Clone, Debug, PartialEq)]
pub struct Alignment {
    /// The map of each host; `None` for the first.
    pub maps: Vec<Option<HostMap>>,
    /// The comparisons that were not needed for the maps, as a check.
    pub closures: Vec<Closure>,
}

/// Half of the range in which rates may lie, relative: no counter's claim is this wrong, and
/// a kernel steers no clock further away.
const RATE: f64 = 1e-3;
/// Wander of crystals in rooms, parts per million, and of clocks that are steered.
const WANDER_PPM: f64 = 2.0;
const WANDER_STEERED_PPM: f64 = 500.0;
/// The number of moments at which closures are checked.
const CHECKS: usize = 65;

/// Maps every clock to the first one. `wander_ppm`: by how much the difference of two rates may
/// change between any two moments; `None`: 2, or 500 where one of the clocks is steered.
///
/// # Errors
/// A host is tied to the others by no messages or by messages in one direction only, or messages
/// contradict one another.
pub fn align(
    hosts: &[HostClock],
    messages: &[Messages],
    wander_ppm: Option<f64>,
) -> Result<Alignment, TraceError> {
    let pairs = Pairs::new(hosts, messages, wander_ppm)?;
    let parents = pairs.parents()?;
    let links = pairs.links(&parents)?;
    let on_first = composed(&parents, &links);
    let maps = (0..hosts.len())
        .map(|host| {
            let parent = parents[host]?;
            Some(pairs.host_map(host, parent, &links[host], &on_first[host]))
        })
        .collect();
    Ok(Alignment {
        maps,
        closures: pairs.closures(&parents, &on_first)?,
    })
}

/// All messages, by pair and direction.
struct Pairs<'a> {
    hosts: &'a [HostClock],
    messages: &'a [Messages],
    wander_ppm: Option<f64>,
    scales: Vec<Scale>,
}

/// A map from a host's clock to another host's, both in common ticks.
struct Link {
    knots: Knots,
    map: Option<ClockMap>,
}

impl<'a> Pairs<'a> {
    fn new(
        hosts: &'a [HostClock],
        messages: &'a [Messages],
        wander_ppm: Option<f64>,
    ) -> Result<Self, TraceError> {
        let mut scales: Vec<Scale> = Vec::new();
        for (place, host) in hosts.iter().enumerate() {
            let same = (hosts[..place].iter()).position(|h| h.identity.is_same(&host.identity));
            let stamp = || {
                (messages.iter()).find_map(|m| match m.stamps.first() {
                    Some(stamps) if m.from == place => Some(stamps.0),
                    Some(stamps) if m.to == place => Some(stamps.1),
                    _ => None,
                })
            };
            let origin = host.span.map(|s| s.0).or_else(stamp).unwrap_or(0);
            scales.push(match same {
                Some(same) => scales[same],
                None => Scale::new(origin, host.ticks_per_second, hosts[0].ticks_per_second),
            });
        }
        if let Some(ppm) = wander_ppm.filter(|ppm| !(ppm.is_finite() && *ppm >= 0.0)) {
            let mend = "a wander is a number of parts per million, not below 0";
            return Err(TraceError::Usage(format!("--wander {ppm}: {mend}")));
        }
        Ok(Self {
            hosts,
            messages,
            wander_ppm,
            scales,
        })
    }

    fn is_one_clock(&self, a: usize, b: usize) -> bool {
        (self.hosts[a].identity).is_same(&self.hosts[b].identity)
    }

    fn stamps(&self, from: usize, to: usize) -> Result<Vec<Message>, TraceError> {
        let all = (self.messages.iter()).filter(|m| (m.from, m.to) == (from, to));
        let common = |(sent, received): &(i64, i64)| {
            Some(Message {
                sent: self.scales[from].common(*sent)?,
                received: self.scales[to].common(*received)?,
            })
        };
        (all.flat_map(|m| &m.stamps).map(common))
            .collect::<Option<_>>()
            .ok_or_else(|| {
                let (a, b) = (&self.hosts[from].name, &self.hosts[to].name);
                TraceError::Usage(format!(
                    "{a} and {b}: stamps too far apart to be of one run"
                ))
            })
    }

    fn limits(&self, a: usize, b: usize) -> Limits {
        let is_steered = [a, b].iter().any(|&h| self.hosts[h].identity.is_steered());
        let usual = if is_steered {
            WANDER_STEERED_PPM
        } else {
            WANDER_PPM
        };
        let error = |h: usize| {
            let per_tick = self.hosts[h].ns_per_tick() / self.hosts[0].ns_per_tick();
            self.hosts[h].stamp_error_ticks * per_tick
        };
        Limits {
            rate: if is_steered { 2.0 * RATE } else { RATE },
            wander: self.wander_ppm.unwrap_or(usual) * 1e-6,
            // One tick for the conversion to common ticks.
            stamp_error: error(a).max(error(b)) + 1.0,
        }
    }

    /// Compares the clock of `host` with that of `other`, over `span` of its common ticks.
    fn compare(
        &self,
        host: usize,
        other: usize,
        span: Option<(i64, i64)>,
    ) -> Result<Result<ClockMap, NoMap>, TraceError> {
        let (there, back) = (self.stamps(host, other)?, self.stamps(other, host)?);
        Ok(
            match clock_map(&there, &back, span, &self.limits(host, other)) {
                Err(NoMap::Contradiction { at }) => {
                    return Err(self.contradiction(host, other, at));
                }
                found => found,
            },
        )
    }

    fn contradiction(&self, host: usize, other: usize, at: i64) -> TraceError {
        let (a, b) = (&self.hosts[host], &self.hosts[other]);
        let from = a.span.map_or(self.scales[host].origin, |s| s.0);
        let after_s = (self.scales[host].local(at) as f64 - from as f64) * a.ns_per_tick() / 1e9;
        TraceError::Usage(format!(
            "{} and {}: their messages contradict one another {after_s:.3} s into the trace of {}: \
             one of the clocks was set, or messages were matched that are not the same; leave out \
             the messages around that time, or the table they are from",
            a.name, b.name, a.name
        ))
    }

    fn span(&self, host: usize) -> Option<(i64, i64)> {
        let (from, to) = self.hosts[host].span?;
        let scale = self.scales[host];
        // Allows for the rounding of the conversion there and back.
        Some((scale.common(from)? - 2, scale.common(to)? + 2))
    }

    /// Returns each host's next host on the way to the first, with the smallest half-widths.
    fn parents(&self) -> Result<Vec<Option<usize>>, TraceError> {
        let hosts = self.hosts.len();
        let mut weights = HashMap::new();
        for a in 1..hosts {
            for b in 0..a {
                let weight = if self.is_one_clock(a, b) {
                    Some(0.0)
                } else {
                    (self.compare(a, b, self.span(a))?.ok()).map(|map| median_width(map.knots()))
                };
                if let Some(weight) = weight {
                    weights.insert((a, b), weight);
                    weights.insert((b, a), weight);
                }
            }
        }
        let mut parents = vec![None; hosts];
        let mut far = vec![f64::INFINITY; hosts];
        let mut done = vec![false; hosts];
        far[0] = 0.0;
        for _ in 0..hosts {
            let open = (0..hosts).filter(|&h| !done[h] && far[h].is_finite());
            let Some(host) = open.min_by(|&a, &b| far[a].total_cmp(&far[b])) else {
                break;
            };
            done[host] = true;
            for next in 0..hosts {
                if let Some(weight) = weights.get(&(host, next))
                    && far[host] + weight < far[next]
                {
                    far[next] = far[host] + weight;
                    parents[next] = Some(host);
                }
            }
        }
        match (1..hosts).find(|&h| parents[h].is_none()) {
            Some(host) => Err(self.lonely(host)),
            None => Ok(parents),
        }
    }

    /// The error that says why a host is tied to no other.
    fn lonely(&self, host: usize) -> TraceError {
        let name = &self.hosts[host].name;
        let count = |from: usize, to: usize| -> usize {
            let of = |m: &&Messages| (m.from, m.to) == (from, to);
            self.messages
                .iter()
                .filter(of)
                .map(|m| m.stamps.len())
                .sum()
        };
        let one_way = (0..self.hosts.len()).find_map(|other| {
            let (there, back) = (count(host, other), count(other, host));
            ((there == 0) != (back == 0)).then_some((other, there, back))
        });
        let why = match one_way {
            Some((other, there, back)) => {
                let other = &self.hosts[other].name;
                format!(
                    "{there} messages go from {name} to {other} and {back} back; both ways are \
                     needed, as one way bounds the difference from one side only"
                )
            }
            None => "no messages between it and the other hosts".to_owned(),
        };
        TraceError::Usage(format!(
            "{name}: its clock cannot be put on that of {}: {why}. While both record, run `undertick \
             sync --listen` on one and `undertick sync HOST --into NAME.ut` on the other, or name \
             messages that both traces hold with --table",
            self.hosts[0].name
        ))
    }

    /// Maps each host's clock to its parent's, over all readings that pass through it.
    fn links(&self, parents: &[Option<usize>]) -> Result<Vec<Link>, TraceError> {
        let mut spans: Vec<_> = (0..parents.len()).map(|host| self.span(host)).collect();
        let mut links: Vec<Option<Link>> = parents.iter().map(|_| None).collect();
        let depth = |mut host: usize| {
            let mut depth = 0;
            while let Some(parent) = parents[host] {
                (host, depth) = (parent, depth + 1);
            }
            depth
        };
        let mut order: Vec<usize> = (0..parents.len()).collect();
        order.sort_by_key(|&host| core::cmp::Reverse(depth(host)));
        for host in order {
            let Some(parent) = parents[host] else {
                links[host] = Some(Link {
                    knots: Vec::new(),
                    map: None,
                });
                continue;
            };
            let link = if self.is_one_clock(host, parent) {
                let (from, to) = spans[host].unwrap_or((0, 1));
                Link {
                    knots: vec![[from, from, 0], [to, to, 0]],
                    map: None,
                }
            } else {
                let map = self.compare(host, parent, spans[host])?;
                let map = map.map_err(|why| {
                    let (a, b) = (&self.hosts[host].name, &self.hosts[parent].name);
                    TraceError::Usage(format!("{a} and {b}: {why}"))
                })?;
                Link {
                    knots: (map.knots().iter())
                        .map(|k| [k.at, k.at.saturating_add(k.ahead), k.half_width])
                        .collect(),
                    map: Some(map),
                }
            };
            let (first, last) = (link.knots[0], link.knots[link.knots.len() - 1]);
            let reach = (first[1] - first[2] - 2, last[1] + last[2] + 2);
            let (from, to) = spans[parent].unwrap_or(reach);
            spans[parent] = Some((from.min(reach.0), to.max(reach.1)));
            links[host] = Some(link);
        }
        Ok(links.into_iter().flatten().collect())
    }

    fn host_map(&self, host: usize, parent: usize, link: &Link, on_first: &Knots) -> HostMap {
        let to_ns = self.hosts[0].ns_per_tick();
        let is_same_clock = self.is_one_clock(host, 0);
        let sources = (self.messages.iter())
            .filter(|m| (m.from, m.to) == (host, parent) || (m.from, m.to) == (parent, host));
        let count = |from: usize| -> u64 {
            let of = sources.clone().filter(|m| m.from == from);
            of.map(|m| m.stamps.len() as u64).sum()
        };
        let mut names: Vec<String> = sources.clone().map(|m| m.source.clone()).collect();
        names.sort();
        names.dedup();
        let mut knots: Knots = Vec::new();
        if !is_same_clock {
            let first = self.scales[0];
            for [at, on_first, half_width] in on_first {
                // Exactly the line's value at the reading nearest to the knot.
                let local = self.scales[host].local(*at);
                let moved = self.scales[host].common(local).unwrap_or(*at) - at;
                let ts = first.local(*on_first).saturating_add(moved);
                if knots
                    .last()
                    .is_none_or(|last| last[0] < local && last[1] <= ts)
                {
                    // Four roundings: two here, and two in between.
                    knots.push([local, ts, half_width + 4]);
                }
            }
        }
        let own = self.span(host);
        let within = |at: i64| own.is_none_or(|(from, to)| from <= at && at <= to);
        let mut widths: Vec<i64> = (on_first.iter())
            .filter(|k| within(k[0]))
            .map(|k| k[2])
            .collect();
        widths.sort_unstable();
        let width = |place: usize| widths.get(place).map_or(0.0, |w| *w as f64 * to_ns);
        HostMap {
            is_same_clock,
            compared_with: parent as u16,
            messages: [count(host), count(parent)],
            sources: names,
            wander_ppm: link.map.as_ref().map_or(0.0, |map| 1e6 * map.wander()),
            is_wander_raised: link.map.as_ref().is_some_and(ClockMap::is_wander_raised),
            half_width_ns_median: width(widths.len() / 2),
            half_width_ns_max: width(widths.len().saturating_sub(1)),
            knots,
        }
    }

    /// The closures of the pairs that were not needed.
    fn closures(
        &self,
        parents: &[Option<usize>],
        on_first: &[Knots],
    ) -> Result<Vec<Closure>, TraceError> {
        let mut found = Vec::new();
        for a in 1..parents.len() {
            for b in 0..a {
                let is_used = parents[a] == Some(b) || parents[b] == Some(a);
                if is_used || self.is_one_clock(a, b) {
                    continue;
                }
                if let Ok(map) = self.compare(a, b, None)? {
                    found.extend(self.closure([a, b], &map, on_first));
                }
            }
        }
        Ok(found)
    }

    /// Returns the closure of a pair; `None` if at no moment all three clocks are known.
    fn closure(&self, [a, b]: [usize; 2], map: &ClockMap, on_first: &[Knots]) -> Option<Closure> {
        let to_ns = self.hosts[0].ns_per_tick();
        let step = (map.knots().len() / CHECKS).max(1);
        let checks = map.knots().iter().step_by(step).filter_map(|knot| {
            let through_b = knot.at.checked_add(knot.ahead)?;
            let by_b = if b == 0 {
                (through_b, 0)
            } else {
                near(&on_first[b], through_b)?
            };
            let by_a = near(&on_first[a], knot.at)?;
            let error = (by_b.0 - by_a.0).abs();
            Some((
                error,
                by_a.1 + by_b.1 + knot.half_width + knot.half_width / 256 + 4,
            ))
        });
        let checks: Vec<(i64, i64)> = checks.collect();
        let (error, allowed) = *(checks.iter()).max_by_key(|(error, allowed)| error - allowed)?;
        Some(Closure {
            hosts: [a as u16, b as u16],
            error_ns: error as f64 * to_ns,
            allowed_ns: allowed as f64 * to_ns,
            holds: error <= allowed,
        })
    }
}

fn median_width(knots: &[undertick_estimate::two_clocks::Knot]) -> f64 {
    let mut widths: Vec<i64> = knots.iter().map(|k| k.half_width).collect();
    widths.sort_unstable();
    widths[widths.len() / 2] as f64
}

/// Maps each host's clock to the first host's, in common ticks.
fn composed(parents: &[Option<usize>], links: &[Link]) -> Vec<Knots> {
    let on_first = |host: usize| {
        let mut knots = links[host].knots.clone();
        let mut at = parents[host];
        while let Some(parent) = at.filter(|&p| p != 0) {
            knots = compose(&knots, &links[parent].knots);
            at = parents[parent];
        }
        knots
    };
    (0..parents.len()).map(on_first).collect()
}
