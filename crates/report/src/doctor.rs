//! The document of `undertick doctor` and its rendering for a terminal: which parts of a recording
//! this machine supports, and how to mend the others.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::{clean, wrap};

/// Version of the document.
pub const SCHEMA_VERSION: u32 = 1;

/// What a recording can use here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnosis {
    /// Always [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Version of Undertick.
    pub undertick_version: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Architecture, e.g. `x86_64`.
    pub arch: String,
    /// The checks, always in the same order.
    pub checks: Vec<Check>,
}

/// One thing that a recording uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// Its name.
    pub name: String,
    /// Whether it can be used.
    pub state: CheckState,
    /// What the check found: a version, a limit, an error.
    pub found: String,
    /// What is missing or wrong in recordings because of it; `null` where it works.
    pub consequence: Option<String>,
    /// What to do; `null` where it works.
    pub mend: Option<String>,
}

/// Whether something can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckState {
    /// As it should be.
    Works,
    /// Recordings are made, with less in them or at a higher price.
    Limited,
    /// Nothing can be recorded.
    Fails,
}

impl Check {
    /// A check that found what it should.
    #[must_use]
    pub fn works(name: &str, found: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            state: CheckState::Works,
            found: found.into(),
            consequence: None,
            mend: None,
        }
    }

    /// The same check with a state, its consequence and its mend.
    #[must_use]
    pub fn but(
        self,
        state: CheckState,
        consequence: impl Into<String>,
        mend: impl Into<String>,
    ) -> Self {
        Self {
            state,
            consequence: Some(consequence.into()),
            mend: Some(mend.into()),
            ..self
        }
    }
}

impl Diagnosis {
    /// The number of checks with that state.
    #[must_use]
    pub fn number(&self, state: CheckState) -> usize {
        (self.checks.iter())
            .filter(|check| check.state == state)
            .count()
    }
}

/// Columns before the text of a check.
const INDENT: usize = 29;

/// The diagnosis as text in at most `columns` columns.
#[must_use]
pub fn render(diagnosis: &Diagnosis, columns: usize) -> String {
    let room = columns.max(INDENT + 30);
    let mut text = format!(
        "Undertick {}, Linux {}, {}\n\n",
        clean(&diagnosis.undertick_version),
        clean(&diagnosis.kernel),
        clean(&diagnosis.arch)
    );
    for check in &diagnosis.checks {
        let state = match check.state {
            CheckState::Works => "works",
            CheckState::Limited => "limited",
            CheckState::Fails => "FAILS",
        };
        // `wrap` joins words with one space, so the columns come afterwards.
        let paragraph = |words: &str| wrap(words, room - INDENT, 0);
        let mut lines = paragraph(&clean(&check.found));
        if let Some(consequence) = &check.consequence {
            lines += &format!("\n{}", paragraph(&clean(consequence)));
        }
        if let Some(mend) = &check.mend {
            lines += &format!("\n{}", paragraph(&format!("Mend: {}", clean(mend))));
        }
        for (line, at) in lines.lines().zip(0..) {
            let (name, state) = match at {
                0 => (check.name.as_str(), state),
                _ => ("", ""),
            };
            text += &format!("{state:<9}{:<20}{line}\n", clean(name));
        }
    }
    text += &format!("\n{}\n", wrap(&verdict(diagnosis), room, 0));
    text
}

fn verdict(diagnosis: &Diagnosis) -> String {
    let all = diagnosis.checks.len();
    match (
        diagnosis.number(CheckState::Fails),
        diagnosis.number(CheckState::Limited),
    ) {
        (0, 0) => format!("All {all} work."),
        (0, limited) => format!(
            "{} of {all} work, {limited} {} limited. Recordings can be made; each report says what is missing.",
            all - limited,
            if limited == 1 { "is" } else { "are" },
        ),
        (1, _) => "1 fails: nothing can be recorded until it is mended.".to_owned(),
        (fails, _) => format!("{fails} fail: nothing can be recorded until they are mended."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnosis(checks: Vec<Check>) -> Diagnosis {
        Diagnosis {
            schema_version: SCHEMA_VERSION,
            undertick_version: "0.1.0".to_owned(),
            kernel: "6.18.0".to_owned(),
            arch: "x86_64".to_owned(),
            checks,
        }
    }

    #[test]
    fn what_fails_has_its_consequence_and_its_mend_below_it() {
        let words = "a word or two, ".repeat(10);
        let found = diagnosis(vec![
            Check::works("clock", "tsc"),
            Check::works("rings", "/dev/shm\u{1b}[2J").but(
                CheckState::Limited,
                &words,
                "more room",
            ),
        ]);
        let text = render(&found, 80);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "Undertick 0.1.0, Linux 6.18.0, x86_64");
        assert_eq!(lines[2], "works    clock               tsc");
        assert!(lines[3].starts_with("limited  rings               /dev/shm"));
        assert!(
            !text.contains('\u{1b}') && lines.iter().all(|line| line.len() <= 80),
            "{text}"
        );
        assert!(
            text.contains(&format!("\n{}Mend: more room\n", " ".repeat(INDENT))),
            "{text}"
        );
        let words: Vec<&str> = text.split_whitespace().collect();
        let verdict =
            "1 of 2 work, 1 is limited. Recordings can be made; each report says what is missing.";
        assert!(words.join(" ").ends_with(verdict), "{text}");
    }

    #[test]
    fn the_gravest_state_gives_the_verdict() {
        let fails = Check::works("rings", "none").but(CheckState::Fails, "no", "room");
        let limited = Check::works("perf", "no").but(CheckState::Limited, "no", "room");
        let works = Check::works("clock", "tsc");
        assert_eq!(verdict(&diagnosis(vec![works.clone()])), "All 1 work.");
        let both = diagnosis(vec![works, limited, fails.clone()]);
        assert!(verdict(&both).starts_with("1 fails"));
        assert!(verdict(&diagnosis(vec![fails.clone(), fails])).starts_with("2 fail:"));
    }
}
