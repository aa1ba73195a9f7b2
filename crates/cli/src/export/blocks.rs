//! Means over blocks of time, for tools that expect repetitions.
//!
//! Single spans of one recording follow each other closely and are not independent; a test that
//! treats them as independent finds false differences. Means over long blocks of the recording's
//! time depend on each other much less: each block counts as one repetition. Disturbances longer
//! than a block (minutes of a noisy neighbour) still make neighbouring blocks alike; runs of the
//! program, one trace each, are better repetitions.

use std::collections::BTreeMap;

use super::spans::Spans;
use crate::Failure;

/// Number of blocks of a recording: enough for the tests of these tools, few enough to be long.
pub const BLOCKS: usize = 20;

/// The spans of one block: their number and the sum of their durations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Block {
    pub count: u64,
    pub sum_ns: f64,
}

impl Block {
    pub fn mean_ns(&self) -> f64 {
        self.sum_ns / self.count as f64
    }
}

/// Returns the blocks of each interval that have a span, in order of time.
pub fn blocks(spans: &Spans) -> Result<BTreeMap<String, Vec<Block>>, Failure> {
    let mut reach: Option<(i64, i64)> = None;
    spans.each(|span| {
        let (lo, hi) = reach.unwrap_or((span.start_ns, span.start_ns));
        reach = Some((lo.min(span.start_ns), hi.max(span.start_ns)));
    })?;
    let Some((first, last)) = reach else {
        return Err(Failure::usage(
            "the trace has no intervals; mark sections with begin and end, or give a table",
        ));
    };
    let mut found: BTreeMap<String, Vec<Block>> = BTreeMap::new();
    spans.each(|span| {
        let at = place(span.start_ns, first, last);
        let of_name = match found.get_mut(span.name) {
            Some(of_name) => of_name,
            None => found
                .entry(span.name.to_owned())
                .or_insert_with(|| vec![Block::default(); BLOCKS]),
        };
        of_name[at].count += 1;
        of_name[at].sum_ns += span.ns;
    })?;
    for of_name in found.values_mut() {
        of_name.retain(|block| block.count > 0);
    }
    Ok(found)
}

/// Returns the index of the block at a time.
fn place(at: i64, first: i64, last: i64) -> usize {
    let length = i128::from(last) - i128::from(first) + 1;
    let since = i128::from(at) - i128::from(first);
    (since * BLOCKS as i128 / length) as usize
}

#[cfg(test)]
mod tests;
