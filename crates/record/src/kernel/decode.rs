//! Decodes the kernel's trace events into records.

use std::collections::HashMap;

use undertick_format::schema::OWN_VECTOR;

use super::format::{Field, Format, PageLayout};
use super::page::{self, PageItem};
use super::raw::{Record, RecordKind};

/// Bits of `common_flags`: in an interrupt, in a softirq.
const IN_INTERRUPT: i64 = 0x08 | 0x10;
/// Bit of `clone_flags`: a new thread of the same process.
const CLONE_THREAD: i64 = 0x1_0000;
/// Most names of threads that are remembered; beyond, they are recorded again.
const MOST_NAMES: usize = 1 << 16;
/// Deepest nesting of interrupts; a deeper one means an error.
const DEEPEST: usize = 16;

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Switch,
    Waking,
    NewTask,
    Exec,
    Exit,
    Fault,
    Frequency,
    Enter(Over),
    Leave(Over),
}

/// What interrupts a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    Line,
    Vector,
    Soft,
}

/// The kernel's event groups and names, their kinds, and the fields needed.
pub(super) const EVENTS: &[(&str, &str, Event, &[&str])] = &[
    (
        "sched",
        "sched_switch",
        Event::Switch,
        &["prev_pid", "next_pid", "prev_state"],
    ),
    ("sched", "sched_process_exec", Event::Exec, &["pid"]),
    (
        "task",
        "task_newtask",
        Event::NewTask,
        &["pid", "clone_flags"],
    ),
    ("sched", "sched_process_exit", Event::Exit, &["pid"]),
    ("sched", "sched_waking", Event::Waking, &["pid"]),
    (
        "irq",
        "irq_handler_entry",
        Event::Enter(Over::Line),
        &["irq"],
    ),
    (
        "irq",
        "irq_handler_exit",
        Event::Leave(Over::Line),
        &["irq"],
    ),
    ("irq", "softirq_entry", Event::Enter(Over::Soft), &["vec"]),
    ("irq", "softirq_exit", Event::Leave(Over::Soft), &["vec"]),
    ("exceptions", "page_fault_user", Event::Fault, &[]),
    (
        "power",
        "cpu_frequency",
        Event::Frequency,
        &["state", "cpu_id"],
    ),
];

/// The CPU's local interrupts, each with an `_entry` and an `_exit` event (x86).
pub(super) const VECTORS: &[&str] = &[
    "local_timer",
    "reschedule",
    "call_function",
    "call_function_single",
    "irq_work",
];

/// An event that is decoded, by its number.
#[derive(Clone, Copy, Debug)]
struct Known {
    event: Event,
    fields: [Option<Field>; 3],
}

/// A CPU's interrupts that have not ended yet.
type Open = Vec<(Over, i64, i32, u64)>;

/// Decodes pages.
#[derive(Debug)]
pub(super) struct Decoder {
    layout: PageLayout,
    /// The field with thread and state of each event.
    current: Field,
    flags: Field,
    known: HashMap<u16, Known>,
    open: HashMap<i16, Open>,
    /// The name of the thread that comes on a CPU, in switches.
    next_name: Option<Field>,
    /// Names of threads that have been recorded.
    names: HashMap<i32, [u8; Record::NAME_BYTES]>,
    /// The times are not those of the trace clock.
    mapped: bool,
}

impl Decoder {
    /// Makes a decoder; `common` is any event's format. `None` if that format is not as expected.
    pub(super) fn new(layout: PageLayout, common: &Format, mapped: bool) -> Option<Self> {
        Some(Self {
            layout,
            current: common.field("common_pid")?,
            flags: common.field("common_flags")?,
            known: HashMap::new(),
            open: HashMap::new(),
            next_name: None,
            names: HashMap::new(),
            mapped,
        })
    }

    pub(super) const fn page_bytes(&self) -> usize {
        self.layout.bytes
    }

    /// Decodes the event from now on if it has all the fields; returns whether it has.
    pub(super) fn add(&mut self, event: Event, format: &Format, names: &[&str]) -> bool {
        let mut fields = [None; 3];
        for (field, name) in fields.iter_mut().zip(names) {
            *field = format.field(name);
            if field.is_none() {
                return false;
            }
        }
        if event == Event::Switch {
            self.next_name = format.field("next_comm");
        }
        self.known.insert(format.id, Known { event, fields });
        true
    }

    /// Decodes the events of a page of `cpu`.
    pub(super) fn page(&mut self, cpu: i16, page: &[u8], mut take: impl FnMut(Record)) {
        let layout = self.layout;
        page::read(page, &layout, |item| match item {
            PageItem::Lost(time, count) => {
                // Open interrupts may have ended in the lost events.
                self.open.remove(&cpu);
                take(Record {
                    payload: count,
                    ..self.record(RecordKind::TracefsLost, time, cpu)
                });
            }
            PageItem::Event(time, data) => {
                if let Some(record) = self.event(cpu, time, data) {
                    if let Some(name) = self.name(&record, data) {
                        take(name);
                    }
                    take(record);
                }
            }
        });
    }

    fn record(&self, kind: RecordKind, time: u64, cpu: i16) -> Record {
        Record {
            mapped: self.mapped,
            cpu,
            ..Record::new(kind, time)
        }
    }

    /// The name of the thread that takes the CPU of one that could have run on, unless it has been
    /// told.
    fn name(&mut self, switch: &Record, data: &[u8]) -> Option<Record> {
        let is_one = switch.kind == RecordKind::Switch && switch.pid > 0 && switch.is_preemption();
        let bytes = self.next_name.filter(|_| is_one)?.bytes(data)?;
        let name: [u8; Record::NAME_BYTES] = bytes.try_into().ok()?;
        if self.names.get(&switch.pid) == Some(&name) {
            return None;
        }
        if self.names.len() >= MOST_NAMES {
            self.names.clear();
        }
        self.names.insert(switch.pid, name);
        Some(Record {
            mapped: self.mapped,
            // Before the switch, which is to find it.
            ..Record::of_name(switch.pid, &name, switch.time.saturating_sub(1))
        })
    }

    fn event(&mut self, cpu: i16, time: u64, data: &[u8]) -> Option<Record> {
        let id = u16::from_le_bytes(data.get(..2)?.try_into().ok()?);
        let known = *self.known.get(&id)?;
        let number = |field: usize| known.fields[field].map_or(0, |field| field.get(data));
        let current = self.current.get(data) as i32;
        let of = |kind: RecordKind, tid: i32| Record {
            tid,
            ..self.record(kind, time, cpu)
        };
        Some(match known.event {
            Event::Switch => Record {
                pid: number(1) as i32,
                a: (number(2) & 0xffff) as i32,
                ..of(RecordKind::Switch, number(0) as i32)
            },
            Event::Waking => Record {
                pid: if self.flags.get(data) & IN_INTERRUPT == 0 {
                    current
                } else {
                    0
                },
                ..of(RecordKind::Waking, number(0) as i32)
            },
            Event::NewTask => Record {
                pid: current,
                a: i32::from(number(1) & CLONE_THREAD != 0),
                ..of(RecordKind::NewTask, number(0) as i32)
            },
            Event::Exec => of(RecordKind::Exec, number(0) as i32),
            Event::Exit => of(RecordKind::Exit, number(0) as i32),
            Event::Fault => of(RecordKind::Fault, current),
            Event::Frequency => Record {
                cpu: number(1) as i16,
                payload: number(0),
                ..of(RecordKind::Frequency, 0)
            },
            Event::Enter(over) => {
                let open = self.open.entry(cpu).or_default();
                if open.len() == DEEPEST {
                    open.remove(0);
                }
                open.push((over, number(0), current, time));
                return None;
            }
            Event::Leave(over) => {
                let open = self.open.get_mut(&cpu)?;
                let same = |begun: &(Over, i64, i32, u64)| (begun.0, begun.1) == (over, number(0));
                let place = open.iter().rposition(same)?;
                let (_, number, tid, start) = open[place];
                open.truncate(place);
                let kind = match over {
                    Over::Soft => RecordKind::SoftInterrupt,
                    Over::Line | Over::Vector => RecordKind::Interrupt,
                };
                let own = if over == Over::Vector { OWN_VECTOR } else { 0 };
                Record {
                    tid,
                    a: number as i32 + own,
                    payload: time.saturating_sub(start) as i64,
                    ..self.record(kind, start, cpu)
                }
            }
        })
    }
}

#[cfg(test)]
mod tests;
