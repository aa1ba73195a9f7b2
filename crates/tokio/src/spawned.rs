//! Tasks that the runtime's callbacks report, by the place that spawned them.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::panic::Location;

use tokio::runtime::{Builder, TaskMeta};
use undertick::{begin, enabled, end, event64, number};

/// Sets the callbacks for tasks.
pub(crate) fn hooks(builder: &mut Builder) {
    builder
        .on_task_spawn(|task| record(task, |events, id| event64(events.new, id)))
        .on_before_task_poll(|task| {
            record(task, |events, id| {
                let _ = POLLED.try_with(|polled| polled.set(id));
                event64(events.polled, id);
                begin(events.poll);
            });
        })
        .on_after_task_poll(|task| record(task, |events, _| end(events.poll)))
        .on_task_terminate(|task| {
            record(task, |events, id| {
                // Tasks also end with their runtime, without a last poll. So does what never was a task, such as
                // blocking work; the analysis leaves out ends of what did not begin.
                let is_polled = POLLED.try_with(|polled| polled.get() == id);
                match is_polled {
                    Ok(true) => event64(events.done, id),
                    _ => event64(events.cancelled, id),
                }
            });
        });
}

thread_local! {
    /// The task that this thread polled last; 0: none.
    static POLLED: Cell<u64> = const { Cell::new(0) };
}

/// The events of the tasks that one place spawns (`docs/format.md`, section 14).
#[derive(Clone, Copy)]
struct Events {
    poll: u16,
    new: u16,
    polled: u16,
    done: u16,
    cancelled: u16,
}

impl Events {
    fn new(place: &Location<'_>) -> Self {
        let name = |end: &str| number(&format!("{}:{}{end}", place.file(), place.line()));
        Self {
            poll: name(""),
            new: name(" task new"),
            polled: name(" task polled"),
            done: name(" task done"),
            cancelled: name(" task cancelled"),
        }
    }
}

fn record(task: &TaskMeta<'_>, write: impl FnOnce(Events, u64)) {
    thread_local! {
        /// By the address of the place, which lives as long as the program.
        static KNOWN: RefCell<HashMap<usize, Events>> = RefCell::default();
    }
    if !enabled() {
        return;
    }
    let place = task.spawned_at();
    let events = KNOWN.try_with(|known| {
        let mut known = known.borrow_mut();
        *(known.entry(std::ptr::from_ref(place) as usize)).or_insert_with(|| Events::new(place))
    });
    // While a thread ends there is no map.
    if let Ok(events) = events {
        write(events, number_of_task(&task.id()));
    }
}

/// The number of a task, which its id shows to hashers alone.
fn number_of_task(id: &tokio::task::Id) -> u64 {
    struct Shown(u64);
    impl Hasher for Shown {
        fn finish(&self) -> u64 {
            self.0
        }
        fn write(&mut self, bytes: &[u8]) {
            for byte in bytes {
                self.0 = self.0 << 8 | u64::from(*byte);
            }
        }
        fn write_u64(&mut self, value: u64) {
            self.0 = value;
        }
    }
    let mut shown = Shown(0);
    id.hash(&mut shown);
    shown.0
}
