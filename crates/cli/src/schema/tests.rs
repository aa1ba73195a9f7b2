use super::*;

/// Each command that has `--json` prints one of the documents.
#[test]
fn each_document_has_a_schema() {
    use clap::CommandFactory as _;
    let all = crate::args::Arguments::command();
    let mut checked = 0;
    for command in all.get_subcommands() {
        let prints = |command: &clap::Command| {
            command
                .get_arguments()
                .any(|a| a.get_long() == Some("json"))
        };
        if !prints(command) && !command.get_subcommands().any(prints) {
            continue;
        }
        let name = command.get_name();
        let is_source =
            |document: &Document| (document.source.split([',', ' ', ';'])).any(|word| word == name);
        assert!(DOCUMENTS.iter().any(is_source), "{name}");
        checked += 1;
    }
    assert!(checked >= 14, "{checked}");
}

#[test]
fn links_of_rust_are_words() {
    for (text, wanted) in [
        ("Always [`KIND`].", "Always `KIND`."),
        (
            "Of [`Report::paths`](super::Report::paths), `None` if none.",
            "Of `paths`, `null` if none.",
        ),
        ("A range [0, 1].", "A range [0, 1]."),
        ("An open [`one", "An open [`one"),
    ] {
        assert_eq!(without_links(text), wanted);
    }
}

/// Each field says what it is; its own words, or those of its type.
#[test]
fn each_field_is_described() {
    fn without(part: &Value, at: &str, all: &mut Vec<String>) {
        let Value::Object(parts) = part else { return };
        for (name, part) in parts {
            let at = format!("{at}/{name}");
            if let ("properties", Value::Object(fields)) = (name.as_str(), part) {
                let is_bare =
                    |field: &&Value| field["description"].as_str().is_none_or(str::is_empty);
                let bare = fields.iter().filter(|(_, field)| is_bare(field));
                all.extend(bare.map(|(field, _)| format!("{at}/{field}")));
            }
            without(part, &at, all);
        }
    }
    let mut bare = Vec::new();
    for document in &DOCUMENTS {
        let schema = serde_json::to_value(document.published()).expect("JSON");
        without(&schema, document.name, &mut bare);
        let text = schema.to_string();
        assert!(
            !text.contains("[`") && !text.contains("`None`"),
            "{}",
            document.name
        );
    }
    assert!(bare.is_empty(), "{bare:#?}");
}
