use super::*;
use tracing_core::callsite::Callsite as _;

/// The metadata of an event and of a span.
fn metadata() -> [&'static Metadata<'static>; 2] {
    let event = tracing::callsite! { name: "e", kind: tracing_core::Kind::EVENT, fields: };
    let span = tracing::callsite! { name: "s", kind: tracing_core::Kind::SPAN, fields: };
    [event.metadata(), span.metadata()]
}

#[test]
fn a_callsite_keeps_its_numbers_and_a_span_has_three() {
    let [event, span] = metadata();
    let callsites = Callsites::new();
    let of_span = callsites.numbers(span).unwrap();
    let of_event = callsites.numbers(event).unwrap();
    let mut all = [of_span.event, of_span.new, of_span.closed, of_event.event];
    assert_eq!(callsites.numbers(span), Some(of_span));
    assert_eq!(of_span.event, undertick::number("s"));
    assert_eq!(of_span.closed, undertick::number("s closed"));
    all.sort_unstable();
    assert!(all.windows(2).all(|two| two[0] < two[1]) && all[0] >= 16384);
}
