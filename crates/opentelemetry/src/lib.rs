//! How long do the spans last that a program already has for [OpenTelemetry]?
//!
//! ```
//! use opentelemetry::trace::{Tracer, TracerProvider};
//! use opentelemetry_sdk::trace::SdkTracerProvider;
//!
//! let provider = SdkTracerProvider::builder()
//!     .with_span_processor(undertick_opentelemetry::processor())
//!     .build();
//! let tracer = provider.tracer("shop");
//! tracer.in_span("order", |_| tracer.in_span("payment", |_| {}));
//! ```
//!
//! Run the program under `undertick record -- PROGRAM`; `undertick export --to otlp` turns the trace
//! into OpenTelemetry's spans again, with the same identifiers. Nothing is exported while the program
//! runs. Without a recorder, a span costs a check of one word.
//!
//! Method: where a span starts and ends in one thread, and the spans in it end before it does, it is
//! the begin and end of a span of that thread. A name of which a span ended elsewhere, or out of turn,
//! is recorded by two events from then on: `NAME new` and `NAME closed`, with the span's identifier as
//! payload. Further events follow the begin, or the `NAME new`, and have 64 bits of payload:
//!
//! | event | payload |
//! |---|---|
//! | `otel.trace_id.high`, `otel.trace_id.low` | the trace's identifier, two halves |
//! | `otel.parent_span_id` | the parent's identifier; 0 if there is none |
//! | `otel.span_id` | the span's identifier; not after `NAME new`, which has it |
//!
//! The first three are left out if the parent is the span around it.
//!
//! Caveats: attributes, events, links, status and kind of a span are not kept. The first spans of a
//! name that end elsewhere have a begin already: it is ended when its thread next starts or ends a
//! span, after an event `otel.ended_elsewhere`, and exports call the span unfinished. A name needs
//! three of the 16383 numbers for names. Names beyond [`MOST_NAMES`] are recorded as "(other names)".
//! The SDK gives a processor no access to the name of a span that starts but by a copy of its data,
//! which is part of the cost.
//!
//! [OpenTelemetry]: https://opentelemetry.io

mod names;

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry::Context;
use opentelemetry::trace::Span as _;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};

pub use names::MOST_NAMES;
use names::{NameState, name_state};

/// Most spans that ended outside their thread and whose begin is still open.
const MOST_ELSEWHERE: usize = 1 << 16;

/// A processor that records spans; created by [`processor`].
#[derive(Debug)]
pub struct UndertickSpanProcessor {
    numbers: Numbers,
    /// Since when is recorded, Unix ns; 0: not now. No other memory depends on it.
    since_ns: AtomicU64,
}

/// Numbers of the events that keep identifiers.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    high: u16,
    low: u16,
    parent: u16,
    span: u16,
    elsewhere: u16,
}

/// Returns a span processor that records the begins and ends of spans.
#[must_use]
pub fn processor() -> UndertickSpanProcessor {
    UndertickSpanProcessor {
        numbers: Numbers {
            high: undertick::number("otel.trace_id.high"),
            low: undertick::number("otel.trace_id.low"),
            parent: undertick::number("otel.parent_span_id"),
            span: undertick::number("otel.span_id"),
            elsewhere: undertick::number("otel.ended_elsewhere"),
        },
        since_ns: AtomicU64::new(0),
    }
}

/// A span has begun so long before its processor hears of it, at most.
const MARGIN: Duration = Duration::from_millis(10);

/// A span whose begin was recorded in this thread.
#[derive(Clone, Copy)]
struct Open {
    trace: u128,
    span: u64,
    name: &'static NameState,
    /// It ended in another thread.
    is_over: bool,
}

/// What is known in one thread.
struct Thread {
    /// Open spans, the innermost last.
    open: Vec<Open>,
    /// The value of [`ELSEWHERE_CHANGES`] that `open` takes into account.
    seen: usize,
}

thread_local! {
    static THREAD: RefCell<Thread> = const { RefCell::new(Thread { open: Vec::new(), seen: 0 }) };
}

/// Number of spans that were ever put into [`ELSEWHERE`], so that threads lock it only when there is
/// a new one. The set itself is under the lock; a thread that reads an old number looks next time.
static ELSEWHERE_CHANGES: AtomicUsize = AtomicUsize::new(0);
/// Spans that ended in a thread that did not begin them.
static ELSEWHERE: Mutex<Option<HashSet<u64>>> = Mutex::new(None);

#[cold]
fn note_elsewhere(span: u64) {
    let mut spans = ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner);
    let spans = spans.get_or_insert_with(HashSet::new);
    if spans.len() >= MOST_ELSEWHERE {
        // Begins of threads that ended, or from before the recording: nobody takes them out.
        spans.clear();
    }
    spans.insert(span);
    ELSEWHERE_CHANGES.fetch_add(1, Ordering::Relaxed);
}

impl Thread {
    /// Marks spans that ended elsewhere.
    #[cold]
    fn look_elsewhere(&mut self, changes: usize) {
        let mut spans = ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(spans) = spans.as_mut() {
            for open in &mut self.open {
                open.is_over |= spans.remove(&open.span);
            }
        }
        self.seen = changes;
    }
}

impl UndertickSpanProcessor {
    /// Ends the innermost spans of this thread that ended elsewhere.
    fn end_elsewhere(&self, thread: &mut Thread) {
        let changes = ELSEWHERE_CHANGES.load(Ordering::Relaxed);
        if changes != thread.seen {
            thread.look_elsewhere(changes);
        }
        while let Some(&over) = thread.open.last().filter(|open| open.is_over) {
            thread.open.pop();
            undertick::event64(self.numbers.elsewhere, over.span);
            undertick::end(over.name.event);
        }
    }

    /// Whether spans are recorded now; notes since when.
    fn is_recorded(&self) -> bool {
        let since = self.since_ns.load(Ordering::Relaxed);
        match (undertick::enabled(), since) {
            (true, 0) => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH);
                let since = now.unwrap_or_default().saturating_sub(MARGIN);
                let since = (since.as_nanos() as u64).max(1);
                self.since_ns.store(since, Ordering::Relaxed);
                true
            }
            (false, 1..) => {
                self.since_ns.store(0, Ordering::Relaxed);
                false
            }
            (is_recorded, _) => is_recorded,
        }
    }

    /// Whether a span began before the recording did.
    fn began_before(&self, span: &SpanData) -> bool {
        let since = Duration::from_nanos(self.since_ns.load(Ordering::Relaxed));
        span.start_time < UNIX_EPOCH + since
    }

    /// Records the end of a span that this thread did not begin.
    fn end_of_other(&self, span: &SpanData, id: u64) {
        if self.began_before(span) {
            return;
        }
        let name = name_state(&span.name);
        if span.start_time <= name.make_loose() {
            note_elsewhere(id);
        }
        undertick::event64(name.closed, id);
    }

    /// Records the identifiers that do not follow from the span around it.
    fn identifiers(&self, trace: u128, parent: u64) {
        undertick::event64(self.numbers.high, (trace >> 64) as u64);
        undertick::event64(self.numbers.low, trace as u64);
        undertick::event64(self.numbers.parent, parent);
    }
}

impl SpanProcessor for UndertickSpanProcessor {
    fn on_start(&self, span: &mut Span, _: &Context) {
        if !self.is_recorded() {
            return;
        }
        let Some(data) = span.exported_data() else {
            return;
        };
        let context = span.span_context();
        let trace = u128::from_be_bytes(context.trace_id().to_bytes());
        let id = number(context.span_id());
        let parent = number(data.parent_span_id);
        let name = name_state(&data.name);
        let begin = |thread: &RefCell<Thread>| {
            let thread = &mut *thread.borrow_mut();
            self.end_elsewhere(thread);
            undertick::begin(name.event);
            let outer = thread.open.last();
            if outer.is_none_or(|outer| (outer.trace, outer.span) != (trace, parent)) {
                self.identifiers(trace, parent);
            }
            undertick::event64(self.numbers.span, id);
            thread.open.push(Open {
                trace,
                span: id,
                name,
                is_over: false,
            });
        };
        // While a thread ends, its memory may be gone.
        if name.is_loose() || THREAD.try_with(begin).is_err() {
            undertick::event64(name.new, id);
            self.identifiers(trace, parent);
        }
    }

    fn on_end(&self, span: SpanData) {
        let id = number(span.span_context.span_id());
        let is_recorded = self.is_recorded();
        let is_known = THREAD.try_with(|thread| {
            let thread = &mut *thread.borrow_mut();
            if is_recorded {
                self.end_elsewhere(thread);
            }
            let known = thread.open.iter().rposition(|known| known.span == id);
            let Some(at) = known else { return false };
            let ended = thread.open.remove(at);
            if is_recorded {
                if at < thread.open.len() {
                    // Spans inside it go on: from now on the name takes the message form.
                    ended.name.make_loose();
                }
                undertick::end(ended.name.event);
            }
            true
        });
        if is_recorded && is_known != Ok(true) {
            self.end_of_other(&span, id);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

fn number(id: opentelemetry::SpanId) -> u64 {
    u64::from_be_bytes(id.to_bytes())
}
