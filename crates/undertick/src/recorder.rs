//! The functions of the interface where events can be recorded.

use undertick_ring::layout::names;
use undertick_ring::{Kind, Record};

use crate::process;
pub use crate::process::set_rate as sample_rate;
pub use crate::sampled::{begin as begin_sampled, end as end_sampled, seed as sample_seed};
use crate::thread::{Reading, record, record_wide};

#[inline(always)]
pub fn event(event: u16, payload: u32) {
    record(Kind::Instant, event, payload, Reading::Plain);
}
#[inline(always)]
pub fn event64(event: u16, payload: u64) {
    record_wide(event, payload);
}
#[inline(always)]
pub fn begin(event: u16) {
    record(Kind::Begin, event, 0, Reading::Waiting);
}
#[inline(always)]
pub fn end(event: u16) {
    record(Kind::End, event, 0, Reading::Waiting);
}
#[inline(always)]
pub fn begin_fast(event: u16) {
    record(Kind::Begin, event, Record::UNORDERED, Reading::Plain);
}
#[inline(always)]
pub fn end_fast(event: u16) {
    record(Kind::End, event, Record::UNORDERED, Reading::Plain);
}
#[inline(always)]
pub fn next(from: u16, to: u16) {
    record(Kind::Next, from, u32::from(to), Reading::Waiting);
}
#[inline(always)]
pub fn pair(event: u16) {
    record(Kind::Pair, event, 0, Reading::Pair);
}
#[inline(always)]
pub fn begin_ordered(event: u16) {
    record(Kind::BeginOrdered, event, 0, Reading::Ordered);
}
#[inline(always)]
pub fn end_ordered(event: u16) {
    record(Kind::EndOrdered, event, 0, Reading::Ordered);
}
#[inline(always)]
pub fn begin_paired(event: u16) {
    record(Kind::BeginOrdered, event, 0, Reading::PairBefore);
}
#[inline(always)]
pub fn end_paired(event: u16) {
    record(Kind::EndOrdered, event, 0, Reading::PairAfter);
}
pub fn name(event: u16, name: &str) {
    process::append_name(names::EVENT, event, name);
}
pub fn number(name: &str, tells: bool) -> u16 {
    crate::names::number(name, tells)
}
pub fn thread_name(name: &str) {
    process::append_name(names::THREAD, 0, name);
}
#[inline(always)]
pub fn enabled() -> bool {
    process::enabled()
}
