//! What explains slow calls, as a table.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, Float64Array, Int16Array, Int32Array, Int64Array, RecordBatch, StringArray,
};
use undertick_document::explanation::{Explanation, Part, SlowCall};
use undertick_report::explanation::words;

/// A part of the excess of a call; the number counts the calls, the slowest is 0.
type Row<'a> = (usize, &'a SlowCall, &'a Part);

/// Returns the parts of the excess of each call as columns; an unknown value is null.
pub fn parts(explanation: &Explanation) -> Result<RecordBatch, arrow_schema::ArrowError> {
    let calls = explanation
        .paths
        .iter()
        .flat_map(|path| path.slowest.iter().enumerate());
    let rows: Vec<Row<'_>> = calls
        .flat_map(|(at, call)| call.parts.iter().map(move |part| (at, call, part)))
        .collect();
    let floats = |of: &dyn Fn(&Row<'_>) -> Option<f64>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<Float64Array>())
    };
    let strings = |of: &dyn Fn(&Row<'_>) -> Option<String>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<StringArray>())
    };
    let counts = |of: &dyn Fn(&Row<'_>) -> u64| -> ArrayRef {
        let values = rows
            .iter()
            .map(|row| i64::try_from(of(row)).unwrap_or(i64::MAX));
        Arc::new(Int64Array::from_iter_values(values))
    };
    // The name that the document's JSON has.
    let cause = |part: &Part| Some(serde_json::to_value(part.cause).ok()?.as_str()?.to_owned());
    let tids: Int32Array = rows.iter().map(|(_, call, _)| Some(call.tid)).collect();
    let cpus: Int16Array = rows.iter().map(|(_, call, _)| call.cpu).collect();
    RecordBatch::try_from_iter_with_nullable([
        ("call", counts(&|(at, ..)| *at as u64), false),
        (
            "start_ns",
            floats(&|(_, call, _)| Some(call.start_ns)),
            false,
        ),
        ("took_ns", floats(&|(_, call, _)| Some(call.took_ns)), false),
        (
            "excess_ns",
            floats(&|(_, call, _)| Some(call.excess_ns)),
            false,
        ),
        ("tid", Arc::new(tids) as ArrayRef, false),
        ("thread", strings(&|(_, call, _)| call.thread.clone()), true),
        ("cpu", Arc::new(cpus) as ArrayRef, true),
        ("cause", strings(&|(.., part)| cause(part)), true),
        ("of", strings(&|(.., part)| part.of.clone()), true),
        ("words", strings(&|(.., part)| Some(words(part))), false),
        ("ns", floats(&|(.., part)| Some(part.ns)), false),
        ("n", counts(&|(.., part)| part.n), false),
        ("typical_n", floats(&|(.., part)| part.typical_n), true),
    ])
}
