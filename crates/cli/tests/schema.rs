//! The published schemas of documents (docs/schema) are those that are printed, and change by addition
//! alone as long as their version stays. `cargo xtask test` holds the documents of all these tests to
//! them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{refused, said, undertick};

fn published() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema")
}

/// The names in the list of documents.
fn names() -> Vec<String> {
    let (code, text) = said(&undertick(&["schema"]));
    assert_eq!(code, 0, "{text}");
    (text.lines().filter_map(|line| line.strip_prefix("  ")))
        .filter_map(|line| line.split(' ').next())
        .map(str::to_owned)
        .collect()
}

/// The fields of a schema, each with the pointer of the object that has it.
fn fields(schema: &Value, at: &str, into: &mut Vec<String>) {
    match schema {
        Value::Object(parts) => {
            for (name, part) in parts {
                if let ("properties", Value::Object(fields)) = (name.as_str(), part) {
                    into.extend(fields.keys().map(|field| format!("{at}.{field}")));
                }
                fields(part, &format!("{at}/{name}"), into);
            }
        }
        Value::Array(parts) => (parts.iter().enumerate())
            .for_each(|(number, part)| fields(part, &format!("{at}/{number}"), into)),
        _ => {}
    }
}

/// What `old` has, and `new` under the same version no more.
fn missing(old: &Value, new: &Value) -> Vec<String> {
    if old["$id"] != new["$id"] {
        return Vec::new();
    }
    let (mut had, mut has) = (Vec::new(), Vec::new());
    fields(old, "", &mut had);
    fields(new, "", &mut has);
    had.retain(|field| !has.contains(field));
    had
}

/// UNDERTICK_WRITE_SCHEMAS=1 writes the schemas; where one loses a field, its version must rise first.
#[test]
fn published_schemas_are_those_printed() {
    let writes = std::env::var_os("UNDERTICK_WRITE_SCHEMAS").is_some();
    let names = names();
    assert!(names.len() >= 19, "{names:?}");
    for name in &names {
        let output = undertick(&["schema", name]);
        assert_eq!(said(&output).0, 0);
        let schema: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(
            schema["properties"]["schema_version"]["const"].is_u64(),
            "{name}"
        );
        let file = published().join(format!("{name}.json"));
        let before = fs::read(&file).unwrap_or_default();
        if let Ok(before) = serde_json::from_slice(&before) {
            let lost = missing(&before, &schema);
            assert!(
                lost.is_empty(),
                "{name}: no longer has {lost:?}: is it another version?"
            );
        }
        match writes {
            true => fs::write(file, &output.stdout).unwrap(),
            false => assert!(
                before == output.stdout,
                "docs/schema/{name}.json is not what `undertick schema {name}` prints; \
                 UNDERTICK_WRITE_SCHEMAS=1 writes it"
            ),
        }
    }
    let files = fs::read_dir(published()).unwrap();
    assert_eq!(
        files.count(),
        names.len(),
        "docs/schema has others than {names:?}"
    );
}

#[test]
fn a_lost_field_is_noticed() {
    let text = said(&undertick(&["schema", "doctor"])).1;
    let old: Value = serde_json::from_str(&text).unwrap();
    let mut new = old.clone();
    assert!(missing(&old, &new).is_empty());
    let check = new.pointer_mut("/$defs/Check/properties").unwrap();
    let mend = check.as_object_mut().unwrap().remove("mend").unwrap();
    assert_eq!(missing(&old, &new), ["/$defs/Check.mend"]);
    assert!(missing(&new, &old).is_empty());
    // A field of another name is a lost one; under another version all may change.
    new.pointer_mut("/$defs/Check/properties").unwrap()["remedy"] = mend;
    assert_eq!(missing(&old, &new), ["/$defs/Check.mend"]);
    new["$id"] = "urn:undertick:doctor:2".into();
    assert!(missing(&old, &new).is_empty());
}

#[test]
fn a_document_that_is_none() {
    refused(&undertick(&["schema", "reprot"]), 2, &["reprot", "report"]);
}
