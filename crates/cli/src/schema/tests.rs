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
