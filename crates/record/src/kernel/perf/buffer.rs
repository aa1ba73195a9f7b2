//! Buffers that perf writes its records to, one for each CPU.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings as abi;
use rustix::mm::{MapFlags, ProtFlags};

use super::{HEADER_BYTES, parse, record_type, refused};
use crate::kernel::raw::{Record, RecordKind};
use crate::kernel::sampling::Sampling;

/// Opens the events of all threads on each CPU, in a buffer for each CPU, all of one size: as large as
/// memory may be locked for, between these sizes.
pub(super) fn open_buffers(
    cpus: &[u32],
    threads: &[i32],
    (mut bytes, min_bytes): (usize, usize),
    open: &mut dyn FnMut(u32, i32) -> Result<Vec<(OwnedFd, bool)>, String>,
) -> Result<Vec<Buffer>, String> {
    'again: loop {
        let mut buffers = Vec::with_capacity(cpus.len());
        for &cpu in cpus {
            let mut events = Vec::new();
            for &thread in threads {
                events.extend(open(cpu, thread)?);
            }
            let mut events = events.into_iter();
            let Some((event, counts_lost)) = events.next() else {
                continue;
            };
            let (page, mapped_bytes) = match map(&event, bytes) {
                Ok(map) => map,
                Err(_) if bytes > min_bytes => {
                    bytes /= 2;
                    continue 'again;
                }
                Err(error) => return Err(not_mapped(&error)),
            };
            let mut buffer = Buffer::new(event, counts_lost, cpu, page, mapped_bytes);
            for (event, _) in events {
                buffer.share(event)?;
            }
            buffers.push(buffer);
        }
        return Ok(buffers);
    }
}

fn not_mapped(error: &io::Error) -> String {
    format!(
        "no memory for its buffers may be locked ({error}): raise ulimit -l or \
         /proc/sys/kernel/perf_event_mlock_kb, or is another recording running?"
    )
}

/// Maps `bytes`, a power of two, of the event's buffer, after its control page.
fn map(event: &OwnedFd, bytes: usize) -> io::Result<(*mut abi::perf_event_mmap_page, usize)> {
    let page_bytes = rustix::param::page_size();
    let mapped_bytes = page_bytes + bytes.max(page_bytes);
    // SAFETY: a new mapping at an address of the kernel's choice.
    let base = unsafe {
        rustix::mm::mmap(
            null_mut(),
            mapped_bytes,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED,
            event.as_fd(),
            0,
        )
    }?;
    Ok((base.cast(), mapped_bytes))
}

/// One CPU's event and its buffer.
#[derive(Debug)]
pub(super) struct Buffer {
    event: OwnedFd,
    /// Events of other threads, which write here too.
    others: Vec<OwnedFd>,
    counts_lost: bool,
    pub(super) cpu: i16,
    page: *mut abi::perf_event_mmap_page,
    mapped_bytes: usize,
    data: *const u8,
    pub(super) bytes: usize,
    /// Losses that records reported.
    pub(super) reported: u64,
}

// SAFETY: the mapping belongs to the buffer alone and is accessed through it.
unsafe impl Send for Buffer {}

impl Buffer {
    fn new(
        event: OwnedFd,
        counts_lost: bool,
        cpu: u32,
        page: *mut abi::perf_event_mmap_page,
        mapped_bytes: usize,
    ) -> Self {
        let page_bytes = rustix::param::page_size();
        Self {
            event,
            others: Vec::new(),
            counts_lost,
            cpu: cpu as i16,
            page,
            mapped_bytes,
            // SAFETY: the data follow the first page of the mapping.
            data: unsafe { page.cast::<u8>().add(page_bytes) },
            bytes: mapped_bytes - page_bytes,
            reported: 0,
        }
    }

    /// Makes another event write here too.
    fn share(&mut self, event: OwnedFd) -> Result<(), String> {
        // SAFETY: both are perf events of ours.
        let shared = unsafe {
            perf_event_open_sys::ioctls::SET_OUTPUT(event.as_raw_fd(), self.event.as_raw_fd())
        };
        if shared < 0 {
            return Err(refused(&io::Error::last_os_error()));
        }
        self.others.push(event);
        Ok(())
    }

    pub(super) fn drain(
        &mut self,
        mapped: bool,
        mut stacks: Option<&mut Sampling>,
        take: &mut impl FnMut(Record),
    ) {
        // SAFETY: both words are in the mapped page and aligned; the kernel
        // stores the head, we the tail.
        let (head, tail) = unsafe {
            (
                AtomicU64::from_ptr(&raw mut (*self.page).data_head),
                AtomicU64::from_ptr(&raw mut (*self.page).data_tail),
            )
        };
        let end = head.load(Ordering::Acquire);
        let mut at = tail.load(Ordering::Relaxed);
        let mut record = vec![0; 64];
        while at < end {
            self.copy(at, &mut record[..HEADER_BYTES]);
            let size = usize::from(u16::from_ne_bytes([record[6], record[7]]));
            if size < HEADER_BYTES || size as u64 > end - at {
                at = end; // not what the kernel writes
                break;
            }
            if size > record.len() {
                record.resize(size, 0);
            }
            self.copy(at, &mut record[..size]);
            let found = match (&mut stacks, record_type(&record)) {
                (Some(stacks), abi::PERF_RECORD_SAMPLE) => stacks.take(&record[..size]),
                (Some(stacks), abi::PERF_RECORD_COMM | abi::PERF_RECORD_MMAP2) => {
                    stacks.note_code(&record[..size]);
                    None
                }
                _ => parse(&record[..size]),
            };
            if let Some(found) = found {
                if found.kind == RecordKind::PerfLost {
                    self.reported += found.payload as u64;
                }
                take(Record { mapped, ..found });
            }
            at += size as u64;
        }
        tail.store(at, Ordering::Release);
    }

    /// Copies from position `at` of the stream, wrapping around the end of the buffer.
    fn copy(&self, at: u64, into: &mut [u8]) {
        let start = (at % self.bytes as u64) as usize;
        let first = into.len().min(self.bytes - start);
        // SAFETY: both pieces are within the data, and the kernel does not
        // write there before the tail has moved on.
        unsafe {
            std::ptr::copy_nonoverlapping(self.data.add(start), into.as_mut_ptr(), first);
            std::ptr::copy_nonoverlapping(
                self.data,
                into.as_mut_ptr().add(first),
                into.len() - first,
            );
        }
    }

    /// Records lost since the events were opened, where the kernel counts them.
    pub(super) fn lost(&self) -> u64 {
        let lost = |event: &OwnedFd| {
            let mut words = [0; 16];
            match File::from(event.try_clone().ok()?).read(&mut words) {
                Ok(16) => Some(u64::from_ne_bytes(words[8..].try_into().expect("8 bytes"))),
                _ => None,
            }
        };
        if !self.counts_lost {
            return 0;
        }
        std::iter::once(&self.event)
            .chain(&self.others)
            .filter_map(lost)
            .sum()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`; nothing borrows it.
        let _ = unsafe { rustix::mm::munmap(self.page.cast(), self.mapped_bytes) };
    }
}
