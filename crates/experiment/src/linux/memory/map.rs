//! Maps a region.

use std::ffi::CStr;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};

use super::super::fail::{fail_last, made};
use crate::script::{Pages, RegionKind};

/// Huge pages need addresses that are multiples of their size.
const HUGE_BYTES: usize = 2 << 20;

/// A mapping, and the larger mapping that contains it where it had to be aligned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mapped {
    begin: *mut u8,
    all: *mut u8,
    all_bytes: usize,
}

impl Mapped {
    pub(super) fn begin(self) -> *mut u8 {
        self.begin
    }

    /// Unmaps it, whatever its kind: the kernel also detaches System V segments.
    pub(super) fn unmap(self) {
        // SAFETY: our own mapping; who has it has it no more.
        if unsafe { libc::munmap(self.all.cast(), self.all_bytes) } != 0 {
            fail_last("give memory back");
        }
    }
}

/// Address of a new mapping.
#[derive(Clone, Copy)]
struct Where {
    at: *mut libc::c_void,
    flag: i32,
}

const ANYWHERE: Where = Where {
    at: null_mut(),
    flag: 0,
};

/// Maps a region without touching it. No name of it remains anywhere.
pub(super) fn map(bytes: usize, kind: RegionKind, pages: Pages) -> io::Result<Mapped> {
    if pages != Pages::Huge {
        let begin = map_at(bytes, kind, ANYWHERE)?;
        let mapped = Mapped {
            begin,
            all: begin,
            all_bytes: bytes,
        };
        if pages == Pages::Small {
            advise(mapped, bytes, libc::MADV_NOHUGEPAGE)?;
        }
        return Ok(mapped);
    }
    let all_bytes = bytes.next_multiple_of(HUGE_BYTES) + HUGE_BYTES;
    let all = anonymous(all_bytes, libc::MAP_PRIVATE, libc::PROT_NONE, ANYWHERE)?;
    let begin = all.wrapping_add(all.align_offset(HUGE_BYTES));
    let mapped = Mapped {
        begin,
        all,
        all_bytes,
    };
    let here = Where {
        at: begin.cast(),
        flag: libc::MAP_FIXED,
    };
    let tried = map_at(bytes, kind, here).and_then(|_| advise(mapped, bytes, libc::MADV_HUGEPAGE));
    if let Err(error) = tried {
        mapped.unmap();
        return Err(error);
    }
    Ok(mapped)
}

fn advise(mapped: Mapped, bytes: usize, advice: i32) -> io::Result<()> {
    // SAFETY: our own mapping; the advice changes no content.
    let taken = unsafe { libc::madvise(mapped.begin.cast(), bytes, advice) };
    match made(taken) {
        // A kernel without huge pages provides small ones anyway.
        Err(error)
            if advice == libc::MADV_NOHUGEPAGE && error.raw_os_error() == Some(libc::EINVAL) =>
        {
            Ok(())
        }
        other => other.map(drop),
    }
}

fn map_at(bytes: usize, kind: RegionKind, place: Where) -> io::Result<*mut u8> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    match kind {
        RegionKind::Private | RegionKind::Static => {
            anonymous(bytes, libc::MAP_PRIVATE, access, place)
        }
        RegionKind::Shared => anonymous(bytes, libc::MAP_SHARED, access, place),
        RegionKind::Memfd => file(bytes, &memfd()?, place),
        RegionKind::Shm => file(bytes, &shm()?, place),
        RegionKind::SysV => system_v(bytes, place),
    }
}

fn anonymous(bytes: usize, sharing: i32, access: i32, place: Where) -> io::Result<*mut u8> {
    mmap(bytes, access, sharing | libc::MAP_ANONYMOUS, -1, place)
}

fn file(bytes: usize, fd: &OwnedFd, place: Where) -> io::Result<*mut u8> {
    // SAFETY: no pointers.
    made(unsafe { libc::ftruncate(fd.as_raw_fd(), bytes as libc::off_t) })?;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    mmap(bytes, access, libc::MAP_SHARED, fd.as_raw_fd(), place)
}

fn mmap(bytes: usize, access: i32, flags: i32, fd: RawFd, place: Where) -> io::Result<*mut u8> {
    // SAFETY: new memory where the kernel likes, or over our own reservation.
    let mapped = unsafe { libc::mmap(place.at, bytes, access, flags | place.flag, fd, 0) };
    if mapped == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(mapped.cast())
}

fn owned(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: if not negative it is new, and nobody else's.
    made(fd).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}

fn memfd() -> io::Result<OwnedFd> {
    // SAFETY: a constant name.
    owned(unsafe { libc::memfd_create(c"undertick".as_ptr(), libc::MFD_CLOEXEC) })
}

fn shm() -> io::Result<OwnedFd> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    // The name is on the stack, because a step allocates nothing.
    let mut name = [0_u8; 64];
    write!(
        &mut name[..63],
        "/undertick-{}-{}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    )?;
    let name = CStr::from_bytes_until_nul(&name).map_err(io::Error::other)?;
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
    // SAFETY: the name is live.
    let fd = owned(unsafe { libc::shm_open(name.as_ptr(), flags, 0o600) })?;
    // SAFETY: as above. Only the mapping keeps the memory from here.
    made(unsafe { libc::shm_unlink(name.as_ptr()) })?;
    Ok(fd)
}

fn system_v(bytes: usize, place: Where) -> io::Result<*mut u8> {
    // SAFETY: no pointers.
    let segment = made(unsafe { libc::shmget(libc::IPC_PRIVATE, bytes, libc::IPC_CREAT | 0o600) })?;
    let flag = if place.at.is_null() {
        0
    } else {
        libc::SHM_REMAP
    };
    // SAFETY: where the kernel likes, or over our own reservation.
    let attached = unsafe { libc::shmat(segment, place.at, flag) };
    let tried = (attached.addr() != usize::MAX)
        .then_some(attached)
        .ok_or_else(io::Error::last_os_error);
    // An attached segment stays until it is detached; one that is not attached is removed at once.
    // SAFETY: nothing is read or written.
    made(unsafe { libc::shmctl(segment, libc::IPC_RMID, null_mut()) })?;
    tried.map(<*mut libc::c_void>::cast)
}

/// Free bytes where `shm_open` creates its files.
pub(super) fn free_for_shm() -> Option<u64> {
    let mut found = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: a constant path; the kernel fills the local.
    let got = unsafe { libc::statvfs(c"/dev/shm".as_ptr(), found.as_mut_ptr()) };
    // SAFETY: filled, if it succeeded.
    let found = (got == 0).then(|| unsafe { found.assume_init() })?;
    Some(found.f_bavail as u64 * found.f_frsize as u64)
}
