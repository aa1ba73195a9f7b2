//! Reads the surveys in a directory.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use undertick_document::Warning;
use undertick_report::compare::Subject;
use undertick_report::fleet::Unreadable;
use undertick_report::survey::Survey;

use crate::compare::document;

/// The surveys found in a directory.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    /// The directory.
    pub directory: String,
    /// The machines, by name.
    pub hosts: Vec<Host>,
    /// Files that could not be read.
    pub unreadable: Vec<Unreadable>,
    /// What the reader must know.
    pub warnings: Vec<Warning>,
}

/// A machine and its survey.
#[derive(Clone, Debug)]
pub struct Host {
    /// Its name; followed by the file name where several machines have the same name.
    pub name: String,
    /// The file.
    pub file: String,
    /// Its survey.
    pub survey: Survey,
}

/// Reads every `.json` file of a directory. A file that is no survey is not an error: it is
/// reported by name.
///
/// # Errors
/// The directory cannot be read, or has no survey.
pub fn gather(directory: &Path) -> Result<Gathered, String> {
    let shown = directory.display().to_string();
    let mut paths: Vec<PathBuf> = std::fs::read_dir(directory)
        .map_err(|e| {
            format!("{shown}: {e}; give the directory that the surveys' JSON files are in")
        })?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.sort();
    let (json, others): (Vec<PathBuf>, Vec<PathBuf>) = (paths.into_iter()).partition(|path| {
        path.extension()
            .is_some_and(|e| e.eq_ignore_ascii_case("json"))
    });
    let mut gathered = Gathered {
        directory: shown.clone(),
        ..Gathered::default()
    };
    for path in &json {
        let file = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        match survey(path) {
            Ok(survey) => gathered.hosts.push(Host {
                name: survey.host.name.clone(),
                file,
                survey,
            }),
            Err(why) => gathered.unreadable.push(Unreadable { file, why }),
        }
    }
    if gathered.hosts.is_empty() {
        let first = gathered.unreadable.first();
        let first = first.map_or(String::new(), |u| format!(" (the first: {})", u.why));
        return Err(format!(
            "{shown}: none of {} .json files is a survey{first}; gather the output of `undertick survey --json` there, one file a machine",
            json.len()
        ));
    }
    if !others.is_empty() {
        gathered.warn(
            "not_json",
            format!(
                "{} files whose name does not end in .json were not looked at",
                others.len()
            ),
        );
    }
    gathered.tell_apart();
    gathered.hosts.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(gathered)
}

fn survey(path: &Path) -> Result<Survey, String> {
    let file = path.display();
    match document(path)? {
        Subject::Survey(survey) => Ok(*survey),
        other => Err(format!(
            "{file}: a {}, no survey; make it with `undertick survey --json`, or move it away",
            other.kind()
        )),
    }
}

impl Gathered {
    fn warn(&mut self, code: &str, text: String) {
        self.warnings.push(Warning {
            code: code.to_owned(),
            text,
        });
    }

    /// Makes names unique. Several machines may have one name, or one machine several surveys: only
    /// the user knows which, so none is dropped.
    fn tell_apart(&mut self) {
        let mut counts: HashMap<String, usize> = HashMap::new();
        for host in &self.hosts {
            *counts.entry(host.name.clone()).or_default() += 1;
        }
        for host in &mut self.hosts {
            if host.name.is_empty() || counts[&host.name] > 1 {
                host.name = format!("{} ({})", host.name, host.file).trim().to_owned();
            }
        }
        let mut several: Vec<(&String, &usize)> = counts.iter().filter(|(_, n)| **n > 1).collect();
        several.sort();
        if let Some((name, n)) = several.first() {
            let text = format!(
                "{} host names are in several files (the first: {name:?} in {n}): if these are surveys of one machine, leave one of them; each file counts as a machine",
                several.len()
            );
            self.warn("same_name", text);
        }
    }
}
