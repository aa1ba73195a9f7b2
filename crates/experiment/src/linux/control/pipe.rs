//! A pipe for each process, and one for each process and event; `poll(2)` to wait.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Joining, Means, Member, Port, joined};
use crate::linux::fail::{again_if_interrupted, fail_last};
use crate::linux::shared_memory::SharedMemory;
use crate::linux::stream;

#[derive(Clone)]
pub(super) struct Pipes(Arc<[One]>);

/// The state of a member.
struct One {
    wakeups: Arc<Pipe>,
    /// 1: a byte is in the pipe, or on its way. There is never more than one, so that wakeups
    /// before a block count once and no writer waits for room.
    waiting: &'static AtomicU32,
    events: Vec<Arc<Pipe>>,
}

struct Pipe {
    from: io::PipeReader,
    to: io::PipeWriter,
}

impl Pipe {
    fn create() -> io::Result<Arc<Self>> {
        let (from, to) = stream::pipe()?;
        Ok(Arc::new(Self { from, to }))
    }

    #[inline(always)]
    fn put(&self) {
        stream::write_all(self.to.as_raw_fd(), &[1]);
    }

    #[inline(always)]
    fn take(&self) {
        stream::read_all(self.from.as_raw_fd(), &mut [0]);
    }
}

impl Pipes {
    pub(super) fn create(members: usize, events: usize, memory: &SharedMemory) -> io::Result<Self> {
        let one = |_| {
            Ok(One {
                wakeups: Pipe::create()?,
                waiting: memory.place_apart(AtomicU32::new(0)),
                events: (0..events)
                    .map(|_| Pipe::create())
                    .collect::<io::Result<_>>()?,
            })
        };
        let all: io::Result<Vec<One>> = (0..members).map(one).collect();
        Ok(Self(all?.into()))
    }
}

impl Means for Pipes {
    fn join(&self, joining: Joining) -> Box<dyn Member> {
        let port = PipePort {
            all: self.clone(),
            joining,
            set: Rc::new(RefCell::new(Vec::with_capacity(
                joining.events.row(0).len(),
            ))),
        };
        joined(port, joining)
    }

    fn release(&self) {
        for one in self.0.iter() {
            one.wakeups.put();
            for event in &one.events {
                event.put();
            }
        }
    }
}

struct PipePort {
    all: Pipes,
    joining: Joining,
    /// The poll set of this member: the events added.
    set: Rc<RefCell<Vec<libc::pollfd>>>,
}

impl PipePort {
    fn mine(&self) -> &One {
        &self.all.0[self.joining.me]
    }

    /// The descriptor at which this member receives an event.
    fn event(&self, event: usize) -> RawFd {
        self.mine().events[event].from.as_raw_fd()
    }
}

impl Port for PipePort {
    fn wakeup(&self, target: usize) -> impl FnMut() + 'static {
        let One {
            wakeups, waiting, ..
        } = &self.all.0[target];
        let (wakeups, waiting) = (Arc::clone(wakeups), *waiting);
        move || {
            if waiting.swap(1, Ordering::AcqRel) == 0 {
                wakeups.put();
            }
        }
    }

    fn block(&self) -> impl FnMut() + 'static {
        let One {
            wakeups, waiting, ..
        } = self.mine();
        let (wakeups, waiting) = (Arc::clone(wakeups), *waiting);
        let sign = self.joining.sign;
        move || {
            sign.raise();
            wakeups.take();
            sign.lower();
            // A wakeup between the two counts for this block. The swap makes writes before that
            // wakeup visible.
            waiting.swap(0, Ordering::AcqRel);
        }
    }

    fn wake_notified(&self, target: usize, event: usize) -> impl FnMut() + 'static {
        let event = Arc::clone(&self.all.0[target].events[event]);
        move || event.put()
    }

    fn add(&self, event: usize) -> impl FnMut() + 'static {
        let set = Rc::clone(&self.set);
        let added = libc::pollfd {
            fd: self.event(event),
            events: libc::POLLIN,
            revents: 0,
        };
        // There is room for all events.
        move || set.borrow_mut().push(added)
    }

    fn remove(&self, event: usize) -> impl FnMut(bool) + 'static {
        let set = Rc::clone(&self.set);
        let fd = self.event(event);
        let event = Arc::clone(&self.mine().events[event]);
        let released = self.joining.released;
        move |notified| {
            let mut set = set.borrow_mut();
            if let Some(at) = set.iter().position(|added| added.fd == fd) {
                set.swap_remove(at);
            }
            // As with eventfd.
            if notified && !released.is_set() {
                event.take();
            }
        }
    }

    fn sleep(&self) -> impl FnMut() + 'static {
        let set = Rc::clone(&self.set);
        let sign = self.joining.sign;
        move || {
            let mut set = set.borrow_mut();
            sign.raise();
            // SAFETY: the set is live and as long as said; no time limit.
            let found = again_if_interrupted(|| unsafe {
                libc::poll(set.as_mut_ptr(), set.len() as libc::nfds_t, -1) as isize
            });
            sign.lower();
            if found.is_none() {
                fail_last("poll");
            }
        }
    }
}
