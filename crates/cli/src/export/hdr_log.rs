//! A log of HdrHistograms, version 2: a line for each interval, with its name as the tag, and
//! values in nanoseconds with three digits.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, SystemTime};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use super::spans::Spans;
use crate::Failure;

/// Number of significant digits.
const DIGITS: u8 = 3;
/// Unit in which the log states the largest value: milliseconds, as is usual.
const NS_PER_MAX_UNIT: f64 = 1e6;

pub fn write(spans: &Spans, mut out: &mut dyn Write) -> Result<String, Failure> {
    let mut found: BTreeMap<String, Histogram<u64>> = BTreeMap::new();
    let mut bad = None;
    spans.each(|span| {
        let histogram = match found.get_mut(span.name) {
            Some(histogram) => histogram,
            None => match Histogram::new(DIGITS) {
                Ok(new) => found.entry(span.name.to_owned()).or_insert(new),
                Err(error) => return bad = Some(error.to_string()),
            },
        };
        // A histogram has no negative values: what compensation made negative counts as 0.
        if let Err(error) = histogram.record(span.ns.round().max(0.0) as u64) {
            bad = Some(error.to_string());
        }
    })?;
    if let Some(error) = bad {
        return Err(Failure::usage(format!(
            "a duration has no place in a histogram: {error}"
        )));
    }
    let manifest = &spans.manifest;
    let start = Duration::from_nanos(manifest.started_unix_ns.max(0).unsigned_abs());
    let length = Duration::from_nanos(manifest.duration_ns.unwrap_or(0).max(0).unsigned_abs());
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    builder
        .add_comment("undertick: values in ns, one line for each interval, without dropped samples, compensated")
        .with_start_time(SystemTime::UNIX_EPOCH + start)
        .with_max_value_divisor(NS_PER_MAX_UNIT);
    let failed =
        |e: &dyn std::fmt::Debug| Failure::usage(format!("the log cannot be written: {e:?}"));
    let mut log = builder
        .begin_log_with(&mut out, &mut serializer)
        .map_err(|e| failed(&e))?;
    for (name, histogram) in &found {
        let tag = tag(name);
        log.write_histogram(histogram, Duration::ZERO, length, Tag::new(&tag))
            .map_err(|e| failed(&e))?;
    }
    Ok(format!("{} histograms", found.len()))
}

/// Returns the name as a tag, without spaces, commas and characters that steer a terminal.
fn tag(name: &str) -> String {
    undertick_text::clean(name).replace([' ', ',', '\n', '\r', '\t'], "_")
}
