//! Finishes the rings of threads that have ended: their accounts are written, and their memory is
//! given back.

use undertick_format::block;

use super::Collector;
use crate::ring_drain::Ring;

impl Collector {
    /// Finishes the rings that have their last block in the file.
    pub(super) fn finish_written(&mut self, last: bool) {
        let written = self.written();
        let is_over = |ring: &mut Ring| ring.ends_at.is_some_and(|end| end <= written);
        let over: Vec<Ring> = self.rings.extract_if(.., is_over).collect();
        for mut ring in over {
            let ended = ring.account(self.overflow);
            self.finished_events += ended.ring.received;
            self.finished_lost = (self.finished_lost)
                .saturating_add(ended.ring.dropped)
                .saturating_add(ended.ring.overwritten);
            self.accounts.ended(std::slice::from_ref(&ended));
            self.finished.push(ended.ring);
            self.sampled.extend(ended.sampled);
            self.take_away(&ring, last);
        }
    }

    /// Stores the last events of threads that have ended. While a snapshot is being made they
    /// stay in their rings until the next round.
    pub(super) fn keep_ended(&mut self, mut rings: Vec<Ring>, last: bool) {
        if rings.is_empty() {
            return;
        }
        let Some(store) = self.exited_threads.as_mut().filter(|_| self.lock.take()) else {
            self.rings.append(&mut rings);
            return;
        };
        let mut blocks = Vec::new();
        let mut ended = Vec::new();
        for ring in &mut rings {
            let (mut moved, most) = (0, ring.most_bytes());
            let (records, warnings) = (&mut self.records, &mut self.warnings);
            while moved <= most
                && let Some(chunk) = ring.copy_chunk(true, &mut self.pool, records, warnings)
            {
                moved += chunk.bytes;
                let header = ring.header(&chunk, records.len());
                let continuations = block::encode(header, records, &mut blocks);
                ring.reader.pass(&chunk, continuations);
                ring.received += records.len() as u64 - u64::from(continuations);
            }
            ended.push(ring.account(self.overflow));
        }
        if let Err(error) = store.keep(&blocks, &mut ended, &mut self.accounts) {
            let text = format!("threads that ended are not kept: {error}");
            if !self.warnings.said.contains(&text) {
                self.warnings.say(text);
            }
        }
        for ring in &rings {
            self.take_away(ring, last);
        }
        self.lock.give();
    }

    /// Removes a ring whose events and account are stored. At the end of a recording its thread
    /// may still write to it, so its memory is not reused.
    fn take_away(&mut self, ring: &Ring, last: bool) {
        if let Some(follow) = &mut self.follow {
            follow.ended(ring.map.number);
        }
        self.known.remove(&ring.map.number);
        self.numbers.remove(&ring.map.number);
        if !last {
            self.pool.give_back(ring.map.head, &ring.map.memory());
        }
    }
}
