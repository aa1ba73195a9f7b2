//! A word for each process to sleep on, with `futex(2)`: one for wakeups, one for events.

use super::{Joining, Means, Port, Verbs, joined};
use crate::linux::shared_memory::SharedMemory;
use crate::linux::wait::Gate;

pub(super) struct Gates(&'static [&'static Pair]);

#[derive(Debug, Default)]
struct Pair {
    wakeups: Gate,
    events: Gate,
}

impl Gates {
    pub(super) fn create(members: usize, memory: &SharedMemory) -> Self {
        let pairs = (0..members)
            .map(|_| memory.place_apart(Pair::default()))
            .collect();
        Self(memory.place_all(pairs))
    }
}

impl Means for Gates {
    fn join(&self, joining: Joining) -> Box<dyn Verbs> {
        joined(
            GatePort {
                all: self.0,
                joining,
            },
            joining,
        )
    }

    fn release(&self) {
        for pair in self.0 {
            pair.wakeups.open();
            pair.events.open();
        }
    }
}

struct GatePort {
    all: &'static [&'static Pair],
    joining: Joining,
}

impl Port for GatePort {
    fn wakeup(&self, target: usize) -> impl FnMut() + 'static {
        let gate = &self.all[target].wakeups;
        move || gate.open()
    }

    fn block(&self) -> impl FnMut() + 'static {
        let gate = &self.all[self.joining.me].wakeups;
        let sign = self.joining.sign;
        move || gate.pass(sign)
    }

    fn wake_notified(&self, target: usize, _: usize) -> impl FnMut() + 'static {
        let gate = &self.all[target].events;
        move || gate.open()
    }

    fn add(&self, _: usize) -> impl FnMut() + 'static {
        || ()
    }

    fn remove(&self, _: usize) -> impl FnMut(bool) + 'static {
        |_| ()
    }

    fn sleep(&self) -> impl FnMut() + 'static {
        // The gate may still be open from a notify that came after another event had ended the
        // wait. The caller checks the events and waits again.
        let gate = &self.all[self.joining.me].events;
        let sign = self.joining.sign;
        move || gate.pass(sign)
    }
}
