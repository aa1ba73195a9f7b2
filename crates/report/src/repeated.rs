//! How the intervals of an experiment's repetitions are told apart.

use std::collections::BTreeMap;

use undertick_document::Repeated;

use crate::text::clean;

/// Where an interval belongs, in a few words: process and step, script and parameters.
pub(crate) fn belongs(repeated: &Repeated) -> String {
    let step = repeated
        .step
        .map(|step| format!("{}.{step}", repeated.process));
    let own = match step {
        Some(step) => step,
        None => repeated.process.clone(),
    };
    let parts = [own, repeated.script.clone(), values(&repeated.parameters)];
    let parts: Vec<&str> = (parts.iter().map(String::as_str))
        .filter(|part| !part.is_empty())
        .collect();
    parts.join(", ")
}

/// Parameters and their values on one line.
pub(crate) fn values(parameters: &BTreeMap<String, String>) -> String {
    let each: Vec<String> = (parameters.iter())
        .map(|(name, value)| match name.as_str() {
            "place" => clean(value),
            _ => format!("{} {}", clean(name), clean(value)),
        })
        .collect();
    each.join(", ")
}
