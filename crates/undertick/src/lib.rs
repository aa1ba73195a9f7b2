//! How long does a span of a running program take, in place, without the
//! measurement slowing the program down?
//!
//! ```
//! {
//!     let _span = undertick::span!("parse");
//!     // parse
//! }
//! // Or with numbers of your own, below 16384:
//! const COMMIT: u16 = 2;
//! undertick::name!(COMMIT, "commit");
//! undertick::event!(COMMIT, 42);
//! ```
//!
//! Run the program under `undertick record -- PROGRAM`, then run `undertick report
//! NAME.ut`. A program that is started by hand records nothing, and each call costs
//! one predictable branch, until `undertick record --pid PID` attaches. With the
//! feature `disable` no code is left; with `UNDERTICK_ATTACH=0` in its environment,
//! a program records only when it is started by `record`.
//!
//! Method: each thread owns a ring in shared memory; an event is a clock
//! reading and a 16-byte store, published with one more store. The common case has
//! no lock, no system call and no allocation; another process drains the rings.
//! Events that a killed program had written are not lost.
//!
//! Caveats: this crate records on Linux on x86-64 and aarch64 (elsewhere nothing is
//! recorded). `span!` reads the clock when earlier instructions have been executed,
//! but the work inside may start during the first reading. This is accurate above
//! about 200 ns; below that, use [`begin_ordered`] and [`end_ordered`].

#[cfg(all(
    not(feature = "disable"),
    target_os = "linux",
    not(target_pointer_width = "64")
))]
compile_error!(
    "undertick: 32-bit programs cannot be recorded: build for 64 bits, or use the feature `disable`, and the calls do nothing"
);

#[cfg(all(
    not(feature = "disable"),
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod attach_page;
#[cfg(all(
    not(feature = "disable"),
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod clock;
#[cfg(all(
    not(feature = "disable"),
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod giving_up;
#[cfg(all(
    not(feature = "disable"),
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod instance;
#[cfg(all(
    not(feature = "disable"),
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod names;
#[cfg(not(all(
    not(feature = "disable"),
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
mod no_op;
#[cfg(all(
    not(feature = "disable"),
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod pool;
#[cfg(all(
    not(feature = "disable"),
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod process;
#[cfg(all(
    not(feature = "disable"),
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod recorder;
#[cfg(all(
    not(feature = "disable"),
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod ring_allocation;
#[cfg(all(
    not(feature = "disable"),
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod sampled;
#[cfg(all(
    not(feature = "disable"),
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod session_switch;
mod task;
#[cfg(all(
    not(feature = "disable"),
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod thread;

#[cfg(not(all(
    not(feature = "disable"),
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
use no_op as imp_;
#[cfg(all(
    not(feature = "disable"),
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
use recorder as imp_;

pub use task::{TaskName, TaskSpan, task_span};

/// Records a point in time with a 32-bit payload.
#[inline(always)]
pub fn event(event: u16, payload: u32) {
    imp_::event(event, payload);
}

/// Records a point in time as [`event()`] does, with a 64-bit payload; uses two records.
#[inline(always)]
pub fn event64(event: u16, payload: u64) {
    imp_::event64(event, payload);
}

/// Begins a span. Spans of one event may nest.
///
/// The clock is read when all earlier instructions have been executed: the span does not
/// include loads that were issued before it.
#[inline(always)]
pub fn begin(event: u16) {
    imp_::begin(event);
}

/// Ends the innermost open span of this event, when all its instructions have been
/// executed.
#[inline(always)]
pub fn end(event: u16) {
    imp_::end(event);
}

/// Begins a span as [`begin`] does, but the reading does not wait for earlier
/// instructions: work from before the span may still be under way, and some CPUs count
/// it in the span.
///
/// Use it for spans whose work must overlap with the code around them. Outputs say
/// "edges not ordered".
#[inline(always)]
pub fn begin_fast(event: u16) {
    imp_::begin_fast(event);
}

/// Ends a span that [`begin_fast`] began. The span does not include work that is still
/// under way, such as loads that miss the caches, however long that work takes.
#[inline(always)]
pub fn end_fast(event: u16) {
    imp_::end_fast(event);
}

/// Ends span `from` and begins span `to` with one clock reading, taken as by [`end`].
#[inline(always)]
pub fn next(from: u16, to: u16) {
    imp_::next(from, to);
}

/// Records two clock readings with nothing between them: the cost of a reading, in place.
#[inline(always)]
pub fn pair(event: u16) {
    imp_::pair(event);
}

/// Begins a span as [`begin`] does, with a serialised reading. Use it for spans below
/// about 200 ns.
#[inline(always)]
pub fn begin_ordered(event: u16) {
    imp_::begin_ordered(event);
}

/// Ends a span as [`end`] does, with a serialised reading.
#[inline(always)]
pub fn end_ordered(event: u16) {
    imp_::end_ordered(event);
}

/// Begins a span as [`begin_ordered`] does, after a pair of readings. The record stores
/// the cost of a reading right before the span (`report --compensate pairs`).
#[inline(always)]
pub fn begin_paired(event: u16) {
    imp_::begin_paired(event);
}

/// Ends a span as [`end_ordered`] does, with a pair of readings after it.
#[inline(always)]
pub fn end_paired(event: u16) {
    imp_::end_paired(event);
}

/// Begins a sampled span: only a random part of the event's spans is recorded
/// (see [`sample_rate`]); all are counted. [`end_sampled`] ends the span.
///
/// On average, such a span costs about a tenth of a full one, so it can be
/// used where recording each span would slow the program. The recorded durations
/// are an unbiased sample. Use these for all spans of an event, or for none.
#[inline(always)]
pub fn begin_sampled(event: u16) {
    imp_::begin_sampled(event);
}

/// Ends a span that [`begin_sampled`] began.
#[inline(always)]
pub fn end_sampled(event: u16) {
    imp_::end_sampled(event);
}

/// Sets the sampling rate of an event, in this process and all others of the session:
/// one in `one_in` sampled spans is recorded. `one_in` is at most 65535; 0 restores the
/// session's default (16 unless `undertick record --sample` says otherwise). The new
/// rate applies from the next recorded span on.
pub fn sample_rate(event: u16, one_in: u32) {
    imp_::sample_rate(event, one_in);
}

/// Makes the choice of the calling thread's sampled spans repeatable.
pub fn sample_seed(seed: u64) {
    imp_::sample_seed(seed);
}

/// Names an event in the trace; once per process is enough, at any time.
pub fn name(event: u16, name: &str) {
    imp_::name(event, name);
}

/// Returns the event number of a name, from 16384 to 32766. A name has the same number in
/// the whole process, including all its libraries. If no number is left, the result is
/// 32767, "(other names)". Call it once and store the number, as [`span!`] does with a name.
#[must_use]
pub fn number(name: &str) -> u16 {
    imp_::number(name, false)
}

#[doc(hidden)]
pub use core::sync::atomic::AtomicU16;
use core::sync::atomic::Ordering;

/// An event as the macros accept it: its number, or its name.
pub trait Event: Copy {
    /// The event's number; that of a name is stored in `kept`, which is 0 before.
    #[doc(hidden)]
    fn number(self, kept: &'static AtomicU16) -> u16;
}

impl Event for u16 {
    #[inline(always)]
    fn number(self, _: &'static AtomicU16) -> u16 {
        self
    }
}

impl Event for &str {
    #[inline(always)]
    fn number(self, kept: &'static AtomicU16) -> u16 {
        match kept.load(Ordering::Relaxed) {
            0 => ask(self, kept),
            number => number,
        }
    }
}

#[cold]
#[inline(never)]
fn ask(name: &str, kept: &AtomicU16) -> u16 {
    let number = imp_::number(name, true);
    kept.store(number, Ordering::Relaxed);
    number
}

/// The number of the event that a macro was given.
#[doc(hidden)]
#[macro_export]
macro_rules! number_of {
    ($event:literal) => {{
        static KEPT: $crate::AtomicU16 = $crate::AtomicU16::new(0);
        $crate::Event::number($event, &KEPT)
    }};
    ($event:expr) => {
        $event
    };
}

/// Names the calling thread in the trace.
pub fn thread_name(name: &str) {
    imp_::thread_name(name);
}

/// Whether events are being recorded.
#[inline(always)]
#[must_use]
pub fn enabled() -> bool {
    imp_::enabled()
}

/// A span that lasts as long as this value; made by [`span!`].
#[must_use = "a span ends when it is dropped: bind it to a name"]
pub struct Span {
    event: u16,
}

impl Span {
    /// Begins a span.
    #[inline(always)]
    pub fn new(event: u16) -> Self {
        begin(event);
        Self { event }
    }
}

impl Drop for Span {
    #[inline(always)]
    fn drop(&mut self) {
        end(self.event);
    }
}

/// A sampled span that lasts as long as this value; made by [`sampled_span!`].
#[must_use = "a span ends when it is dropped: bind it to a name"]
pub struct SampledSpan {
    event: u16,
}

impl SampledSpan {
    /// Begins a sampled span.
    #[inline(always)]
    pub fn new(event: u16) -> Self {
        begin_sampled(event);
        Self { event }
    }
}

impl Drop for SampledSpan {
    #[inline(always)]
    fn drop(&mut self) {
        end_sampled(self.event);
    }
}

/// `event!(EVENT)` or `event!(EVENT, payload: u32)`: see [`event()`]. The event may also be a
/// name in quotes, as in all these macros.
#[macro_export]
macro_rules! event {
    ($event:expr) => {
        $crate::event($crate::number_of!($event), 0)
    };
    ($event:expr, $payload:expr) => {
        $crate::event($crate::number_of!($event), $payload)
    };
}

/// `event64!(EVENT, payload: u64)`: see [`event64()`].
#[macro_export]
macro_rules! event64 {
    ($event:expr, $payload:expr) => {
        $crate::event64($crate::number_of!($event), $payload)
    };
}

/// `let _span = span!(EVENT);` or `let _span = span!("parse");`: a span until the end of the
/// scope. A name gets a number, which is stored: see [`number`].
#[macro_export]
macro_rules! span {
    ($event:expr) => {
        $crate::Span::new($crate::number_of!($event))
    };
}

/// `let _span = sampled_span!(EVENT);`: a sampled span until the end of the
/// scope; see [`begin_sampled`].
#[macro_export]
macro_rules! sampled_span {
    ($event:expr) => {
        $crate::SampledSpan::new($crate::number_of!($event))
    };
}

/// `pair!(EVENT)`: see [`pair()`].
#[macro_export]
macro_rules! pair {
    ($event:expr) => {
        $crate::pair($crate::number_of!($event))
    };
}

/// `name!(EVENT, "name")`: see [`name()`].
#[macro_export]
macro_rules! name {
    ($event:expr, $name:expr) => {
        $crate::name($event, $name)
    };
}
