//! Writes stack samples: those on a CPU as Perfetto's samples, those of threads that leave their CPU
//! as points of their kernel tracks.

use std::collections::{HashMap, HashSet};
use std::io;

use undertick_format::schema::Sampled;
use undertick_format::stacks::{StackTable, UNKNOWN, WHOLE};

use super::kernel::kernel_uuid;
use super::{INSTANT, Message, Perfetto};
use crate::export::Row;

/// Values of Perfetto's `Profiling.CpuMode`.
const IN_KERNEL: u64 = 1;
const IN_PROGRAM: u64 = 2;
/// Stands for the outer frames of a stack that is not whole, and for a stack without frames.
const MISSING: &str = "[missing]";
/// Stands for the file of a function that has none: older readers drop a stack with a frame of no file.
const NO_FILE: &str = "[unknown]";
/// The identifier of the stack without frames, also of one that does not exist.
const NO_FRAMES: u64 = 1;
/// Most frames of stacks that are described. A tree may have a hundred times as many in all its stacks as it
/// has nodes.
const MOST_FRAMES: usize = 1 << 24;

/// The stacks of a trace, and which of their parts the file describes already. Identifiers are places
/// in the tables and 1, or 2 for nodes: Perfetto has no 0.
#[derive(Default)]
pub(super) struct Callstacks {
    table: StackTable,
    /// Files, by the identifier of the first function in each.
    files: HashMap<String, u64>,
    functions: HashSet<u32>,
    ids: HashSet<u64>,
    frames: usize,
}

impl Callstacks {
    pub(super) fn new(table: StackTable) -> Self {
        Self {
            table,
            ..Self::default()
        }
    }

    /// The identifier of a stack; `interned` gets what the file does not describe yet. Stacks beyond
    /// [`MOST_FRAMES`] are the one without frames.
    fn id(&mut self, node: i64, interned: &mut Message) -> u64 {
        let id = u64::try_from(node).map_or(NO_FRAMES, |node| node.saturating_add(2));
        if self.ids.contains(&id) {
            return id;
        }
        let (functions, root) = match self.frames < MOST_FRAMES {
            true => self.table.stack(node),
            false => (Vec::new(), UNKNOWN),
        };
        let id = if functions.is_empty() { NO_FRAMES } else { id };
        if !self.ids.insert(id) {
            return id;
        }
        self.frames += functions.len() + 1;
        let mut callstack = Message::default();
        callstack.number(1, id); // iid
        if root != WHOLE || functions.is_empty() {
            let missing = self.table.functions.len() as u32;
            self.frame(missing, interned);
            callstack.number(2, u64::from(missing) + 1); // frame_ids
        }
        for &function in functions.iter().rev() {
            self.frame(function, interned);
            callstack.number(2, u64::from(function) + 1);
        }
        interned.message(7, &callstack); // callstacks
        id
    }

    /// Describes the frame of a function, with its name and its file, unless that is done.
    fn frame(&mut self, function: u32, interned: &mut Message) {
        if !self.functions.insert(function) {
            return;
        }
        let id = u64::from(function) + 1;
        let (name, file) = match self.table.functions.get(function as usize) {
            Some((name, file)) => (name.as_str(), file.as_str()),
            None => (MISSING, ""),
        };
        let file = if file.is_empty() { NO_FILE } else { file };
        let mut text = Message::default();
        text.number(1, id);
        text.text(2, name);
        interned.message(5, &text); // function_names
        let of_file = *self.files.entry(file.to_owned()).or_insert(id);
        if of_file == id {
            let mut path = Message::default();
            path.number(1, id);
            path.text(2, file);
            interned.message(17, &path); // mapping_paths
            let mut mapping = Message::default();
            mapping.number(1, id);
            mapping.number(7, id); // path_string_ids
            interned.message(19, &mapping); // mappings
        }
        let mut frame = Message::default();
        frame.number(1, id);
        frame.number(2, id); // function_name_id
        frame.number(3, of_file); // mapping_id
        interned.message(6, &frame); // frames
    }
}

impl Perfetto {
    /// Writes a sample of a thread.
    pub(super) fn sample(&mut self, row: &Row) -> io::Result<()> {
        let Some(does) = Sampled::from_code(row.event) else {
            return Ok(());
        };
        let mut interned = Message::default();
        let id = self.callstacks.id(row.payload, &mut interned);
        let describe = |packet: &mut Message| {
            if !interned.0.is_empty() {
                packet.message(12, &interned); // interned_data
            }
        };
        let mode = match does {
            Sampled::InProgram => IN_PROGRAM,
            Sampled::InKernel => IN_KERNEL,
            Sampled::Leaves => {
                self.describe_kernel(row)?;
                return self.event_packet(row.unix_ns, |_, packet, event| {
                    describe(packet);
                    event.number(9, INSTANT); // type
                    event.number(11, kernel_uuid(row.tid)); // track_uuid
                    event.text(23, "stack"); // name
                    event.number(56, id); // callstack_iid
                });
            }
        };
        let mut sample = Message::default();
        if let Ok(cpu) = u64::try_from(row.cpu) {
            sample.number(1, cpu);
        }
        sample.number(2, row.pid as u64);
        sample.number(3, row.tid as u64);
        sample.number(4, id); // callstack_iid
        sample.number(5, mode); // cpu_mode
        let mut packet = Message::default();
        packet.number(8, row.unix_ns as u64); // timestamp
        describe(&mut packet);
        packet.message(66, &sample); // perf_sample
        self.packet(packet)
    }
}

#[cfg(test)]
mod tests;
