//! nexosim, one thread: a model that schedules its own events.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use nexosim::model::{Context, Model, schedulable};
use nexosim::simulation::{Mailbox, SimInit};
use nexosim::time::MonotonicTime;
use serde::{Deserialize, Serialize};

use crate::{GAP_NS, Queue, Ran, TIMERS, Times};

/// Where a model leaves its result.
type Out = Arc<Mutex<Option<Ran>>>;

#[derive(Serialize, Deserialize)]
struct Server {
    queue: Queue,
    #[serde(skip)]
    out: Out,
}

#[Model]
impl Server {
    #[nexosim(init)]
    async fn init(&mut self, cx: &Context<Self>) {
        let first = Duration::from_nanos(1);
        cx.schedule_event(first, schedulable!(Self::arrive), ())
            .unwrap();
    }

    #[nexosim(schedulable)]
    fn arrive(&mut self, _: (), cx: &Context<Self>) {
        let (next, departs) = self.queue.arrive();
        if let Some(ns) = next {
            let at = Duration::from_nanos(ns);
            cx.schedule_event(at, schedulable!(Self::arrive), ())
                .unwrap();
        }
        if let Some(ns) = departs {
            let at = Duration::from_nanos(ns);
            cx.schedule_event(at, schedulable!(Self::depart), ())
                .unwrap();
        }
    }

    #[nexosim(schedulable)]
    fn depart(&mut self, _: (), cx: &Context<Self>) {
        if let Some(ns) = self.queue.depart() {
            let at = Duration::from_nanos(ns);
            cx.schedule_event(at, schedulable!(Self::depart), ())
                .unwrap();
        } else if self.queue.left == 0 {
            *self.out.lock().unwrap() = Some(self.queue.ran());
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Timers {
    times: Times,
    done: u64,
    events: u64,
    #[serde(skip)]
    out: Out,
}

#[Model]
impl Timers {
    #[nexosim(init)]
    async fn init(&mut self, cx: &Context<Self>) {
        for timer in 0..TIMERS {
            let at = Duration::from_nanos(self.times.draw_ns(GAP_NS));
            cx.schedule_event(at, schedulable!(Self::ring), timer as u32)
                .unwrap();
        }
    }

    #[nexosim(schedulable)]
    fn ring(&mut self, timer: u32, cx: &Context<Self>) {
        self.done += 1;
        if self.done + TIMERS <= self.events {
            let at = Duration::from_nanos(self.times.draw_ns(GAP_NS));
            cx.schedule_event(at, schedulable!(Self::ring), timer)
                .unwrap();
        } else if self.done == self.events {
            let now = cx.time().duration_since(MonotonicTime::EPOCH);
            *self.out.lock().unwrap() = Some(Ran {
                events: self.done,
                result: now.as_nanos() as f64,
            });
        }
    }
}

pub fn queue(events: u64) -> Ran {
    let out = Out::default();
    let server = Server {
        queue: Queue::new(events),
        out: Arc::clone(&out),
    };
    let mut simulation = SimInit::with_num_threads(1)
        .add_model(server, Mailbox::new(), "server")
        .init(MonotonicTime::EPOCH)
        .unwrap();
    simulation.run().unwrap();
    out.lock().unwrap().take().unwrap()
}

pub fn timers(events: u64) -> Ran {
    let out = Out::default();
    let timers = Timers {
        times: Times::new(2),
        done: 0,
        events,
        out: Arc::clone(&out),
    };
    let mut simulation = SimInit::with_num_threads(1)
        .add_model(timers, Mailbox::new(), "timers")
        .init(MonotonicTime::EPOCH)
        .unwrap();
    simulation.run().unwrap();
    out.lock().unwrap().take().unwrap()
}
