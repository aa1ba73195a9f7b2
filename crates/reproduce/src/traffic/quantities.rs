//! The quantities that the memo publishes, and the steps of the script in which each is measured.

use undertick_meter::traffic::Turn;
use undertick_units::Estimate;

use super::{Here, ONE_CPU, Placement, ShareOf, of_steps};
use crate::compared::{Published, published, sum, together};

/// Wakeup and block as published, us.
const WAKEUP: Published = published(894.0, "877..911");
const BLOCK: Published = published(1393.0, "1379..1407");
const WAIT: Published = published(1277.0, "1277");
const ADD: Published = published(229.0, "227..231");
/// Notify as published: without a waiter, and the addition for each waiter, us.
pub(super) const NOTIFY: Published = published(200.0, "200");
pub(super) const A_WAITER: Published = published(100.0, "100");

/// Half of the last digit of what is printed in hundreds of us, and of "about 2 ms".
const HALF_HUNDRED: f64 = 50.0;
const HALF_MS: f64 = 500.0;

/// A published quantity that the script measures.
pub(super) struct Quantity {
    pub(super) id: &'static str,
    pub(super) what: &'static str,
    pub(super) published: Option<Published>,
    /// By formula, from what is published of its parts, us, and by how much the rounding of all of
    /// them may put it off.
    pub(super) formula: Option<(f64, f64)>,
    pub(super) source: Source,
    pub(super) note: &'static str,
}

/// Where a quantity is found.
pub(super) enum Source {
    /// The step of that name in a separate loop, with the clock read around it: the stamps between
    /// the steps of the script are too coarse for it, wherever the other process is.
    Small(&'static str),
    /// On one CPU these steps where the process itself goes on, as in the memo; on two CPUs the
    /// same steps unchanged.
    Kept(&'static [(&'static str, u32)]),
    /// On one CPU these steps where another process runs next, as in the memo; on two CPUs the
    /// intervals of the script.
    Given(&'static [(&'static str, u32)], &'static [&'static str]),
    /// On one CPU the sum of these; on two the one-way wakeup of the primitives, until the other
    /// process runs.
    OneWay(&'static [Source]),
    /// These steps and intervals, one after the other.
    Sum(&'static [Source]),
}

const SMALL: &str = "in a loop of its own";
const WAITING: Source = Source::Given(&[("B", 10)], &["B 10 wait to A 6"]);
const NOTIFYING: Source = Source::Kept(NOTIFIES);
/// The wakeups of a process that waits.
pub(super) const WAKES: &[(&str, u32)] = &[("A", 1), ("A", 5), ("B", 3), ("B", 7), ("B", 17)];
/// The notify for which a process waits.
pub(super) const NOTIFIES: &[(&str, u32)] = &[("A", 11)];
const WAKING: Source = Source::Kept(WAKES);
const BLOCKING: Source = Source::Given(
    &[("A", 2), ("A", 6), ("A", 12), ("B", 4), ("B", 18)],
    &[
        "A 2 block to B 18",
        "B 4 block to A 2",
        "A 6 block to B 4",
        "A 12 block to B 10",
        "B 18 block to A 12",
    ],
);

pub(super) const QUANTITIES: &[Quantity] = &[
    Quantity {
        id: "wakeup",
        what: "wake another process",
        published: Some(WAKEUP),
        formula: None,
        source: WAKING,
        note: "of a process that waits",
    },
    Quantity {
        id: "block",
        what: "give the processor away: block, until the other runs",
        published: Some(BLOCK),
        formula: None,
        source: BLOCKING,
        note: "on two CPUs below 0 where it ran before",
    },
    Quantity {
        id: "wait",
        what: "wait for something, until the other runs",
        published: Some(WAIT),
        formula: None,
        source: WAITING,
        note: "on two CPUs below 0 where it ran before",
    },
    Quantity {
        id: "wait-nothing",
        what: "wait for nothing",
        published: Some(published(230.0, "230")),
        formula: None,
        source: Source::Small("wait for nothing"),
        note: SMALL,
    },
    Quantity {
        id: "notify-nobody",
        what: "notify nobody",
        published: Some(published(237.0, "237")),
        formula: Some((NOTIFY.value, HALF_HUNDRED)),
        source: Source::Small("notify nobody"),
        note: SMALL,
    },
    Quantity {
        id: "add-event",
        what: "add an event",
        published: Some(ADD),
        formula: None,
        source: Source::Small("add event"),
        note: SMALL,
    },
    Quantity {
        id: "delete-event",
        what: "delete an event",
        published: Some(published(235.0, "235")),
        formula: None,
        source: Source::Small("delete event"),
        note: SMALL,
    },
    Quantity {
        id: "notify-one",
        what: "notify one that waits",
        published: None,
        formula: Some((NOTIFY.value + A_WAITER.value, 2.0 * HALF_HUNDRED)),
        source: NOTIFYING,
        note: "not printed by itself: 200 us and 100 us for each that waits",
    },
    Quantity {
        id: "block-wakeup",
        what: "block and wakeup: from before the wakeup until the other runs",
        published: Some(published(2000.0, "about 2 ms, in us: 2000")),
        formula: Some((BLOCK.value + WAKEUP.value, HALF_MS)),
        source: Source::OneWay(&[WAKING, BLOCKING]),
        note: "on one CPU a sum of two figures",
    },
    Quantity {
        id: "add-wait-notify",
        what: "add an event, wait for it, notify",
        published: Some(published(1800.0, "about 1.8 ms, in us: 1800")),
        formula: Some((
            ADD.value + WAIT.value + NOTIFY.value + A_WAITER.value,
            3.0 * HALF_HUNDRED,
        )),
        source: Source::Sum(&[Source::Small("add event"), WAITING, NOTIFYING]),
        note: "a sum of three figures, as published",
    },
];

impl Source {
    pub(super) fn measured(
        &self,
        here: Here<'_>,
        placement: &Placement,
        backend: &str,
    ) -> Option<Estimate> {
        let with = [("backend", backend)];
        let figures = here.figures;
        let turned = |steps: &[(&str, u32)], which: fn(&Turn) -> &Option<Estimate>| {
            let of_steps = of_steps(here.turns, placement, backend, steps);
            let found: Vec<&Estimate> = of_steps.filter_map(|turn| which(turn).as_ref()).collect();
            together(&found)
        };
        match self {
            Self::Kept(steps) if placement.script == ONE_CPU => turned(steps, |turn| &turn.kept),
            Self::Given(steps, _) if placement.script == ONE_CPU => {
                turned(steps, |turn| &turn.given)
            }
            Self::Small(name) => figures.typical("events", &with, name).cloned(),
            Self::Kept(steps) => {
                let found: Vec<&Estimate> = (steps.iter())
                    .filter_map(|(process, n)| figures.step(placement.script, &with, process, *n))
                    .collect();
                together(&found)
            }
            Self::Given(_, names) => {
                let found: Vec<&Estimate> = (names.iter())
                    .filter_map(|name| figures.typical(placement.script, &with, name))
                    .collect();
                together(&found)
            }
            Self::OneWay(parts) if placement.script == ONE_CPU => {
                Self::Sum(parts).measured(here, placement, backend)
            }
            Self::OneWay(_) => {
                let with = [("backend", backend), ("place", placement.place)];
                figures.typical("wake", &with, "wake-up, one way").cloned()
            }
            Self::Sum(parts) => {
                let parts: Option<Vec<Estimate>> = (parts.iter())
                    .map(|part| part.measured(here, placement, backend))
                    .collect();
                sum(&parts?)
            }
        }
    }

    /// Of how many values the figure is, among all of its steps: on one CPU a step is followed by
    /// the process's own next one, or by the other's.
    pub(super) fn share(
        &self,
        here: Here<'_>,
        placement: &Placement,
        backend: &str,
    ) -> Option<ShareOf> {
        let (steps, is_kept) = match self {
            Self::Kept(steps) => (steps, true),
            Self::Given(steps, _) => (steps, false),
            _ => return None,
        };
        if placement.script != ONE_CPU {
            return None;
        }
        let all = ShareOf::of(of_steps(here.turns, placement, backend, steps))?;
        Some(if is_kept { all } else { all.others() })
    }
}
