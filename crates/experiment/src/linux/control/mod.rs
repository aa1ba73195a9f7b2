//! Giving the CPU away and getting it back with the verbs of the Multics traffic controller: wakeup
//! and block; notify, addevent, delevent and wait.
//!
//! * A wakeup sets the target's wakeup-waiting switch. Block returns when it is
//!   set, and clears it: a wakeup is never lost, and two before a block count
//!   once.
//! * Notify reaches each process that has added the event, whether it waits
//!   already or not yet. Wait returns when one of the events added was notified,
//!   and takes all of them off; with none added it returns at once.

mod condvar;
mod eventfd;
mod events;
mod futex;
mod pipe;
mod signal;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use self::events::Events;
use super::Act;
use super::shared_memory::SharedMemory;
use super::wait::{Blocked, Sign};
use crate::script::Backend;

/// Whether notify, addevent, delevent and wait are available.
pub(crate) const fn has_events(backend: Backend) -> bool {
    !matches!(backend, Backend::Signal)
}

/// State that all members share. Create it before they are forked; it may be dropped when each has
/// become a [`Member`].
#[derive(Clone)]
pub(crate) struct Control {
    means: Arc<dyn Means>,
    events: Events,
    blocked: Blocked,
    released: Released,
}

/// Set at the end of the experiment: no member may block any more.
#[derive(Clone, Copy, Debug)]
struct Released(&'static AtomicU32);

impl Released {
    #[inline(always)]
    fn is_set(self) -> bool {
        self.0.load(Ordering::Acquire) != 0
    }
}

/// The implementation of wakeup, block, notify and wait.
trait Means: Send + Sync {
    /// Called in the process and thread of the member.
    fn join(&self, joining: Joining) -> Box<dyn Member>;

    /// Wakes all sleeping members; `released` is already set.
    fn release(&self);
}

/// The joining member, and the state that is the same for all backends.
#[derive(Clone, Copy)]
struct Joining {
    me: usize,
    sign: Sign,
    blocked: Blocked,
    events: Events,
    released: Released,
}

/// A member's end of a backend. The functions that the calls return are run as steps.
trait Port: 'static {
    /// Sets the target's wakeup-waiting switch, and wakes it.
    fn wakeup(&self, target: usize) -> impl FnMut() + 'static;
    /// Waits for the switch, and clears it.
    fn block(&self) -> impl FnMut() + 'static;
    /// Wakes the target, for which the event has just been notified.
    fn wake_notified(&self, target: usize, event: usize) -> impl FnMut() + 'static;
    /// Adds the event to those that `sleep` waits for.
    fn add(&self, event: usize) -> impl FnMut() + 'static;
    /// Removes the event; the argument says whether it was notified.
    fn remove(&self, event: usize) -> impl FnMut(bool) + 'static;
    /// Waits for a notify of an event that was added. May return early.
    fn sleep(&self) -> impl FnMut() + 'static;
}

/// A process or thread, with the state that it needs for the verbs. Those that take or wait for an
/// event panic if the control was made without the event.
pub(crate) trait Member {
    /// Wakes the target, or makes its next block return at once.
    fn wakeup(&self, target: usize) -> Act;
    /// Blocks until a wakeup.
    fn block(&self) -> Act;
    /// Wakes all members that have added the event.
    fn notify(&self, event: u32) -> Act;
    /// Adds the event to those for which this member waits.
    fn add_event(&self, event: u32) -> Act;
    /// Removes the event from those for which this member waits.
    fn del_event(&self, event: u32) -> Act;
    /// Waits for one of the added events, and removes all of them.
    fn wait(&self) -> Act;
    /// Spins until the target, which must be watched, has been blocked for `settle` and sleeps.
    fn until_blocked(&self, target: usize, settle: Duration) -> Act;
}

impl Control {
    /// Creates the control for the members that `blocked` counts, and these events.
    ///
    /// # Errors
    /// The system refuses (usually: too many open files), or there are events and the backend does
    /// not support them.
    pub(crate) fn create(
        backend: Backend,
        blocked: Blocked,
        events: &[u32],
        memory: &SharedMemory,
    ) -> io::Result<Self> {
        if !has_events(backend) && !events.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "signals have no events: notify, addevent, delevent and wait need another backend",
            ));
        }
        let members = blocked.members();
        let count = events.len();
        let means: Arc<dyn Means> = match backend {
            Backend::Futex => Arc::new(futex::Semaphores::create(members, memory)),
            Backend::Eventfd => Arc::new(eventfd::Counters::create(members, count)?),
            Backend::Pipe => Arc::new(pipe::Pipes::create(members, count, memory)?),
            Backend::Condvar => Arc::new(condvar::Condvars::create(members, memory)?),
            Backend::Signal => Arc::new(signal::Threads::create(members, memory)?),
        };
        Ok(Self {
            means,
            events: Events::create(members, events, memory),
            blocked,
            released: Released(memory.place_apart(AtomicU32::new(0))),
        })
    }

    /// Returns one of the members; each may be made once, in its own process and thread.
    pub(crate) fn member(&self, me: usize) -> Box<dyn Member> {
        self.means.join(Joining {
            me,
            sign: self.blocked.sign(me),
            blocked: self.blocked,
            events: self.events,
            released: self.released,
        })
    }

    /// Ends all blocking: a blocked member returns, and every later block, wait or `until_blocked`
    /// returns at once. It cannot be undone.
    pub(crate) fn release_all(&self) {
        // Before the wakes: a member that is woken, or was woken beforehand, sees the release at
        // its next block.
        self.released.0.store(1, Ordering::SeqCst);
        self.blocked.release();
        self.means.release();
    }
}

/// A member that has joined one kind of backend.
struct Joined<P> {
    port: P,
    joining: Joining,
}

fn joined<P: Port>(port: P, joining: Joining) -> Box<dyn Member> {
    Box::new(Joined { port, joining })
}

impl<P: Port> Member for Joined<P> {
    fn wakeup(&self, target: usize) -> Act {
        Box::new(self.port.wakeup(target))
    }

    fn block(&self) -> Act {
        let released = self.joining.released;
        let mut block = self.port.block();
        Box::new(move || {
            if !released.is_set() {
                block();
            }
        })
    }

    fn notify(&self, event: u32) -> Act {
        let events = self.joining.events;
        let index = events.index(event);
        let mut all: Vec<_> = (0..events.members())
            .map(|target| {
                (
                    events.state(target, index),
                    self.port.wake_notified(target, index),
                )
            })
            .collect();
        Box::new(move || {
            for (state, wake) in &mut all {
                if state.notify() {
                    wake();
                }
            }
        })
    }

    fn add_event(&self, event: u32) -> Act {
        let events = self.joining.events;
        let index = events.index(event);
        let state = events.state(self.joining.me, index);
        let mut add = self.port.add(index);
        Box::new(move || {
            if state.add() {
                add();
            }
        })
    }

    fn del_event(&self, event: u32) -> Act {
        let events = self.joining.events;
        let index = events.index(event);
        let state = events.state(self.joining.me, index);
        let mut remove = self.port.remove(index);
        Box::new(move || {
            if let Some(notified) = state.take_off() {
                remove(notified);
            }
        })
    }

    fn wait(&self) -> Act {
        let Joining { events, me, .. } = self.joining;
        let released = self.joining.released;
        let states = events.row(me);
        let mut removes: Vec<_> = (0..states.len())
            .map(|event| self.port.remove(event))
            .collect();
        let mut sleep = self.port.sleep();
        Box::new(move || {
            if states.iter().all(|state| !state.is_added()) {
                return;
            }
            while !states.iter().any(events::State::is_notified) && !released.is_set() {
                sleep();
            }
            for (state, remove) in states.iter().zip(&mut removes) {
                if let Some(notified) = state.take_off() {
                    remove(notified);
                }
            }
        })
    }

    fn until_blocked(&self, target: usize, settle: Duration) -> Act {
        self.joining.blocked.until(target, settle)
    }
}

#[cfg(test)]
mod event_tests;
#[cfg(test)]
mod tests;
