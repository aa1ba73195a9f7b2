//! Parameters, their values, and the substitution of `$name`.

use super::message::{Bad, Origin, Result, none_of};
use super::raw::{Kind, LONGEST_STRING, Table, Value};

/// Maximum number of settings of a script.
pub(super) const MOST_SETTINGS: usize = 10_000;

/// Maximum number of parameters of a script.
const MOST_PARAMETERS: usize = 16;

/// Contents of `[sweep]`.
pub(super) struct Sweep {
    parameters: Vec<Parameter>,
}

struct Parameter {
    name: String,
    at: usize,
    values: Vec<Value>,
}

/// One setting of all parameters.
pub(super) struct Scope<'s> {
    parameters: &'s [Parameter],
    /// For each parameter, the index of its value.
    chosen: Vec<usize>,
}

/// A piece of a string.
#[derive(Debug, PartialEq)]
enum Piece<'t> {
    Plain(&'t str),
    Parameter(&'t str),
}

impl Sweep {
    pub(super) fn read(root: &Table, of_top: &[&str]) -> Result<Self> {
        let Some(entry) = root.entry("sweep") else {
            return Ok(Self {
                parameters: Vec::new(),
            });
        };
        let Kind::Table(table) = &entry.value.kind else {
            let why = "sweep is a table: a line [sweep], and below it words = [0, 50, 100]";
            return Err(Bad::new(entry.at, why));
        };
        if table.entries.len() > MOST_PARAMETERS {
            let why = format!("at most {MOST_PARAMETERS} parameters");
            return Err(Bad::new(table.entries[MOST_PARAMETERS].at, why));
        }
        let mut parameters: Vec<Parameter> = Vec::new();
        let mut settings = 1;
        for entry in &table.entries {
            if !is_name(&entry.key) {
                let why = format!(
                    "{:?} cannot be a parameter's name; use letters, digits and _, a letter first",
                    entry.key
                );
                return Err(Bad::new(entry.at, why));
            }
            let values = values(&entry.key, &entry.value, of_top)?;
            settings *= values.len();
            if settings > MOST_SETTINGS {
                let why = format!(
                    "{} makes {settings} settings; at most {MOST_SETTINGS}, so leave values out",
                    entry.key
                );
                return Err(Bad::new(entry.at, why));
            }
            parameters.push(Parameter {
                name: entry.key.clone(),
                at: entry.at,
                values,
            });
        }
        Ok(Self { parameters })
    }

    /// Number of settings.
    pub(super) fn settings(&self) -> usize {
        self.parameters.iter().map(|p| p.values.len()).product()
    }

    /// Setting number `index`; the last parameter changes fastest.
    pub(super) fn setting(&self, mut index: usize) -> Scope<'_> {
        let mut chosen = vec![0; self.parameters.len()];
        for (chosen, parameter) in chosen.iter_mut().zip(&self.parameters).rev() {
            *chosen = index % parameter.values.len();
            index /= parameter.values.len();
        }
        Scope {
            parameters: &self.parameters,
            chosen,
        }
    }

    /// Checks that every parameter is used, and that only parameters are used.
    pub(super) fn check(&self, root: &Table) -> Result<()> {
        let mut used = vec![false; self.parameters.len()];
        for entry in &root.entries {
            if entry.key != "title" && entry.key != "sweep" {
                self.mark(&entry.value, &mut used)?;
            }
        }
        let Some(i) = used.iter().position(|used| !used) else {
            return Ok(());
        };
        let Parameter { name, at, .. } = &self.parameters[i];
        let why = format!(
            "the parameter {name} is never used; write \"${name}\" for a value, or leave it out"
        );
        Err(Bad::new(*at, why))
    }

    fn mark(&self, value: &Value, used: &mut [bool]) -> Result<()> {
        match &value.kind {
            Kind::Text(text) => {
                for piece in pieces(value.at, text)? {
                    if let Piece::Parameter(name) = piece {
                        used[find(&self.parameters, value.at, name)?] = true;
                    }
                }
            }
            Kind::List(values) => {
                for value in values {
                    self.mark(value, used)?;
                }
            }
            Kind::Table(table) => {
                for entry in &table.entries {
                    self.mark(&entry.value, used)?;
                }
            }
            Kind::Whole(_) | Kind::Number(_) | Kind::Flag(_) | Kind::Date => {}
        }
        Ok(())
    }
}

impl Scope<'_> {
    /// Substitutes the parameters' values in a value, and returns where it comes from.
    pub(super) fn resolve(&self, value: &Value) -> Result<(Kind, Origin)> {
        let origin = |note: String| Origin { at: value.at, note };
        let Kind::Text(text) = &value.kind else {
            return Ok((value.kind.clone(), origin(String::new())));
        };
        let pieces = pieces(value.at, text)?;
        let mut names = Vec::new();
        let mut made = String::new();
        for piece in &pieces {
            match piece {
                Piece::Plain(plain) => made.push_str(plain),
                Piece::Parameter(name) => {
                    let i = find(self.parameters, value.at, name)?;
                    if !names.contains(&i) {
                        names.push(i);
                    }
                    made.push_str(&shown(self.value(i)));
                }
            }
            if made.len() > LONGEST_STRING {
                let why = format!("the parameters make this longer than {LONGEST_STRING} bytes");
                return Err(Bad::new(value.at, why));
            }
        }
        let origin = origin(self.note(&names));
        if let [Piece::Parameter(_)] = pieces.as_slice() {
            return Ok((self.value(names[0]).clone(), origin));
        }
        Ok((Kind::Text(made), origin))
    }

    /// Each parameter and its value, as a user would write it.
    pub(super) fn parameters(&self) -> Vec<(String, String)> {
        let all = (0..self.parameters.len())
            .map(|i| (self.parameters[i].name.clone(), shown(self.value(i))));
        all.collect()
    }

    /// ` (with n = 2, kind = "pipe")`: the whole setting.
    pub(super) fn note_of_all(&self) -> String {
        self.note(&(0..self.parameters.len()).collect::<Vec<_>>())
    }

    fn note(&self, which: &[usize]) -> String {
        if which.is_empty() {
            return String::new();
        }
        let each = which.iter().map(|&i| {
            let name = &self.parameters[i].name;
            match self.value(i) {
                Kind::Text(text) => format!("{name} = {text:?}"),
                other => format!("{name} = {}", shown(other)),
            }
        });
        format!(" (with {})", each.collect::<Vec<_>>().join(", "))
    }

    fn value(&self, i: usize) -> &Kind {
        &self.parameters[i].values[self.chosen[i]].kind
    }
}

fn find(parameters: &[Parameter], at: usize, name: &str) -> Result<usize> {
    let found = parameters.iter().position(|p| p.name == name);
    found.ok_or_else(|| {
        let known: Vec<&str> = parameters.iter().map(|p| p.name.as_str()).collect();
        if known.is_empty() {
            let why = format!(
                "there is no parameter {name:?}; give its values below a line [sweep]: {name} = [1, 2]"
            );
            return Bad::new(at, why);
        }
        Bad::new(at, none_of("there is no parameter", name, &known))
    })
}

/// A value that a parameter can have, as in a string.
fn shown(kind: &Kind) -> String {
    match kind {
        Kind::Text(text) => text.clone(),
        Kind::Whole(n) => n.to_string(),
        Kind::Number(x) => x.to_string(),
        _ => String::new(),
    }
}

fn is_name(text: &str) -> bool {
    let first = text.chars().next();
    first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_') && text.chars().all(in_name)
}

fn in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Splits `cpu $n`, `${n}us` into plain text and the parameters' names.
fn pieces(at: usize, text: &str) -> Result<Vec<Piece<'_>>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        if dollar > 0 {
            pieces.push(Piece::Plain(&rest[..dollar]));
        }
        let after = &rest[dollar + 1..];
        let (name, left) = match after.strip_prefix('{').map(|inner| inner.split_once('}')) {
            Some(Some(braced)) => braced,
            Some(None) => ("", after),
            None => after.split_at(after.find(|c| !in_name(c)).unwrap_or(after.len())),
        };
        if !is_name(name) {
            let why =
                "a $ stands before the name of a parameter: \"$words\", \"cpu $n\", \"${n}us\"";
            return Err(Bad::new(at, why));
        }
        pieces.push(Piece::Parameter(name));
        rest = left;
    }
    if !rest.is_empty() || pieces.is_empty() {
        pieces.push(Piece::Plain(rest));
    }
    Ok(pieces)
}

/// Reads the values of a parameter: a list, or a range.
fn values(name: &str, value: &Value, of_top: &[&str]) -> Result<Vec<Value>> {
    let list = match &value.kind {
        Kind::List(list) => list,
        Kind::Text(text) => return range(name, value.at, text),
        kind => {
            let hint = if of_top.contains(&name) {
                "; if the whole script's is meant, move it above the first [table]"
            } else {
                ""
            };
            let why = format!(
                "a parameter has a list of values, {name} = [0, 50] or {name} = \"1..4\", not {}{hint}",
                kind.what()
            );
            return Err(Bad::new(value.at, why));
        }
    };
    let Some(first) = list.first() else {
        let why = format!("{name} has no values; give some, or leave it out");
        return Err(Bad::new(value.at, why));
    };
    if list.len() > MOST_SETTINGS {
        return Err(too_many(name, value.at, list.len() as u128));
    }
    let is_text = matches!(first.kind, Kind::Text(_));
    let mut seen = std::collections::HashSet::new();
    for value in list {
        match &value.kind {
            Kind::Text(text) if is_text && text.contains('$') => {
                let why = "a value of a parameter cannot hold another parameter; write it out";
                return Err(Bad::new(value.at, why));
            }
            Kind::Text(_) if is_text => {}
            Kind::Whole(_) | Kind::Number(_) if !is_text => {}
            kind => {
                let all = if is_text { "strings" } else { "numbers" };
                let what = match first.kind {
                    Kind::Text(_) | Kind::Whole(_) | Kind::Number(_) => {
                        format!("values of {name} are all {all}, as the first one is")
                    }
                    _ => format!("values of {name} are numbers or strings"),
                };
                return Err(Bad::new(
                    value.at,
                    format!("{what}; this is {}", kind.what()),
                ));
            }
        }
        if !seen.insert(shown(&value.kind)) {
            let why = format!("{name} has this value twice; leave one out");
            return Err(Bad::new(value.at, why));
        }
    }
    Ok(list.clone())
}

fn too_many(name: &str, at: usize, count: u128) -> Bad {
    let why = format!("{name} has {count} values; at most {MOST_SETTINGS} settings in all");
    Bad::new(at, why)
}

/// Parses `1..4`, `1..16 by 5`: whole numbers, both ends included.
fn range(name: &str, at: usize, text: &str) -> Result<Vec<Value>> {
    let no = || {
        let why = format!(
            "{text:?} is no range of whole numbers; write {name} = \"1..4\", \"1..16 by 5\", or a list [...]"
        );
        Bad::new(at, why)
    };
    let number = |text: &str| text.trim().parse::<u64>().map_err(|_| no());
    let (from, rest) = text.split_once("..").ok_or_else(no)?;
    let (to, by) = match rest.split_once(" by ") {
        Some((to, by)) => (to, number(by)?),
        None => (rest, 1),
    };
    let (from, to) = (number(from)?, number(to)?);
    if from > to {
        return Err(Bad::new(
            at,
            format!("{text:?} is empty; the smaller end comes first"),
        ));
    }
    if by == 0 {
        return Err(Bad::new(
            at,
            format!("{text:?} never moves; write by 1 or more"),
        ));
    }
    let count = u128::from((to - from) / by) + 1;
    if count > MOST_SETTINGS as u128 {
        return Err(too_many(name, at, count));
    }
    let values = (0..count).map(|i| Value {
        at,
        kind: Kind::Whole(i128::from(from) + i as i128 * i128::from(by)),
    });
    Ok(values.collect())
}

#[cfg(test)]
mod tests;
