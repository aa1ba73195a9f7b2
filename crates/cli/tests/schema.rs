//! The published schemas of documents (docs/schema) are those that are printed, and change by addition
//! alone as long as their version stays. `cargo xtask test` holds the documents of all these tests to
//! them.

use std::collections::{BTreeMap, BTreeSet};
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

/// A field, by its place in a document: its types, and whether it is always there.
type Fields = BTreeMap<String, (BTreeSet<String>, bool)>;

/// The fields of a part of a schema. `depth`: types that hold themselves end there.
fn fields(root: &Value, part: &Value, at: &str, depth: u32, into: &mut Fields) {
    if depth == 0 {
        return;
    }
    let mut go = |part: &Value, at: &str| fields(root, part, at, depth - 1, into);
    if let Some(name) = part["$ref"].as_str() {
        go(root.pointer(name.trim_start_matches('#')).unwrap(), at);
    }
    for word in ["anyOf", "oneOf", "allOf"] {
        for part in part[word].as_array().into_iter().flatten() {
            go(part, at);
        }
    }
    go(&part["items"], &format!("{at}[]"));
    for part in part["prefixItems"].as_array().into_iter().flatten() {
        go(part, &format!("{at}[]"));
    }
    if part["additionalProperties"].is_object() {
        go(&part["additionalProperties"], &format!("{at}{{}}"));
    }
    let required = part["required"].as_array().into_iter().flatten();
    let required: Vec<&str> = required.filter_map(Value::as_str).collect();
    for (name, field) in part["properties"].as_object().into_iter().flatten() {
        let place = format!("{at}.{name}");
        let mut types = BTreeSet::new();
        types_of(root, field, &mut types);
        into.insert(place.clone(), (types, required.contains(&name.as_str())));
        fields(root, field, &place, depth - 1, into);
    }
}

/// The types that a part allows, words of an enumeration as themselves.
fn types_of(root: &Value, part: &Value, into: &mut BTreeSet<String>) {
    if let Some(name) = part["$ref"].as_str() {
        types_of(
            root,
            root.pointer(name.trim_start_matches('#')).unwrap(),
            into,
        );
    }
    for word in ["anyOf", "oneOf", "allOf"] {
        for part in part[word].as_array().into_iter().flatten() {
            types_of(root, part, into);
        }
    }
    match &part["type"] {
        Value::String(of) => _ = into.insert(of.clone()),
        Value::Array(all) => into.extend(all.iter().filter_map(Value::as_str).map(str::to_owned)),
        _ => {}
    }
    for word in part["enum"]
        .as_array()
        .into_iter()
        .flatten()
        .chain(part.get("const"))
    {
        into.insert(format!("= {word}"));
    }
}

/// What programs that read documents of the `old` schema cannot rely on in those of the `new` one, if it
/// has the same version: fields that are gone or may be missing, other types, words that are gone.
fn lost(old: &Value, new: &Value) -> Vec<String> {
    const DEPTH: u32 = 24;
    if old["$id"] != new["$id"] {
        return Vec::new();
    }
    let (mut had, mut has) = (Fields::new(), Fields::new());
    fields(old, old, "", DEPTH, &mut had);
    fields(new, new, "", DEPTH, &mut has);
    let is_type = |of: &&String| !of.starts_with("= ");
    let mut lost = Vec::new();
    for (place, (types, was_required)) in had {
        let Some((now, is_required)) = has.get(&place) else {
            lost.push(format!("{place} is gone"));
            continue;
        };
        if was_required && !is_required {
            lost.push(format!("{place} may be missing"));
        }
        if !types.iter().filter(is_type).eq(now.iter().filter(is_type)) {
            lost.push(format!("{place} was {types:?} and is {now:?}"));
        }
        let words = types.iter().filter(|of| !is_type(of));
        lost.extend(
            words
                .filter(|of| !now.contains(*of))
                .map(|of| format!("{place} {of} is gone")),
        );
    }
    lost
}

/// UNDERTICK_WRITE_SCHEMAS=1 writes the schemas; where one loses a field, its version must rise first.
#[test]
fn published_schemas_are_those_printed() {
    let writes = std::env::var_os("UNDERTICK_WRITE_SCHEMAS").is_some();
    let names = names();
    assert!(names.len() >= 20, "{names:?}");
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
            let lost = lost(&before, &schema);
            assert!(lost.is_empty(), "{name}: is it another version? {lost:#?}");
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

/// In the check of `doctor`, a field is taken out, renamed, of another type, or not always there; a word
/// of its states is another. What is added, and the name of a type, does no harm.
#[test]
fn what_breaks_readers_is_noticed() {
    let text = said(&undertick(&["schema", "doctor"])).1;
    let old: Value = serde_json::from_str(&text).unwrap();
    assert!(lost(&old, &old).is_empty());
    let changed = |from: &str, to: &str| -> Vec<String> {
        assert!(text.contains(from), "{from}");
        lost(
            &old,
            &serde_json::from_str(&text.replace(from, to)).unwrap(),
        )
    };
    for (from, to, at) in [
        ("\"mend\": {", "\"remedy\": {", ".checks[].mend is gone"),
        (
            "\"type\": \"array\"",
            "\"type\": \"object\"",
            ".checks was {\"array\"}",
        ),
        ("\"name\",", "", ".checks[].name may be missing"),
        (
            "\"works\"",
            "\"good\"",
            ".checks[].state = \"works\" is gone",
        ),
    ] {
        let lost = changed(from, to);
        assert!(
            lost.iter().any(|lost| lost.starts_with(at)),
            "{from}: {lost:?}"
        );
    }
    assert!(changed("doctor:1", "doctor:2").is_empty());
    for (from, to) in [
        ("$defs/Check\"", "$defs/Finding\""),
        (
            "\"mend\": {",
            "\"cost\": {\"type\": \"string\"}, \"mend\": {",
        ),
    ] {
        let renamed = text
            .replace(from, to)
            .replace("\"Check\": {", "\"Check\": {}, \"Finding\": {");
        let renamed = if from.starts_with('$') {
            renamed
        } else {
            text.replace(from, to)
        };
        let new: Value = serde_json::from_str(&renamed).unwrap();
        assert!(lost(&old, &new).is_empty(), "{:?}", lost(&old, &new));
    }
}

#[test]
fn a_document_that_is_none() {
    refused(&undertick(&["schema", "reprot"]), 2, &["reprot", "report"]);
}
