//! Finds the rings that programs make while a session is recorded.

use std::time::{Duration, Instant};

use super::Collector;
use crate::ring_drain::Ring;
use crate::session::Session;
use undertick_memory::ring_map::RingMap;

/// How long to wait, at the end of a recording, for a ring whose head was taken: its thread may
/// have been killed while it made the ring.
const AWAITED_FOR: Duration = Duration::from_secs(10);
/// How often to check the log of names, and for rings that were awaited in vain.
const LIST_EVERY: Duration = Duration::from_secs(1);

impl Collector {
    /// Opens the rings that have become complete at heads that programs took.
    pub(super) fn find_rings(&mut self, session: &Session, last: bool) {
        let now = Instant::now();
        let new = self.pool.new_heads();
        let is_new = !new.is_empty();
        self.awaited.extend(new.into_iter().map(|head| (head, now)));
        let is_time = self.listed.elapsed() >= LIST_EVERY;
        if is_time || last {
            self.listed = now;
            self.shorten_names(session);
        }
        if self.awaited.is_empty() {
            return;
        }
        let (rings, warnings, known) = (&mut self.rings, &mut self.warnings, &self.known);
        let (pool, numbers) = (&self.pool, &mut self.numbers);
        (self.awaited).retain(|&(head, since)| {
            if since.elapsed() >= AWAITED_FOR && !is_time && !is_new && !last {
                return true;
            }
            match RingMap::at(pool.map(), head) {
                Ok(None) => true,
                Ok(Some(map)) if numbers.insert(map.number) => {
                    let known = known.get(&map.number);
                    rings.push(Ring::new(map, known));
                    false
                }
                Ok(Some(map)) => {
                    let number = map.number;
                    warnings.say(format!(
                        "ring {number} is there twice: a program overwrote its number, and what was written to the second one is not kept"
                    ));
                    false
                }
                Err(why) => {
                    warnings.say(why);
                    false
                }
            }
        });
    }

    /// Whether a head was taken that has no complete ring yet.
    pub(crate) fn awaits(&self) -> bool {
        let is_young = |(_, since): &(u32, Instant)| since.elapsed() < AWAITED_FOR;
        self.awaited.iter().any(is_young)
    }
}
