//! Shared memory for all processes of an experiment, at one address in each.

use std::cell::Cell;
use std::io;
use std::mem::{align_of, needs_drop, size_of};
use std::ptr::{NonNull, null_mut};

use super::fail::fail;

/// Two cache lines, because CPUs that fetch lines in pairs would otherwise share one.
const APART: usize = 128;

/// Shared anonymous memory. A value placed before a `fork` exists in parent and child, at the same
/// address.
///
/// References into it are `'static`: the mappings are never unmapped, not even when this value is
/// dropped, because a forked process or a thread may still use them. They end with the last
/// process.
#[derive(Debug)]
pub(crate) struct SharedMemory {
    /// Minimum size of a mapping, bytes.
    piece_bytes: usize,
    /// First free address, and the end of the current mapping.
    free: Cell<(usize, usize)>,
}

/// Gives `T` its own cache lines.
#[repr(C, align(128))]
struct Apart<T>(T);

impl SharedMemory {
    /// Makes room for that many bytes; when they are used up, more memory is mapped. Only touched
    /// pages use memory.
    ///
    /// # Errors
    /// The system provides no memory.
    pub(crate) fn new(bytes: usize) -> io::Result<Self> {
        let piece_bytes = bytes.max(1).next_multiple_of(4096);
        let memory = Self {
            piece_bytes,
            free: Cell::new((0, 0)),
        };
        memory.take_piece(piece_bytes)?;
        Ok(memory)
    }

    fn take_piece(&self, bytes: usize) -> io::Result<()> {
        // SAFETY: a new mapping at an address that the kernel chooses.
        let mapped = unsafe {
            libc::mmap(
                null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let begin = mapped.expose_provenance();
        self.free.set((begin, begin + bytes));
        Ok(())
    }

    /// Returns that many zero bytes on their own cache lines.
    ///
    /// # Errors
    /// The system provides no memory.
    pub(crate) fn bytes(&self, bytes: usize) -> io::Result<NonNull<u8>> {
        self.carve(bytes.max(1).next_multiple_of(APART), APART)
    }

    fn carve(&self, bytes: usize, align: usize) -> io::Result<NonNull<u8>> {
        let fits = |(free, end): (usize, usize)| {
            let at = free.next_multiple_of(align);
            (at + bytes <= end).then_some((at, end))
        };
        let found = match fits(self.free.get()) {
            Some(found) => Some(found),
            None => {
                self.take_piece(bytes.next_multiple_of(4096).max(self.piece_bytes))?;
                fits(self.free.get())
            }
        };
        let (at, end) = found.ok_or(io::ErrorKind::OutOfMemory)?;
        self.free.set((at + bytes, end));
        NonNull::new(std::ptr::with_exposed_provenance_mut(at))
            .ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    /// Places a value, to be used by all processes that are forked afterwards. The value must not
    /// own anything, because there is no single time at which it could be dropped. It must not
    /// point to memory of one process only.
    pub(crate) fn place<T: Sync + 'static>(&self, value: T) -> &'static T {
        const { assert!(!needs_drop::<T>(), "nothing is ever dropped here") };
        let at = match self.carve(size_of::<T>().max(1), align_of::<T>()) {
            Ok(at) => at.cast::<T>(),
            Err(error) => fail("memory shared between processes", error),
        };
        // SAFETY: new, aligned memory of that size that nobody else has, in a
        // mapping that is never unmapped.
        unsafe {
            at.write(value);
            at.as_ref()
        }
    }

    /// As [`SharedMemory::place`], but no other value is in the same cache lines.
    pub(crate) fn place_apart<T: Sync + 'static>(&self, value: T) -> &'static T {
        &self.place(Apart(value)).0
    }

    /// Places values next to each other.
    pub(crate) fn place_all<T: Sync + 'static>(&self, values: Vec<T>) -> &'static [T] {
        const { assert!(!needs_drop::<T>(), "nothing is ever dropped here") };
        let bytes = size_of::<T>() * values.len();
        let at = match self.carve(bytes.max(1), align_of::<T>()) {
            Ok(at) => at.cast::<T>(),
            Err(error) => fail("memory shared between processes", error),
        };
        let count = values.len();
        // SAFETY: new, aligned memory of that size that nobody else has, in a
        // mapping that is never unmapped.
        unsafe {
            for (index, value) in values.into_iter().enumerate() {
                at.add(index).write(value);
            }
            std::slice::from_raw_parts(at.as_ptr(), count)
        }
    }
}

#[cfg(test)]
mod tests;
