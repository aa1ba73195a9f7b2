//! `undertick schema`: JSON Schemas of the documents that the commands print, made from the types
//! that they are printed from.

use clap::Args;
use clap::builder::PossibleValuesParser;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};
use undertick_document::{self as document, explanation};
use undertick_format::manifest;
use undertick_hosts::exchanges;
use undertick_report::{
    self as report, benchmarks, compare, doctor, fleet, history, interference, survey,
};

use crate::{Failure, estimate, import, merge, output, slow, sync};

/// Print the JSON Schema of a document that a command prints with --json, or list the documents
#[derive(Args)]
#[command(
    after_help = "Examples:\n  undertick schema\n  undertick schema report > report.schema.json\n  \
    undertick report run.ut --json > run.json && check-jsonschema --schemafile report.schema.json run.json\n\n\
    A document names the version of its schema as schema_version. Within a version fields are added,\n\
    never renamed or removed, so a program does well to ignore fields that it does not know."
)]
pub struct Schema {
    /// Kind of document; without it, all kinds are listed
    #[arg(value_parser = PossibleValuesParser::new(DOCUMENTS.map(|document| document.name)))]
    pub document: Option<String>,
}

/// A kind of document.
struct Document {
    name: &'static str,
    /// What prints or writes it.
    source: &'static str,
    /// The `schema_version` of the document.
    version: u32,
    schema: fn() -> schemars::Schema,
}

const DOCUMENTS: [Document; 23] = [
    of_type::<document::Report>(
        "report",
        "report, stacks, locks, allocations, tasks, demo, run, primitives",
        document::SCHEMA_VERSION,
    ),
    of_type::<explanation::Explanation>("explain", "explain", explanation::SCHEMA_VERSION),
    of_type::<compare::Comparison>("compare", "compare", compare::SCHEMA_VERSION),
    of_type::<benchmarks::Benchmarks>(
        "benchmarks",
        "(a process of compare --bench -o DIR, or of bench -o DIR)",
        benchmarks::SCHEMA_VERSION,
    ),
    of_type::<benchmarks::BenchmarkRuns>("benchmark-runs", "bench", benchmarks::SCHEMA_VERSION),
    of_type::<history::History>(
        "history",
        "history show, history check",
        history::SCHEMA_VERSION,
    ),
    of_type::<doctor::Diagnosis>("doctor", "doctor", doctor::SCHEMA_VERSION),
    of_type::<report::audit::Audit>("clock", "clock", 1),
    of_type::<report::calibrate::Calibrate>("calibrate", "calibrate", 1),
    of_type::<estimate::Document>("estimate", "estimate; with --sets, one in each line", 1),
    of_type::<slow::PlanDocument>("slow-plan", "slow plan", 1),
    of_type::<undertick_meter::slow::Document>("slow-run", "slow run", 1),
    of_type::<interference::Interference>("interference", "interference", 1),
    of_type::<interference::Line>(
        "interference-line",
        "interference --continuous, one in each line",
        1,
    ),
    of_type::<survey::Survey>("survey", "survey", survey::SCHEMA_VERSION),
    of_type::<fleet::Fleet>("fleet", "survey --fleet", fleet::SCHEMA_VERSION),
    of_type::<report::reproduce::Reproduction>("reproduce", "reproduce", 1),
    of_type::<sync::SyncDocument>("sync", "sync HOST", 1),
    of_type::<sync::Listened>("sync-listen", "sync --listen", 1),
    of_type::<exchanges::SyncFile>("exchanges", "(the file of sync -o)", exchanges::VERSION),
    of_type::<import::Imported>("import", "import", 1),
    of_type::<merge::Merged>("merge", "merge", 1),
    of_type::<manifest::Manifest>(
        "manifest",
        "(manifest.json of a trace)",
        manifest::SCHEMA_VERSION,
    ),
];
/// Columns of a document's name in the list.
const NAME_COLUMNS: usize = 18;

/// Prints a schema, or which there are.
pub fn run(arguments: &Schema) -> Result<u8, Failure> {
    match &arguments.document {
        None => output::print(&list()),
        Some(name) => {
            let found = DOCUMENTS.iter().find(|document| document.name == name);
            output::as_json(&found.map(Document::published))
        }
    }
}

fn list() -> String {
    let line =
        |document: &Document| format!("  {:<NAME_COLUMNS$} {}\n", document.name, document.source);
    let lines: String = DOCUMENTS.iter().map(line).collect();
    format!("Documents, and the commands that print them (with --json):\n{lines}")
}

impl Document {
    /// The schema with its name, and with the one `schema_version` that it describes.
    fn published(&self) -> schemars::Schema {
        let mut schema = (self.schema)();
        let (name, version) = (self.name, self.version);
        schema.insert(
            "$id".to_owned(),
            json!(format!("urn:undertick:{name}:{version}")),
        );
        schema.insert("title".to_owned(), json!(format!("undertick {name}")));
        for part in schema
            .as_object_mut()
            .into_iter()
            .flat_map(|all| all.values_mut())
        {
            for_readers_of_json(part);
        }
        let stated = schema.pointer_mut("/properties/schema_version");
        if let Some(Value::Object(stated)) = stated {
            stated.insert("const".to_owned(), json!(version));
            stated.insert("description".to_owned(), json!("Version of this schema."));
        }
        schema
    }
}

/// Takes out of descriptions what only Rust has: links of its documentation, and `None`.
fn for_readers_of_json(part: &mut Value) {
    match part {
        Value::Object(all) => {
            for (name, part) in all {
                match part {
                    Value::String(text) if name == "description" => *text = without_links(text),
                    part => for_readers_of_json(part),
                }
            }
        }
        Value::Array(all) => all.iter_mut().for_each(for_readers_of_json),
        _ => {}
    }
}

/// The text with the words of links alone: ``[`a::B`](c)`` is `` `B` ``.
fn without_links(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once("[`") {
        let Some((name, after)) = link.split_once("`]") else {
            break;
        };
        let word = name.rsplit("::").next().unwrap_or(name);
        out += &format!("{before}`{word}`");
        rest = match after
            .strip_prefix('(')
            .and_then(|after| after.split_once(')'))
        {
            Some((_, after)) => after,
            None => after,
        };
    }
    (out + rest).replace("`None`", "`null`")
}

const fn of_type<T: JsonSchema>(
    name: &'static str,
    source: &'static str,
    version: u32,
) -> Document {
    Document {
        name,
        source,
        version,
        schema: || {
            let generator = SchemaSettings::draft2020_12()
                .for_serialize()
                .into_generator();
            generator.into_root_schema_for::<T>()
        },
    }
}

#[cfg(test)]
mod tests;
