//! How many values of a step are of which kind.

use undertick_meter::traffic::Turn;

/// How many values of a step are of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShareOf {
    these: u64,
    all: u64,
    /// Those beside them that are of neither kind: of a process that did not wait, and with the run
    /// of one that did not wait inside.
    beside: [u64; 2],
}

impl ShareOf {
    /// Those after which the process itself went on; `None` without values.
    pub(super) fn of<'a>(turns: impl Iterator<Item = &'a Turn>) -> Option<Self> {
        let mut found = Self {
            these: 0,
            all: 0,
            beside: [0, 0],
        };
        for turn in turns {
            found.these += turn.counts[0];
            found.all += turn.counts[0] + turn.counts[1];
            found.beside[0] += turn.needless;
            found.beside[1] += turn.interrupted;
        }
        (found.all > 0).then_some(found)
    }

    /// Those that are of the other kind.
    pub(super) const fn others(self) -> Self {
        Self {
            these: self.all - self.these,
            ..self
        }
    }

    pub(super) fn percent(self) -> f64 {
        100.0 * self.these as f64 / self.all as f64
    }

    pub(super) fn words(self) -> String {
        let mut words = match self.these == self.all {
            true => format!("of all {} values", self.all),
            false => format!("of {:.1} % of {} values", self.percent(), self.all),
        };
        for (count, of) in self.beside.into_iter().zip([
            "wakeups of a process that did not wait",
            "with another process's run in them",
        ]) {
            if count > 0 {
                words += &format!("; beside them {count} {of}");
            }
        }
        words
    }
}
