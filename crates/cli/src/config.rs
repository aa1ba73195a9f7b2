//! The user's defaults: a file with options for commands, which count where the command line leaves them
//! out.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::Failure;

/// Names another file than the usual one; empty: none.
const VARIABLE: &str = "UNDERTICK_CONFIG";
/// Bytes beyond which it is no such file.
const LARGEST: u64 = 1 << 20;

/// The file with the defaults, if it is there. Only the user's own directory is searched: a file in the
/// directory of somebody else's project gives no options.
pub fn file() -> Option<PathBuf> {
    let absolute = |name: &str| {
        let path = std::env::var_os(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    if let Some(named) = std::env::var_os(VARIABLE) {
        return (!named.is_empty()).then(|| PathBuf::from(named));
    }
    let directory =
        absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(directory.join("undertick/config.toml")).filter(|file| file.is_file())
}

/// Adds to the words of a command line the defaults that it leaves out. Words that are no command are
/// returned as they are.
///
/// # Errors
/// The file cannot be read, or has what is no option of the command.
pub fn completed(words: Vec<OsString>, all: &Command) -> Result<Vec<OsString>, Failure> {
    let Some(path) = file() else {
        return Ok(words);
    };
    if parsed(&words, all).is_none() {
        return Ok(words);
    }
    let failed = |why: &dyn std::fmt::Display| Failure::usage(format!("{}: {why}", path.display()));
    let text = std::fs::metadata(&path)
        .and_then(|about| match about.len() > LARGEST {
            true => Err(std::io::Error::other("too large for defaults")),
            false => std::fs::read_to_string(&path),
        })
        .map_err(|e| failed(&e))?;
    completed_by(&path, &text, words, all)
}

/// As [`completed`], by a file with that text.
pub fn completed_by(
    path: &Path,
    text: &str,
    words: Vec<OsString>,
    all: &Command,
) -> Result<Vec<OsString>, Failure> {
    let Some(matches) = parsed(&words, all) else {
        return Ok(words);
    };
    let table =
        DeTable::parse(text).map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?;
    let defaults = Defaults { path, text, all };
    defaults.complete(words, &matches, table.get_ref())
}

/// The words as a command that may lack what it needs, since a default may give that.
fn parsed(words: &[OsString], all: &Command) -> Option<ArgMatches> {
    match all.clone().try_get_matches_from(words) {
        Ok(matches) => Some(matches),
        Err(error) if error.kind() == ErrorKind::MissingRequiredArgument => {
            (all.clone().ignore_errors(true).try_get_matches_from(words)).ok()
        }
        Err(_) => None,
    }
}

struct Defaults<'a> {
    path: &'a Path,
    text: &'a str,
    all: &'a Command,
}

/// A default: its option, its words, and where the file has it.
struct Given {
    option: String,
    words: Vec<OsString>,
    line: usize,
    /// Whether it is for every command that has the option.
    is_for_all: bool,
}

impl Defaults<'_> {
    fn complete(
        &self,
        mut words: Vec<OsString>,
        matches: &ArgMatches,
        table: &DeTable<'_>,
    ) -> Result<Vec<OsString>, Failure> {
        let (mut command, mut matches, mut own) = (self.all, matches, Some(table));
        let (mut at, mut names) = (0, Vec::new());
        while let Some((name, of)) = matches.subcommand() {
            let Some(found) = command.find_subcommand(name) else {
                break;
            };
            (command, matches) = (found, of);
            at += 1 + (words[at + 1..].iter().position(|word| word == name)).unwrap_or(0);
            own = own.and_then(|table| table_of(table, name));
            names.push(name);
        }
        if names.is_empty()
            || self
                .all
                .find_subcommand(names[0])
                .is_none_or(Command::is_hide_set)
        {
            return Ok(words);
        }
        let mut all = Vec::new();
        for (table, is_for_all) in [(own, false), (Some(table), true)] {
            for (key, value) in table.into_iter().flatten() {
                if !matches!(value.get_ref(), DeValue::Table(_)) {
                    all.push(self.given(key, value, is_for_all)?);
                }
            }
        }
        let has = |option: &str| {
            let mut arguments = command.get_arguments().chain(self.all.get_arguments());
            arguments.find(|argument| argument.get_long() == Some(option))
        };
        for (place, given) in all.iter().enumerate() {
            let is_first = all[..place]
                .iter()
                .all(|other| other.option != given.option);
            let Some(argument) = has(&given.option) else {
                if given.is_for_all {
                    continue;
                }
                return Err(self.wrong(
                    given,
                    &format!("undertick {} has no such option", names.join(" ")),
                ));
            };
            let id = argument.get_id().as_str();
            let is_asked = (matches.try_contains_id(id).is_ok())
                && matches.value_source(id) == Some(ValueSource::CommandLine);
            if is_asked || !is_first {
                continue;
            }
            let mut with = words.clone();
            with.splice(at + 1..=at, given.words.iter().cloned());
            match self.all.clone().try_get_matches_from(&with) {
                Ok(_) => words = with,
                Err(error) if error.kind() == ErrorKind::MissingRequiredArgument => words = with,
                // What the command line asks for goes before.
                Err(error) if error.kind() == ErrorKind::ArgumentConflict => {}
                Err(error) => return Err(self.wrong(given, &error.to_string())),
            }
        }
        Ok(words)
    }

    fn given(
        &self,
        key: &Spanned<std::borrow::Cow<'_, str>>,
        value: &Spanned<DeValue<'_>>,
        is_for_all: bool,
    ) -> Result<Given, Failure> {
        let option = key.get_ref().to_string();
        let line = self.text[..key.span().start].matches('\n').count() + 1;
        let mut given = Given {
            option,
            words: Vec::new(),
            line,
            is_for_all,
        };
        let word = |value: &DeValue<'_>| match value {
            DeValue::String(text) => Some(format!("--{}={text}", given.option)),
            DeValue::Integer(number) => Some(format!("--{}={}", given.option, number.as_str())),
            DeValue::Float(number) => Some(format!("--{}={}", given.option, number.as_str())),
            _ => None,
        };
        let words: Option<Vec<String>> = match value.get_ref() {
            DeValue::Boolean(true) => Some(vec![format!("--{}", given.option)]),
            DeValue::Boolean(false) => Some(Vec::new()),
            DeValue::Array(values) => values.iter().map(|value| word(value.get_ref())).collect(),
            value => word(value).map(|word| vec![word]),
        };
        match words {
            Some(words) => given.words = words.into_iter().map(Into::into).collect(),
            None => {
                return Err(self.wrong(
                    &given,
                    "give a text, a number, true, false, or a list of texts",
                ));
            }
        }
        Ok(given)
    }

    fn wrong(&self, given: &Given, why: &str) -> Failure {
        let why = why.trim_start_matches("error: ");
        let why = why.split("\n\nUsage").next().unwrap_or(why).trim_end();
        Failure::usage(format!(
            "{}:{}: {}: {why}",
            self.path.display(),
            given.line,
            given.option
        ))
    }
}

fn table_of<'a, 'b>(table: &'a DeTable<'b>, name: &str) -> Option<&'a DeTable<'b>> {
    match table.get(name)?.get_ref() {
        DeValue::Table(table) => Some(table),
        _ => None,
    }
}
