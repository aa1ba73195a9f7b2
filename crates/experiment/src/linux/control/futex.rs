//! Two binary semaphores for each process, with `futex(2)`: one for wakeups, one for events.

use super::{Joining, Means, Member, Port, joined};
use crate::linux::shared_memory::SharedMemory;
use crate::linux::wait::BinarySemaphore;

pub(super) struct Semaphores(&'static [&'static Pair]);

#[derive(Debug, Default)]
struct Pair {
    wakeups: BinarySemaphore,
    events: BinarySemaphore,
}

impl Semaphores {
    pub(super) fn create(members: usize, memory: &SharedMemory) -> Self {
        let pairs = (0..members)
            .map(|_| memory.place_apart(Pair::default()))
            .collect();
        Self(memory.place_all(pairs))
    }
}

impl Means for Semaphores {
    fn join(&self, joining: Joining) -> Box<dyn Member> {
        joined(
            SemaphorePort {
                all: self.0,
                joining,
            },
            joining,
        )
    }

    fn release(&self) {
        for pair in self.0 {
            pair.wakeups.post();
            pair.events.post();
        }
    }
}

struct SemaphorePort {
    all: &'static [&'static Pair],
    joining: Joining,
}

impl Port for SemaphorePort {
    fn wakeup(&self, target: usize) -> impl FnMut() + 'static {
        let semaphore = &self.all[target].wakeups;
        move || semaphore.post()
    }

    fn block(&self) -> impl FnMut() + 'static {
        let semaphore = &self.all[self.joining.me].wakeups;
        let sign = self.joining.sign;
        move || semaphore.wait(sign)
    }

    fn wake_notified(&self, target: usize, _: usize) -> impl FnMut() + 'static {
        let semaphore = &self.all[target].events;
        move || semaphore.post()
    }

    fn add(&self, _: usize) -> impl FnMut() + 'static {
        || ()
    }

    fn remove(&self, _: usize) -> impl FnMut(bool) + 'static {
        |_| ()
    }

    fn sleep(&self) -> impl FnMut() + 'static {
        // The semaphore may still be posted from a notify that came after another event had ended
        // the wait. The caller checks the events and waits again.
        let semaphore = &self.all[self.joining.me].events;
        let sign = self.joining.sign;
        move || semaphore.wait(sign)
    }
}
