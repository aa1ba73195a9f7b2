//! Which events rules are about, by number.

/// Number of events that a record can name.
const EVENTS: usize = 1 << 16;

/// What is known of an event number. In this order, the greater of two decides for a record that
/// names two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Known {
    /// No rule is about it.
    Unwanted,
    /// A rule is about it in some process.
    Wanted,
    /// It has no name so far.
    Never,
}

const NEVER: u16 = 0;
const UNWANTED: u16 = 1;
/// First number of an event that a rule is about.
const FIRST: u16 = 2;

/// The rules about each event.
#[derive(Debug)]
pub(super) struct Events {
    /// By event: never seen, unwanted, or the place in `wanted`.
    places: Vec<u16>,
    wanted: Vec<Wanted>,
}

/// The rules about an event, as bits.
#[derive(Clone, Debug, Default)]
struct Wanted {
    everywhere: u64,
    /// Those of processes that gave the number a name themselves, by process.
    by_process: Vec<(i32, u64)>,
}

impl Default for Events {
    fn default() -> Self {
        Self {
            places: vec![NEVER; EVENTS],
            wanted: Vec::new(),
        }
    }
}

impl Events {
    /// Takes the rules about each event, as bits, by the process that named it; `None` holds for all
    /// that did not. Of two for the same process the later one holds.
    pub(super) fn of_names(all: &[(Option<i32>, u16, u64)]) -> Self {
        let mut events = Self::default();
        for &(_, event, rules) in all {
            events.place(event, rules);
        }
        // A name without rules counts where the same number has rules elsewhere.
        for &(pid, event, rules) in all {
            events.set(pid, event, rules);
        }
        for wanted in &mut events.wanted {
            // Stable: of equal ones the later stays last.
            wanted.by_process.sort_by_key(|(pid, _)| *pid);
            wanted.by_process.reverse();
            wanted.by_process.dedup_by_key(|(pid, _)| *pid);
            wanted.by_process.reverse();
        }
        events
    }

    /// Takes an event that has no name.
    pub(super) fn without_name(&mut self, event: u16, rules: u64) {
        self.place(event, rules);
        self.set(None, event, rules);
    }

    fn place(&mut self, event: u16, rules: u64) {
        let place = &mut self.places[usize::from(event)];
        if rules == 0 {
            *place = (*place).max(UNWANTED);
        } else if *place < FIRST
            && let Some(next) = u16::try_from(self.wanted.len()).ok()
            && let Some(next) = next.checked_add(FIRST)
        {
            *place = next;
            self.wanted.push(Wanted::default());
        }
    }

    fn set(&mut self, pid: Option<i32>, event: u16, rules: u64) {
        let place = self.places[usize::from(event)].checked_sub(FIRST);
        let Some(wanted) = place.map(|place| &mut self.wanted[usize::from(place)]) else {
            return;
        };
        match pid {
            None => wanted.everywhere = rules,
            Some(pid) => wanted.by_process.push((pid, rules)),
        }
    }

    #[inline]
    pub(super) fn known(&self, event: u16) -> Known {
        match self.places[usize::from(event)] {
            NEVER => Known::Never,
            UNWANTED => Known::Unwanted,
            _ => Known::Wanted,
        }
    }

    /// The rules about an event of a process, as bits.
    #[inline]
    pub(super) fn rules(&self, pid: i32, event: u16) -> u64 {
        let place = self.places[usize::from(event)];
        let Some(wanted) = place
            .checked_sub(FIRST)
            .map(|place| &self.wanted[usize::from(place)])
        else {
            return 0;
        };
        match wanted.by_process.binary_search_by_key(&pid, |(of, _)| *of) {
            Ok(at) => wanted.by_process[at].1,
            Err(_) => wanted.everywhere,
        }
    }
}
