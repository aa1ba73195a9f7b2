//! Programs that were started without a session, and the attach pages through which a recorder
//! reaches them.
//!
//! **Method.** Each executable and library that is linked with the recorder has a file without a
//! name (a memfd): a control page and what follows it (docs/format.md, section 10). It is opened
//! as one of the program's descriptors under `/proc`, which the kernel allows to the program's
//! user and to root. A lock on it says that a recorder holds it. The kernel releases the lock if
//! the recorder is killed.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use rustix::fs::FlockOperation;
use undertick_format::TraceError;
use undertick_ring::layout::{self, attach_page, control};

use crate::control_page::{ControlPage, map};

/// A program to which a recorder has attached; its attach pages are held.
#[derive(Debug)]
pub struct Program {
    /// User and group as which it runs.
    pub owner: (u32, u32),
    /// Its command line, word by word.
    pub command: Vec<String>,
    /// Readable when it has ended.
    ended: OwnedFd,
}

/// One attach page, held.
#[derive(Debug)]
pub struct AttachPage {
    page: ControlPage,
    base: *mut u8,
    /// Holds the lock.
    file: File,
}

// SAFETY: the mapping is accessed through atomics only.
unsafe impl Send for AttachPage {}

impl Program {
    /// Finds a program and takes its attach pages. `place` is the directory in which its session lies, or
    /// will lie.
    ///
    /// # Errors
    /// There is no such program, it is not ours, is not linked with the recorder, is in a session
    /// already, or does not see that directory as we do.
    pub fn find(pid: i32, place: &Path) -> Result<(Self, Vec<AttachPage>), TraceError> {
        let proc = PathBuf::from(format!("/proc/{pid}"));
        let gone = || {
            TraceError::Usage(format!(
                "--pid {pid}: no such process; give the number that ps or pgrep shows"
            ))
        };
        let id = rustix::process::Pid::from_raw(pid).ok_or_else(gone)?;
        let ended = rustix::process::pidfd_open(id, rustix::process::PidfdFlags::empty()).map_err(
            |error| match error {
                rustix::io::Errno::SRCH => gone(),
                rustix::io::Errno::INVAL | rustix::io::Errno::NOENT => TraceError::Usage(format!(
                    "--pid {pid}: a thread, not a process; give the process's number (ps -o pid)"
                )),
                _ => TraceError::Recording(format!("--pid {pid}: cannot be watched: {error}")),
            },
        )?;
        let about = fs::metadata(&proc).map_err(|_| gone())?;
        let files = attach_page_files(pid, &proc)?;
        same_place(pid, &proc, place)?;
        let attach_pages = (files.into_iter())
            .filter_map(|file| AttachPage::open(pid, file).transpose())
            .collect::<Result<Vec<_>, _>>()?;
        if attach_pages.is_empty() {
            return Err(no_attach_page(pid, &proc, "", None));
        }
        let program = Self {
            owner: (about.uid(), about.gid()),
            command: command(&proc),
            ended,
        };
        Ok((program, attach_pages))
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        has_ended(&self.ended)
    }
}

/// Whether the process of a pidfd has ended.
pub fn has_ended(process: &OwnedFd) -> bool {
    {
        let mut fds = [rustix::event::PollFd::new(
            process,
            rustix::event::PollFlags::IN,
        )];
        let now = rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        rustix::event::poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
    }
}

/// The words with which a program was started; `None`: it does not exist.
#[must_use]
pub fn command_of(pid: i32) -> Option<Vec<String>> {
    Some(command(Path::new(&format!("/proc/{pid}")))).filter(|words| !words.is_empty())
}

fn command(proc: &Path) -> Vec<String> {
    let bytes = fs::read(proc.join("cmdline")).unwrap_or_default();
    let words = bytes.split(|byte| *byte == 0);
    let mut words: Vec<String> = words
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    words.pop();
    words
}

/// The files of its attach pages.
fn attach_page_files(pid: i32, proc: &Path) -> Result<Vec<File>, TraceError> {
    let not_ours = |error: &io::Error| {
        TraceError::Usage(format!(
            "--pid {pid}: not yours to record ({error}); run undertick as the program's user or as root \
             (a program that may not be looked into, as after a change of its user, needs root)"
        ))
    };
    let entries = fs::read_dir(proc.join("fd")).map_err(|e| not_ours(&e))?;
    let link = format!("/memfd:{} (deleted)", attach_page::NAME);
    let mut files = Vec::<(u64, File)>::new();
    let mut add = |path: &Path| -> io::Result<()> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let about = file.metadata()?;
        let is_new = files.iter().all(|(inode, _)| *inode != about.ino());
        if about.len() == control::BYTES + attach_page::BYTES && is_new {
            files.push((about.ino(), file));
        }
        Ok(())
    };
    for entry in entries.flatten() {
        if fs::read_link(entry.path()).is_ok_and(|to| to == Path::new(&link)) {
            add(&entry.path()).map_err(|e| not_ours(&e))?;
        }
    }
    let maps = fs::read_to_string(proc.join("maps")).unwrap_or_default();
    let mut closed = None;
    for line in maps.lines().filter(|line| line.ends_with(&link)) {
        // A program that closes all its descriptors still has the mapping, which
        // root can open.
        let range = line.split(' ').next().unwrap_or_default();
        if let Err(error) = add(&proc.join("map_files").join(range)) {
            closed = Some(error);
        }
    }
    if files.is_empty() {
        return Err(no_attach_page(pid, proc, &maps, closed));
    }
    Ok(files.into_iter().map(|(_, file)| file).collect())
}

/// Why a program has no attach page.
fn no_attach_page(pid: i32, proc: &Path, maps: &str, closed: Option<io::Error>) -> TraceError {
    let in_session = |line: &&str| {
        let path = line.trim_end_matches(" (deleted)");
        path.contains("/undertick-") && path.ends_with(&format!("/{}", layout::CONTROL_FILE))
    };
    let state = fs::read_to_string(proc.join("stat")).unwrap_or_default();
    let is_zombie = (state.rsplit_once(") ")).is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']));
    TraceError::Usage(if is_zombie {
        format!("--pid {pid}: has ended")
    } else if let Some(error) = closed {
        format!(
            "--pid {pid}: it has closed the descriptor by which a recorder comes in ({error}); run undertick as root"
        )
    } else if maps.lines().any(|line| in_session(&line)) {
        format!(
            "--pid {pid}: it was started by `undertick record`, which records it; to attach later, start it by itself"
        )
    } else {
        format!(
            "--pid {pid}: not linked with the recorder; build it with undertick.h or the undertick crate (not with \
             UNDERTICK_DISABLE or UNDERTICK_NO_ATTACH), and start it without UNDERTICK_ATTACH=0"
        )
    })
}

/// Checks that the session's files have the same name for the program and for us: it sees the files that
/// we see, or has at least that directory at the same path, as a container that shares it. Its processes
/// must have the same numbers.
fn same_place(pid: i32, proc: &Path, place: &Path) -> Result<(), TraceError> {
    let ours = Path::new("/proc/self");
    let is_same = |name: &str| {
        let link = |proc: &Path| fs::read_link(proc.join(name)).ok();
        link(proc) == link(ours)
    };
    let identity = |path: &Path| {
        let about = fs::metadata(path).ok()?;
        Some((about.dev(), about.ino()))
    };
    let place = std::path::absolute(place).unwrap_or_else(|_| place.to_owned());
    let theirs = proc
        .join("root")
        .join(place.strip_prefix("/").unwrap_or(&place));
    let shares = || {
        is_same("ns/pid") && identity(&place).is_some_and(|ours| identity(&theirs) == Some(ours))
    };
    if (is_same("ns/mnt") && is_same("root")) || shares() {
        return Ok(());
    }
    Err(TraceError::Usage(format!(
        "--pid {pid}: it sees other files than this shell (a container, or chroot); run undertick in there, or in a \
         container that shares its process namespace and {}",
        place.display()
    )))
}

impl AttachPage {
    /// Opens an attach page; `None` if it is not ready yet, or no longer valid.
    fn open(pid: i32, file: File) -> Result<Option<Self>, TraceError> {
        let path = PathBuf::from(format!("/proc/{pid}/fd"));
        let bytes = (control::BYTES + attach_page::BYTES) as usize;
        let page = map(&file, bytes).map_err(|e| TraceError::io(&path, "cannot map")(e.into()))?;
        let attach_page = Self {
            // SAFETY: just mapped, unmapped when the attach page is dropped.
            page: unsafe { ControlPage::at(page, bytes) },
            base: page.wrapping_add(control::BYTES as usize),
            file,
        };
        // SAFETY: within the mapping, aligned.
        let magic =
            unsafe { AtomicU64::from_ptr(attach_page.base.add(attach_page::OFF_MAGIC).cast()) };
        let magic = magic.load(Ordering::Acquire);
        if magic == 0 {
            return Ok(None);
        }
        let version = attach_page
            .u32_at(attach_page::OFF_VERSION)
            .load(Ordering::Relaxed);
        if magic != attach_page::MAGIC || version != layout::VERSION {
            return Err(TraceError::Usage(format!(
                "--pid {pid}: built with another version of the recorder; use the undertick of that version, or rebuild it"
            )));
        }
        if rustix::fs::flock(
            attach_page.file.as_fd(),
            FlockOperation::NonBlockingLockExclusive,
        )
        .is_err()
        {
            let holder = attach_page
                .u32_at(attach_page::OFF_HOLDER)
                .load(Ordering::Relaxed);
            return Err(TraceError::Usage(format!(
                "--pid {pid}: being recorded already, by process {holder}; wait for its end, or stop it with Ctrl-C there"
            )));
        }
        Ok(Some(attach_page))
    }

    /// The control page.
    pub const fn control_page(&self) -> &ControlPage {
        &self.page
    }

    /// Maps the control page once more.
    pub fn map_control_page(&self) -> Result<ControlPage, TraceError> {
        let again = ControlPage::map(&self.file);
        let path = Path::new(attach_page::NAME);
        let mut page = again.map_err(|e| TraceError::io(path, "cannot map")(e.into()))?;
        page.serial = self.page.serial;
        Ok(page)
    }

    fn u32_at(&self, offset: usize) -> &AtomicU32 {
        assert!(offset < attach_page::OFF_DIR && offset.is_multiple_of(4));
        // SAFETY: within the mapping, aligned.
        unsafe { AtomicU32::from_ptr(self.base.add(offset).cast()) }
    }

    fn byte(&self, offset: usize) -> &AtomicU8 {
        assert!((offset as u64) < attach_page::BYTES);
        // SAFETY: within the mapping.
        unsafe { AtomicU8::from_ptr(self.base.add(offset)) }
    }

    fn bytes(&self, from: usize, length: usize) -> Vec<u8> {
        (from..from + length)
            .map(|at| self.byte(at).load(Ordering::Relaxed))
            .collect()
    }

    /// The directory of a session that was not ended because its recorder was killed.
    pub fn left_behind(&self) -> Option<PathBuf> {
        let bytes = self.bytes(attach_page::OFF_DIR, attach_page::MAX_DIR_BYTES);
        let text = bytes.split(|byte| *byte == 0).next()?;
        (!text.is_empty()).then(|| PathBuf::from(String::from_utf8_lossy(text).into_owned()))
    }

    /// Stores where the session is, once its control page is filled: from here on `on` holds the
    /// session's number above [`control::SERIAL_SHIFT`].
    ///
    /// # Errors
    /// The directory's name is too long.
    pub fn enter(&mut self, dir: &Path) -> Result<(), TraceError> {
        let name = dir.as_os_str().as_encoded_bytes();
        if name.len() >= attach_page::MAX_DIR_BYTES {
            return Err(TraceError::damaged(
                dir,
                "too long a name; give another directory in UNDERTICK_DIR",
            ));
        }
        let serial = self.u32_at(attach_page::OFF_SERIAL);
        let next = (serial.load(Ordering::Relaxed) + 1) & (u32::MAX >> control::SERIAL_SHIFT);
        serial.store(next.max(1), Ordering::Relaxed);
        self.page.serial = next.max(1) << control::SERIAL_SHIFT;
        self.u32_at(attach_page::OFF_HOLDER)
            .store(std::process::id(), Ordering::Relaxed);
        for (i, byte) in name.iter().chain(&[0]).enumerate() {
            self.byte(attach_page::OFF_DIR + i)
                .store(*byte, Ordering::Release);
        }
        Ok(())
    }

    /// Takes the place of a recorder that was killed, in the session in `dir`; returns whether
    /// the attach page leads there.
    pub fn reenter(&mut self, dir: &Path) -> bool {
        if self.left_behind().is_none_or(|left| left != dir) {
            return false;
        }
        let serial = self.u32_at(attach_page::OFF_SERIAL).load(Ordering::Relaxed);
        self.page.serial = serial << control::SERIAL_SHIFT;
        self.u32_at(attach_page::OFF_HOLDER)
            .store(std::process::id(), Ordering::Relaxed);
        true
    }

    /// Ends the session: no more rings can be made there.
    pub fn leave(&self) {
        self.byte(attach_page::OFF_DIR).store(0, Ordering::Release);
        self.u32_at(attach_page::OFF_HOLDER)
            .store(0, Ordering::Relaxed);
    }

    /// Returns the names that the program gave, and how many found no room.
    pub fn names(&self) -> (Vec<u8>, u32) {
        let used = self
            .u32_at(attach_page::OFF_NAMES_USED)
            .load(Ordering::Acquire) as usize;
        let names = self.bytes(attach_page::OFF_NAMES, used.min(attach_page::NAMES_BYTES));
        (
            names,
            self.u32_at(attach_page::OFF_NAMES_LOST)
                .load(Ordering::Relaxed),
        )
    }
}

impl Drop for AttachPage {
    fn drop(&mut self) {
        let bytes = (control::BYTES + attach_page::BYTES) as usize;
        let base = self.base.wrapping_sub(control::BYTES as usize);
        self.page.end();
        // SAFETY: mapped in `open`; nothing borrows it any more.
        let _ = unsafe { rustix::mm::munmap(base.cast(), bytes) };
    }
}
