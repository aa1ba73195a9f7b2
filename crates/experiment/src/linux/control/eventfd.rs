//! An `eventfd(2)` for each process, and one for each process and event; `epoll(7)` to add, delete
//! and wait. Each member has its own, so that a notify reaches all of them and no member takes a
//! notify meant for another.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use super::{Joining, Means, Member, Port, joined};
use crate::linux::counter::Counter;
use crate::linux::fail::{again_if_interrupted, because, done, fail_last, made};

#[derive(Clone)]
pub(super) struct Counters(Arc<[One]>);

/// The state of a member.
struct One {
    wakeups: Counter,
    events: Vec<Counter>,
    poll: Arc<OwnedFd>,
}

impl Counters {
    pub(super) fn create(members: usize, events: usize) -> io::Result<Self> {
        let one = |_| {
            Ok(One {
                wakeups: Counter::create()?,
                events: (0..events)
                    .map(|_| Counter::create())
                    .collect::<io::Result<_>>()?,
                poll: Arc::new(epoll()?),
            })
        };
        let all: io::Result<Vec<One>> = (0..members).map(one).collect();
        Ok(Self(all?.into()))
    }
}

fn epoll() -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    let fd = made(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })
        .map_err(|error| because("epoll", &error))?;
    // SAFETY: new, and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn change(poll: RawFd, operation: i32, fd: RawFd) {
    let mut event = libc::epoll_event {
        events: libc::EPOLLIN as u32,
        u64: 0,
    };
    // SAFETY: the kernel reads a live local.
    let changed = unsafe { libc::epoll_ctl(poll, operation, fd, &raw mut event) };
    done("epoll_ctl", changed);
}

impl Means for Counters {
    fn join(&self, joining: Joining) -> Box<dyn Member> {
        let all = self.clone();
        joined(CounterPort { all, joining }, joining)
    }

    fn release(&self) {
        for one in self.0.iter() {
            one.wakeups.add_one();
            // Also ends the wait for a count that a notify was about to add.
            for event in &one.events {
                event.add_one();
            }
        }
    }
}

struct CounterPort {
    all: Counters,
    joining: Joining,
}

impl CounterPort {
    fn mine(&self) -> &One {
        &self.all.0[self.joining.me]
    }
}

impl Port for CounterPort {
    fn wakeup(&self, target: usize) -> impl FnMut() + 'static {
        let wakeups = self.all.0[target].wakeups.clone();
        move || wakeups.add_one()
    }

    fn block(&self) -> impl FnMut() + 'static {
        let wakeups = self.mine().wakeups.clone();
        let sign = self.joining.sign;
        move || {
            sign.raise();
            wakeups.take();
            sign.lower();
        }
    }

    fn wake_notified(&self, target: usize, event: usize) -> impl FnMut() + 'static {
        let event = self.all.0[target].events[event].clone();
        move || event.add_one()
    }

    fn add(&self, event: usize) -> impl FnMut() + 'static {
        let event = self.mine().events[event].clone();
        let poll = Arc::clone(&self.mine().poll);
        move || change(poll.as_raw_fd(), libc::EPOLL_CTL_ADD, event.raw())
    }

    fn remove(&self, event: usize) -> impl FnMut(bool) + 'static {
        let event = self.mine().events[event].clone();
        let poll = Arc::clone(&self.mine().poll);
        let released = self.joining.released;
        move |notified| {
            change(poll.as_raw_fd(), libc::EPOLL_CTL_DEL, event.raw());
            // The count is there, or the notifier is about to add it; if it stayed it would end a
            // later wait. After a release it may never come.
            if notified && !released.is_set() {
                event.take();
            }
        }
    }

    fn sleep(&self) -> impl FnMut() + 'static {
        let poll = Arc::clone(&self.mine().poll);
        let sign = self.joining.sign;
        let most = self.mine().events.len().max(1);
        let mut ready = vec![libc::epoll_event { events: 0, u64: 0 }; most];
        move || {
            sign.raise();
            // SAFETY: room for that many; no time limit.
            let found = again_if_interrupted(|| unsafe {
                libc::epoll_wait(poll.as_raw_fd(), ready.as_mut_ptr(), most as i32, -1) as isize
            });
            sign.lower();
            if found.is_none() {
                fail_last("epoll_wait");
            }
        }
    }
}
