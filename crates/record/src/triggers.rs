//! Rules that make snapshots of a flight recorder by themselves.

use std::time::Duration;

use undertick_format::manifest::TriggerSettings;
use undertick_trigger::Rule;

/// When to make snapshots, and what to keep of them.
#[derive(Clone, Debug)]
pub struct Triggers {
    /// The rules; each makes a snapshot when the program meets it.
    pub rules: Vec<Rule>,
    /// How much a snapshot holds of what came before the span, or the event, that met the rule.
    pub before: Duration,
    /// How long the recorder waits before it makes the snapshot.
    pub after: Duration,
    /// The largest number of snapshots in a stretch of time; further hits are counted.
    pub at_most: (u32, Duration),
    /// The largest number of bytes of all snapshots of this recording; of more the oldest are
    /// removed. `None`: no limit.
    pub most_bytes: Option<u64>,
}

impl Triggers {
    /// For the manifest, so that a recorder that resumes has them.
    pub(crate) fn settings(&self) -> TriggerSettings {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        TriggerSettings {
            rules: self.rules.iter().map(ToString::to_string).collect(),
            before_ns: ns(self.before),
            after_ns: ns(self.after),
            at_most: self.at_most.0,
            at_most_in_ns: ns(self.at_most.1),
            most_bytes: self.most_bytes,
        }
    }

    /// From a manifest. A text that is no rule is left out.
    pub(crate) fn from_settings(settings: &TriggerSettings) -> Self {
        Self {
            rules: (settings.rules.iter())
                .filter_map(|rule| rule.parse().ok())
                .collect(),
            before: Duration::from_nanos(settings.before_ns),
            after: Duration::from_nanos(settings.after_ns),
            at_most: (
                settings.at_most,
                Duration::from_nanos(settings.at_most_in_ns),
            ),
            most_bytes: settings.most_bytes,
        }
    }
}

/// A snapshot that was made while the program ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotMade {
    /// The trace.
    pub trace: std::path::PathBuf,
    /// What the program did to cause it; `None` for one that was requested.
    pub why: Option<String>,
    /// Snapshots that were removed to stay below the limit of bytes.
    pub removed: Vec<std::path::PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorder_that_resumes_has_the_same_rules() {
        let triggers = Triggers {
            rules: vec![
                "\"a b\" > 5ms".parse().unwrap(),
                "lost > 0".parse().unwrap(),
            ],
            before: Duration::from_millis(1500),
            after: Duration::ZERO,
            at_most: (7, Duration::from_secs(60)),
            most_bytes: Some(1 << 40),
        };
        let mut settings = triggers.settings();
        settings.rules.push("no rule".to_owned());
        let again = Triggers::from_settings(&settings);
        assert_eq!(again.rules, triggers.rules);
        assert_eq!(again.settings(), triggers.settings());
    }
}
