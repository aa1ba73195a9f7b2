//! How long do the spans last that a program already has for [`tracing`]?
//!
//! ```
//! use tracing_subscriber::prelude::*;
//!
//! tracing_subscriber::registry().with(undertick_tracing::layer()).init();
//! let orders = tracing::info_span!("orders", n = 3);
//! orders.in_scope(|| tracing::info!(pieces = 12, "sold"));
//! ```
//!
//! Run the program under `undertick record -- PROGRAM`. Without a recorder, a span costs a check of
//! one word.
//!
//! Method: a callsite has the event number of its name ([`undertick::number`]), requested at its
//! first use; after that nothing is locked or allocated. Entering and leaving a span are the begin
//! and end of a span of its thread. A span that moves between threads, as the span of an async task
//! does, is entered once for each poll; with [`Instrument`] in place of `tracing::Instrument` it is a task,
//! whose waits are known, too (`undertick tasks`). Two more events, `NAME new` and `NAME closed`, mark its
//! whole life; their payload is the span's id:
//!
//! ```toml
//! [[interval]]
//! name = "orders, whole life"
//! start = "orders new"
//! end = "orders closed"
//! match = "message"
//! ```
//!
//! Caveats: the payload of an event is its field `payload`, or else its first integer field; no
//! other field is kept. Spans of the same name are treated as one. A span's name needs three of the
//! 16383 numbers for names. When they are used up, further names are recorded as "(other names)".
//! Callsites beyond [`MOST_CALLSITES`] are not recorded. Ids are those of the registry, which
//! reuses them after a span is closed.
//!
//! [`tracing`]: https://docs.rs/tracing

mod callsites;
mod instrument;

pub use callsites::MOST_CALLSITES;
use callsites::{Callsites, Numbers};
pub use instrument::{Instrument, Instrumented};
use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Id};
use tracing_core::subscriber::Interest;
use tracing_core::{Event, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// A layer that records spans and events; created by [`layer`].
#[derive(Debug)]
pub struct UndertickLayer {
    callsites: Callsites,
    lives: bool,
}

/// Returns a layer that records spans, their whole lives, and events.
#[must_use]
pub fn layer() -> UndertickLayer {
    UndertickLayer {
        callsites: Callsites::new(),
        lives: true,
    }
}

impl UndertickLayer {
    /// Leaves out the whole lives of spans, for programs whose spans stay on their thread. This
    /// saves two events for each span.
    #[must_use]
    pub fn without_lives(mut self) -> Self {
        self.lives = false;
        self
    }

    fn of_span<S>(&self, id: &Id, context: &Context<'_, S>) -> Option<Numbers>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        self.callsites.numbers(context.metadata(id)?)
    }
}

impl<S> Layer<S> for UndertickLayer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        self.callsites.numbers(metadata);
        Interest::always()
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, _: Context<'_, S>) {
        if !self.lives || !undertick::enabled() {
            return;
        }
        if let Some(numbers) = self.callsites.numbers(attributes.metadata()) {
            undertick::event64(numbers.new, id.into_u64());
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if !undertick::enabled() || instrument::is_polled(id) {
            return;
        }
        if let Some(numbers) = self.of_span(id, &context) {
            undertick::begin(numbers.event);
        }
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        if !undertick::enabled() || instrument::is_polled(id) {
            return;
        }
        if let Some(numbers) = self.of_span(id, &context) {
            undertick::end(numbers.event);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        if !self.lives || !undertick::enabled() {
            return;
        }
        if let Some(numbers) = self.of_span(&id, &context) {
            undertick::event64(numbers.closed, id.into_u64());
        }
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if !undertick::enabled() {
            return;
        }
        let Some(Numbers { event: number, .. }) = self.callsites.numbers(event.metadata()) else {
            return;
        };
        let mut payload = Payload::default();
        event.record(&mut payload);
        match u32::try_from(payload.value) {
            Ok(value) => undertick::event(number, value),
            Err(_) => undertick::event64(number, payload.value),
        }
    }
}

/// Visitor for the field `payload`, or else the first integer.
#[derive(Default)]
struct Payload {
    value: u64,
    is_found: bool,
    is_named: bool,
}

impl Payload {
    fn take(&mut self, field: &Field, value: u64) {
        let is_named = field.name() == "payload";
        if is_named || !self.is_found {
            (self.value, self.is_found) = (value, true);
        }
        self.is_named |= is_named;
    }
}

impl Visit for Payload {
    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}

    fn record_i64(&mut self, field: &Field, value: i64) {
        if !self.is_named {
            self.take(field, value as u64);
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        if !self.is_named {
            self.take(field, value);
        }
    }
}
