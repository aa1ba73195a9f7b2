//! Writes the collector's blocks in a separate thread, so that a slow disk fills the rings but
//! does not stop the draining. It reports its progress, so that space is given back to a ring's
//! writer only for what is in the file.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use undertick_format::block;

/// Size of the buffers in which blocks are passed to the writing thread.
pub(crate) const BUFFER_BYTES: usize = 1 << 20;
/// Most buffers that may wait for the disk; with more data, the rings grow instead.
const BUFFERS: usize = 32;
/// Buffers that are reused for the next blocks. The memory of the others is released once the
/// disk has caught up.
const SPARE: usize = 2;
/// Pause between two checks of the disk's progress.
const LOOK_EVERY: Duration = Duration::from_micros(100);
/// Space left for the manifest when the disk is full.
const MANIFEST_ROOM_BYTES: u64 = 64 * 1024;

/// The raw file, being written.
pub(crate) struct Disk {
    full: SyncSender<Vec<u8>>,
    empty: Receiver<Vec<u8>>,
    state: Arc<WriterState>,
    /// Bytes passed to the writing thread.
    handed: u64,
    thread: JoinHandle<Result<(), std::io::Error>>,
}

/// What the writing thread reports.
#[derive(Default)]
struct WriterState {
    failed: AtomicBool,
    /// Bytes that were written.
    written: AtomicU64,
}

impl Disk {
    /// Starts to write at the end of `file`, which has `length` bytes.
    pub(crate) fn start(mut file: File, length: u64) -> Self {
        let (full, to_write) = sync_channel::<Vec<u8>>(BUFFERS);
        let (give_back, empty) = sync_channel(SPARE);
        let state = Arc::new(WriterState::default());
        let shared = Arc::clone(&state);
        let thread = std::thread::spawn(move || {
            let mut result = Ok(());
            let mut whole = 0;
            for mut buffer in to_write {
                if result.is_ok() {
                    match file.write_all(&buffer) {
                        Ok(()) => {
                            whole += buffer.len() as u64;
                            // Partner: `written`. Nothing reads the file by it, but it decides
                            // what is given back to a writer.
                            shared.written.store(whole, Ordering::Release);
                        }
                        Err(error) => {
                            shared.failed.store(true, Ordering::Relaxed);
                            let _ = keep_whole_blocks(&file, length + whole, &buffer);
                            result = Err(error);
                        }
                    }
                }
                buffer.clear();
                let _ = give_back.try_send(buffer);
            }
            result
        });
        Self {
            full,
            empty,
            state,
            handed: 0,
            thread,
        }
    }

    pub(crate) fn works(&self) -> bool {
        !self.state.failed.load(Ordering::Relaxed)
    }

    /// Bytes that would remain if the recorder were killed.
    pub(crate) fn written(&self) -> u64 {
        self.state.written.load(Ordering::Acquire)
    }

    /// Whether there is nothing to write.
    pub(crate) fn rests(&self) -> bool {
        self.written() >= self.handed
    }

    pub(crate) fn empty_buffer(&self) -> Vec<u8> {
        self.empty
            .try_recv()
            .unwrap_or_else(|_| Vec::with_capacity(BUFFER_BYTES + (1 << 18)))
    }

    pub(crate) fn write(&mut self, buffer: Vec<u8>) {
        self.handed += buffer.len() as u64;
        let _ = self.full.send(buffer);
    }

    /// Waits until everything passed on is written, or nothing more can be.
    pub(crate) fn wait(&self) {
        while !self.rests() && self.works() && !self.thread.is_finished() {
            std::thread::sleep(LOOK_EVERY);
        }
    }

    pub(crate) fn finish(self) -> Result<(), std::io::Error> {
        drop(self.full);
        self.thread.join().unwrap_or(Ok(()))
    }
}

/// After the disk took only a part of `buffer`, which began at `start`: keeps the whole blocks,
/// except for the space that the manifest will need.
fn keep_whole_blocks(file: &File, start: u64, buffer: &[u8]) -> Result<(), std::io::Error> {
    let taken = file.metadata()?.len().saturating_sub(start);
    let room = taken.saturating_sub(MANIFEST_ROOM_BYTES);
    let mut whole = 0;
    while let Some((length, _)) = block::extent(&buffer[whole..]) {
        if (whole + length) as u64 > room {
            break;
        }
        whole += length;
    }
    file.set_len(start + whole as u64)
}
