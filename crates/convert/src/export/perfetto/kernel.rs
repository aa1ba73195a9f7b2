//! Writes rows of the kernel: a track beside each thread's own.

use std::io;

use undertick_format::schema::{Kind, off};

use super::{INSTANT, Message, Perfetto, SLICE_BEGIN, SLICE_END, process_uuid};
use crate::export::Row;

impl Perfetto {
    /// Writes a kernel row of a thread: when it was off its CPU and why, what interrupted it, or
    /// where it migrated.
    pub(super) fn of_kernel(&mut self, row: &Row) -> io::Result<()> {
        let track = kernel_uuid(row.tid);
        match row.kind {
            _ if row.tid == 0 => Ok(()), // of a CPU, not of a thread
            Some(Kind::SwitchOut) => {
                let why = match row.payload {
                    off::PREEMPTED => "preempted",
                    off::BLOCKED => "blocked in the kernel",
                    off::STOPPED => "stopped",
                    _ => "waits",
                };
                self.describe_kernel(row)?;
                if !self.off.insert(row.tid) {
                    self.slice(SLICE_END, track, row.unix_ns, None)?;
                }
                self.slice(SLICE_BEGIN, track, row.unix_ns, Some(why))
            }
            Some(Kind::SwitchIn) if self.off.remove(&row.tid) => {
                self.slice(SLICE_END, track, row.unix_ns, None)
            }
            Some(Kind::Interrupt) => self.interrupt(row, &format!("interrupt {}", row.event)),
            Some(Kind::SoftInterrupt) => {
                self.interrupt(row, &format!("soft interrupt {}", row.event))
            }
            Some(Kind::Migrate) => self.point(row, &format!("to CPU {}", row.cpu)),
            Some(Kind::Fault) => self.point(row, "page fault"),
            Some(Kind::Waking) => self.point(row, "woken"),
            Some(Kind::Stack) => self.sample(row),
            _ => Ok(()),
        }
    }

    fn interrupt(&mut self, row: &Row, name: &str) -> io::Result<()> {
        let track = kernel_uuid(row.tid);
        self.describe_kernel(row)?;
        self.slice(SLICE_BEGIN, track, row.unix_ns, Some(name))?;
        self.slice(SLICE_END, track, row.end_unix_ns, None)
    }

    fn point(&mut self, row: &Row, name: &str) -> io::Result<()> {
        self.describe_kernel(row)?;
        self.slice(INSTANT, kernel_uuid(row.tid), row.unix_ns, Some(name))
    }

    pub(super) fn describe_kernel(&mut self, row: &Row) -> io::Result<()> {
        if !self.kernel_tracks.insert(row.tid) {
            return Ok(());
        }
        let mut descriptor = Message::default();
        descriptor.number(1, kernel_uuid(row.tid));
        if row.pid > 0 {
            self.describe_process(row.pid)?;
            descriptor.number(5, process_uuid(row.pid)); // parent_uuid
        }
        descriptor.text(2, &format!("kernel: thread {}", row.tid)); // name
        let mut packet = Message::default();
        packet.message(60, &descriptor);
        self.packet(packet)
    }

    fn slice(&mut self, what: u64, track: u64, ns: i64, name: Option<&str>) -> io::Result<()> {
        self.event_packet(ns, |_, _, event| {
            event.number(9, what); // type
            event.number(11, track); // track_uuid
            if let Some(name) = name {
                event.text(23, name);
            }
        })
    }
}

pub(super) const fn kernel_uuid(tid: i32) -> u64 {
    3 << 40 | tid as u32 as u64
}
