//! The user's defaults: a file with options for commands, which count where the command line leaves them
//! out.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
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
pub fn completed(words: Vec<OsString>, all: fn() -> Command) -> Result<Vec<OsString>, Failure> {
    let Some(path) = file() else {
        return Ok(words);
    };
    completed_by(&path, || read(&path), words, &all())
}

fn read(path: &Path) -> Result<String, Failure> {
    let failed = |why: &dyn std::fmt::Display| Failure::usage(format!("{}: {why}", path.display()));
    std::fs::metadata(path)
        .and_then(|about| match about.len() > LARGEST {
            true => Err(std::io::Error::other(
                "larger than 1 MiB: no file of defaults",
            )),
            false => std::fs::read_to_string(path),
        })
        .map_err(|e| {
            failed(&format!(
                "{e} (the file of defaults; {VARIABLE}= does without)"
            ))
        })
}

/// As [`completed`], by a file with that text, which is only asked for if the words are a command.
pub fn completed_by(
    path: &Path,
    text: impl FnOnce() -> Result<String, Failure>,
    words: Vec<OsString>,
    all: &Command,
) -> Result<Vec<OsString>, Failure> {
    let Some(matches) = parsed(&words, all) else {
        return Ok(words);
    };
    let text = &text()?;
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

/// A default: where the file has it, and its words.
struct Given {
    key: Spanned<Cow<'static, str>>,
    words: Vec<OsString>,
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
        self.check(table, self.all)?;
        let mut all = Vec::new();
        for table in [own, Some(table)].into_iter().flatten() {
            for (key, value) in table {
                let argument = option_of(command, self.all, key.get_ref());
                if let (Some(argument), false) = (argument, value.get_ref().is_table()) {
                    all.push((
                        argument.get_id().as_str(),
                        self.given(argument, key, value)?,
                    ));
                }
            }
        }
        for (place, (id, given)) in all.iter().enumerate() {
            let is_first = all[..place].iter().all(|(other, _)| other != id);
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
                // The command line overrides it.
                Err(error) if error.kind() == ErrorKind::ArgumentConflict => {}
                Err(error) => return Err(self.wrong(&given.key, &error.to_string())),
            }
        }
        Ok(words)
    }

    /// Refuses tables of what is no command, and keys of what is no option.
    fn check(&self, table: &DeTable<'_>, command: &Command) -> Result<(), Failure> {
        let is_whole = std::ptr::eq(command, self.all);
        for (key, value) in table {
            let name = key.get_ref();
            if let DeValue::Table(inner) = value.get_ref() {
                match command.find_subcommand(name.as_ref()) {
                    Some(found) => self.check(inner, found)?,
                    None => {
                        return Err(self.wrong(key, "no such command; undertick --help lists them"));
                    }
                }
            } else if is_whole {
                let mut all = self.all.get_subcommands();
                if !all.any(|command| has_option(command, self.all, name)) {
                    return Err(self.wrong(key, "no command has such an option"));
                }
            } else if option_of(command, self.all, name).is_none() {
                let why = format!(
                    "no such option; undertick {} --help lists them",
                    command.get_name()
                );
                return Err(self.wrong(key, &why));
            }
        }
        Ok(())
    }

    fn given(
        &self,
        argument: &Arg,
        key: &Spanned<Cow<'_, str>>,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<Given, Failure> {
        let option = key.get_ref();
        let takes_value = argument.get_action().takes_values();
        let word = |value: &DeValue<'_>| match value {
            DeValue::String(text) => Some(format!("--{option}={text}")),
            DeValue::Integer(number) => Some(format!("--{option}={}", number.as_str())),
            DeValue::Float(number) => Some(format!("--{option}={}", number.as_str())),
            _ => None,
        };
        let words: Option<Vec<String>> = match value.get_ref() {
            DeValue::Boolean(_) if takes_value => {
                let why = "this option takes a value; give a string or a number";
                return Err(self.wrong(key, why));
            }
            DeValue::Boolean(true) => Some(vec![format!("--{option}")]),
            DeValue::Boolean(false) => Some(Vec::new()),
            DeValue::Array(values) => values.iter().map(|value| word(value.get_ref())).collect(),
            value => word(value).map(|word| vec![word]),
        };
        let Some(words) = words else {
            let why = "give a string, a number, true, false, or a list of strings and numbers";
            return Err(self.wrong(key, why));
        };
        Ok(Given {
            key: Spanned::new(key.span(), Cow::Owned(option.to_string())),
            words: words.into_iter().map(Into::into).collect(),
        })
    }

    fn wrong(&self, key: &Spanned<Cow<'_, str>>, why: &str) -> Failure {
        let line = self.text[..key.span().start].matches('\n').count() + 1;
        let why = why.trim_start_matches("error: ");
        let why = why.split("\n\nUsage").next().unwrap_or(why).trim_end();
        let (path, option) = (self.path.display(), key.get_ref());
        Failure::usage(format!("{path}:{line}: {option}: {why}"))
    }
}

/// The option of that name that a command has, of its own or as every command.
fn option_of<'a>(command: &'a Command, all: &'a Command, name: &str) -> Option<&'a Arg> {
    let mut arguments = command.get_arguments().chain(all.get_arguments());
    arguments.find(|argument| argument.get_long() == Some(name))
}

/// Whether a command, or one of its own commands, has that option.
fn has_option(command: &Command, all: &Command, name: &str) -> bool {
    option_of(command, all, name).is_some()
        || command
            .get_subcommands()
            .any(|inner| has_option(inner, all, name))
}

fn table_of<'a, 'b>(table: &'a DeTable<'b>, name: &str) -> Option<&'a DeTable<'b>> {
    match table.get(name)?.get_ref() {
        DeValue::Table(table) => Some(table),
        _ => None,
    }
}
