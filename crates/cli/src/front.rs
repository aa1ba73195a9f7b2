//! What `undertick` itself understands beside its commands: help in groups, the versions for a report
//! of a bug, and `undertick -- PROGRAM`, which records and reports at once.

use std::ffi::{OsStr, OsString};

use clap::{Command, CommandFactory, FromArgMatches, Parser};

use crate::args::Arguments;
use crate::output::Manners;
use crate::{Failure, config, output, recording};

/// The commands by what they are for; every one that is shown is in one group.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Record",
        &["demo", "record", "live", "sample", "snapshot", "header"],
    ),
    (
        "Read traces",
        &[
            "report",
            "explain",
            "stacks",
            "locks",
            "allocations",
            "tasks",
            "sql",
        ],
    ),
    (
        "Measure a machine",
        &[
            "doctor",
            "clock",
            "calibrate",
            "slow",
            "run",
            "primitives",
            "interference",
            "survey",
            "reproduce",
        ],
    ),
    ("Compare", &["compare", "bench", "history", "estimate"]),
    ("Convert and merge", &["export", "import", "sync", "merge"]),
    (
        "About the commands",
        &["schema", "completions", "man", "help"],
    ),
];
/// Columns of a command's name.
const NAME_COLUMNS: usize = 16;
const TEMPLATE: &str = "{about}\n\n{usage-heading} {usage}\n       undertick -- PROGRAM [ARGUMENT]...   \
    records a program and reports on it{after-help}\n\nOptions:\n{options}";
const ABOUT_HELP: &str = "Print this message or the help of a command";

/// What the words ask for.
pub enum Asked {
    Command(Box<Arguments>),
    /// To record this program and to report on it.
    Program(Manners, Vec<OsString>),
    /// The versions for a report of a bug.
    Versions,
}

/// The options before the program of `undertick -- PROGRAM`.
#[derive(Parser)]
struct Alone {
    #[command(flatten)]
    manners: Manners,
}

/// Parses a command line, whose first word is the program's name.
///
/// # Errors
/// What clap says, help included.
pub fn parse(words: &[OsString]) -> Result<Asked, clap::Error> {
    if let Some(dashes) = words.iter().position(|word| word == "--")
        && dashes + 1 < words.len()
        && let Ok(alone) = Alone::try_parse_from(&words[..dashes])
    {
        let program = words[dashes + 1..].to_vec();
        return Ok(Asked::Program(alone.manners, program));
    }
    match words {
        [_, one, other] if are_versions(one, other) || are_versions(other, one) => {
            Ok(Asked::Versions)
        }
        _ => {
            let found = in_groups().try_get_matches_from(words)?;
            Ok(Asked::Command(Box::new(Arguments::from_arg_matches(
                &found,
            )?)))
        }
    }
}

/// The words with the user's defaults.
///
/// # Errors
/// As [`config::completed`].
pub fn with_defaults(words: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
    config::completed(words, Arguments::command)
}

fn are_versions(one: &OsStr, other: &OsStr) -> bool {
    (one == "--version" || one == "-V") && (other == "--verbose" || other == "-v")
}

/// The commands, whose help lists them in groups.
fn in_groups() -> Command {
    let command = Arguments::command();
    let list = groups(&command, output::columns().clamp(60, 100));
    command.help_template(TEMPLATE).after_help(list)
}

/// The groups, each with a line or two for each of its commands.
fn groups(command: &Command, columns: usize) -> String {
    let about = |name: &str| match command.find_subcommand(name) {
        Some(found) => found.get_about().map_or(String::new(), ToString::to_string),
        None => ABOUT_HELP.to_owned(),
    };
    let group = |(title, names): &(&str, &[&str])| {
        let mut text = format!("{title}:\n");
        for name in *names {
            let (mut line, mut is_first) = (format!("  {name:<0$}", NAME_COLUMNS - 2), true);
            for word in about(name).split_whitespace() {
                if !is_first && line.len() + 1 + word.len() > columns {
                    text += &format!("{}\n", line.trim_end());
                    (line, is_first) = (" ".repeat(NAME_COLUMNS), true);
                }
                line += &format!("{}{word}", if is_first { "" } else { " " });
                is_first = false;
            }
            text += &format!("{}\n", line.trim_end());
        }
        text
    };
    let groups: Vec<String> = GROUPS.iter().map(group).collect();
    groups.join("\n").trim_end().to_owned()
}

/// What a report of a bug needs to know of the program and its surroundings.
pub fn versions() -> Result<u8, Failure> {
    let system = rustix::system::uname();
    let profile = if cfg!(debug_assertions) {
        "with debug assertions"
    } else {
        "optimized"
    };
    let libc = if cfg!(target_env = "musl") {
        "musl"
    } else {
        "gnu"
    };
    output::print(&format!(
        "undertick {}\nbuilt for {}-linux-{libc}, {profile}\ntrace format {}, report {}\n\
         Linux {}, {}\ndefaults: {}\n",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::ARCH,
        undertick_format::manifest::SCHEMA_VERSION,
        undertick_document::SCHEMA_VERSION,
        system.release().to_string_lossy(),
        system.machine().to_string_lossy(),
        config::file().map_or_else(|| "none".to_owned(), |file| file.display().to_string()),
    ))
}

/// Records a program and reports on it; the exit status is the program's.
pub fn record_and_report(program: &[OsString]) -> Result<u8, Failure> {
    let trace = recording::free_name(&program[0], "ut");
    let command = |words: &[&OsStr]| {
        let words = [&[OsStr::new("undertick")], words].concat();
        let words = with_defaults(words.into_iter().map(OsStr::to_owned).collect())?;
        Arguments::try_parse_from(words)
            .map(|parsed| parsed.command)
            .map_err(Failure::usage)
    };
    let program: Vec<&OsStr> = program.iter().map(OsString::as_os_str).collect();
    let options = ["record", "-o"].map(OsStr::new);
    let words = [
        &options,
        &[trace.as_os_str(), OsStr::new("--")],
        &program[..],
    ]
    .concat();
    let status = crate::perform(command(&words)?)?;
    if trace.join(undertick_format::files::MANIFEST_FILE).exists() {
        let report = command(&[OsStr::new("report"), trace.as_os_str()])?;
        if let Err(failure) = crate::perform(report) {
            alert!("undertick: {}", output::shortened(&failure.text));
        }
    }
    Ok(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let command = Arguments::command();
        let mut shown: Vec<&str> = (command.get_subcommands())
            .filter(|command| !command.is_hide_set())
            .map(Command::get_name)
            .chain(["help"])
            .collect();
        let mut grouped: Vec<&str> = (GROUPS.iter())
            .flat_map(|(_, names)| names.iter().copied())
            .collect();
        shown.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(shown, grouped);
    }

    #[test]
    fn the_list_keeps_within_its_columns() {
        for columns in [60, 80, 100] {
            let list = groups(&Arguments::command(), columns);
            assert!(list.lines().all(|line| line.len() <= columns), "{list}");
            assert!(
                list.contains("\n  record        Run an instrumented"),
                "{list}"
            );
        }
    }

    #[test]
    fn words_that_are_no_command() {
        let asked = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            parse(&words)
        };
        let program = asked(&["undertick", "--", "./a", "--help"]);
        assert!(matches!(program, Ok(Asked::Program(_, words)) if words == ["./a", "--help"]));
        let quiet = asked(&["undertick", "-q", "--color", "never", "--", "./a"]);
        assert!(matches!(quiet, Ok(Asked::Program(manners, _)) if manners.quiet));
        let record = asked(&["undertick", "record", "--", "./a"]);
        assert!(matches!(record, Ok(Asked::Command(_))));
        assert!(asked(&["undertick", "--"]).is_err());
        assert!(asked(&["undertick", "--help", "--", "./a"]).is_err());
        for words in [["--version", "--verbose"], ["-v", "-V"]] {
            let found = asked(&["undertick", words[0], words[1]]);
            assert!(matches!(found, Ok(Asked::Versions)));
        }
        assert!(asked(&["undertick", "--version", "--verbos"]).is_err());
        let report = asked(&["undertick", "report", "a.ut"]);
        let Ok(Asked::Command(report)) = report else {
            panic!("a command");
        };
        assert!(matches!(report.command, crate::args::Command::Report(_)));
    }
}
