//! Complete transfers of bytes through a file descriptor.

use std::io::{self, IoSlice};
use std::os::fd::RawFd;

use super::fail::{again_if_interrupted, fail, fail_last};

/// Writes all bytes, in pieces where the kernel accepts only a part.
#[inline(always)]
pub(super) fn write_all(fd: RawFd, mut bytes: &[u8]) {
    loop {
        // SAFETY: the bytes are live.
        let written =
            again_if_interrupted(|| unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) });
        match written {
            Some(written) if written >= bytes.len() => return,
            Some(written) => bytes = &bytes[written..],
            None => fail_last("send"),
        }
    }
}

/// Writes two byte strings completely, one after the other.
pub(super) fn write_both(fd: RawFd, first: &[u8], second: &[u8]) {
    let mut both = [IoSlice::new(first), IoSlice::new(second)];
    let mut left = &mut both[..];
    IoSlice::advance_slices(&mut left, 0);
    while !left.is_empty() {
        // SAFETY: `IoSlice` is laid out like `iovec`; the slices are live.
        let written = again_if_interrupted(|| unsafe {
            libc::writev(fd, left.as_ptr().cast(), left.len() as i32)
        });
        match written {
            Some(written) => IoSlice::advance_slices(&mut left, written),
            None => fail_last("send"),
        }
    }
}

/// Reads until the buffer is full.
#[inline(always)]
pub(super) fn read_all(fd: RawFd, mut bytes: &mut [u8]) {
    while !bytes.is_empty() {
        // SAFETY: the bytes are live and may be written.
        let read = again_if_interrupted(|| unsafe {
            libc::read(fd, bytes.as_mut_ptr().cast(), bytes.len())
        });
        match read {
            Some(0) => fail("receive", "the other end is closed"),
            Some(read) => bytes = &mut bytes[read..],
            None => fail_last("receive"),
        }
    }
}

/// The bytes of words.
#[inline(always)]
pub(super) fn bytes_of(words: &[u64]) -> &[u8] {
    // SAFETY: words without padding are bytes; as long as they live.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}

/// The bytes of words, for writing.
#[inline(always)]
pub(super) fn bytes_of_mut(words: &mut [u64]) -> &mut [u8] {
    // SAFETY: as above, and any bytes are words.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size_of_val(words)) }
}

/// A pipe that spawned programs do not inherit.
pub(super) fn pipe() -> io::Result<(io::PipeReader, io::PipeWriter)> {
    io::pipe().map_err(|error| super::fail::because("pipe", &error))
}
