//! The kernel's trace buffers, in a separate instance.
//!
//! **Method.** An instance is a private set of buffers and switches. Its clock is the trace clock
//! itself where the kernel offers it (`x86-tsc`, `mono_raw`, `mono`). The child that becomes the
//! program writes its process id to `set_event_pid` and switches tracing on. The kernel then
//! follows its threads and children, so the trace contains nothing of the recorder itself. The
//! buffers are read in binary form, because the text form cuts times to microseconds.
//!
//! **Caveats.** The kernel uses the process ids of the first pid namespace, so in another one
//! this cannot be used. Tracing costs each event 0.1 to 0.2 us, a wakeup about 1 us.

mod remove;

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};
use undertick_clock::ClockId;

use super::decode::{Decoder, EVENTS, Event, Over, VECTORS};
use super::format::{Format, PageLayout};
use super::raw::{Record, RecordKind};

/// Start of our instances' names; the process id and its start time follow.
const PREFIX: &str = "undertick-";
/// Size of the buffers of all CPUs together, and smallest and largest size of one, KiB.
const ALL_BUFFERS_KIB: usize = 128 << 10;
const LEAST_BUFFER_KIB: usize = 512;
const MOST_BUFFER_KIB: usize = 4 << 10;
/// Inode of the first pid namespace, a constant of the kernel's interface.
const FIRST_PID_NAMESPACE: u64 = 0xEFFF_FFFC;
/// Most pages read from a CPU in a round: twice what its buffer holds.
const MOST_PAGES: usize = 2 * MOST_BUFFER_KIB / 4;

/// Most searches for threads that were created during the previous search.
const MOST_LOOKS: u32 = 20;

/// An instance that is being recorded from.
#[derive(Debug)]
pub(super) struct Tracefs {
    decoder: Decoder,
    buffers: Vec<(i16, File)>,
    page: Vec<u8>,
    /// `set_event_pid` and `tracing_on`, for the child.
    switches: Option<(File, File)>,
    /// Removed last, when none of its files is open any more.
    instance: Instance,
    clock: ClockName,
    /// Available kinds of events that it does not record.
    pub(super) missing: Vec<String>,
}

/// A clock of the kernel's trace buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClockName {
    name: &'static str,
    /// It is not the trace clock.
    pub(super) mapped: bool,
}

impl ClockName {
    /// Returns the best of the offered clocks.
    fn best(trace: ClockId, offered: &str) -> Result<Self, String> {
        let same = match trace {
            ClockId::Tsc => "x86-tsc",
            ClockId::Monotonic => "mono",
            ClockId::MonotonicRaw => "mono_raw",
            _ => "",
        };
        let has = |name: &str| {
            let mut words = offered.split_whitespace();
            words.any(|word| word.trim_matches(['[', ']']) == name)
        };
        [(same, false), ("mono_raw", true)]
            .into_iter()
            .find(|(name, _)| has(name))
            .map(|(name, mapped)| Self { name, mapped })
            .ok_or_else(|| format!("none of its clocks can be used ({})", offered.trim()))
    }
}

impl Tracefs {
    /// Makes an instance and sets it up; recording starts when the child says so
    /// ([`Self::child_announces`]).
    ///
    /// # Errors
    /// Why it cannot be used, in plain words.
    pub(super) fn open(trace: ClockId, cpus: &[u32]) -> Result<Self, String> {
        let namespace = fs::metadata("/proc/self/ns/pid").map(|about| about.ino());
        if !matches!(namespace, Ok(FIRST_PID_NAMESPACE)) {
            return Err(
                "in a container with process numbers of its own: the kernel's trace knows others"
                    .to_owned(),
            );
        }
        remove::wait();
        let (root, mount) = root()?;
        remove_stale(&root.join("instances"));
        let instance = Instance::make(&root, mount)?;
        let dir = instance.dir.clone();
        let offered = read(&dir.join("trace_clock"))?;
        let clock = ClockName::best(trace, &offered)?;
        write(&dir.join("tracing_on"), "0")?;
        write(&dir.join("trace_clock"), clock.name)?;
        let buffer_kib =
            (ALL_BUFFERS_KIB / cpus.len().max(1)).clamp(LEAST_BUFFER_KIB, MOST_BUFFER_KIB);
        write(&dir.join("buffer_size_kb"), &buffer_kib.to_string())?;
        write(&dir.join("options/event-fork"), "1")?;
        // Names of processes are not needed, and keeping them costs.
        let _ = write(&dir.join("options/record-cmd"), "0");
        let (decoder, missing) = switch_on(&dir, clock.mapped)?;
        let buffers = cpus
            .iter()
            .map(|&cpu| {
                let path = dir.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
                let mut options = OpenOptions::new();
                options.read(true).custom_flags(libc::O_NONBLOCK);
                let file = options.open(&path).map_err(|e| refused(&path, &e))?;
                Ok((cpu as i16, file))
            })
            .collect::<Result<_, String>>()?;
        let for_child = |name: &str| {
            let path = dir.join(name);
            let file = OpenOptions::new().write(true).open(&path);
            file.map_err(|e| refused(&path, &e))
        };
        Ok(Self {
            page: vec![0; decoder.page_bytes()],
            decoder,
            buffers,
            switches: Some((for_child("set_event_pid")?, for_child("tracing_on")?)),
            instance,
            clock,
            missing,
        })
    }

    pub(super) const fn clock(&self) -> ClockName {
        self.clock
    }

    /// The files to which the child writes its process id, and then a 1.
    pub(super) fn child_announces(&self) -> Option<(RawFd, RawFd)> {
        let (pid, on) = self.switches.as_ref()?;
        Some((pid.as_raw_fd(), on.as_raw_fd()))
    }

    /// The file in which 0 stops the recording of events and 1 starts it.
    pub(super) fn switch(&self) -> Option<File> {
        let path = self.instance.dir.join("tracing_on");
        OpenOptions::new().write(true).open(path).ok()
    }

    /// Records the threads of a running process from here on. Records at `ticks` describe them,
    /// as the kernel describes threads that are created later.
    pub(super) fn follow(&mut self, pid: i32, ticks: u64, mut take: impl FnMut(Record)) {
        let Some((pids, on)) = &mut self.switches else {
            return;
        };
        let mut known = Vec::new();
        // Repeated until no thread was created by one that was not followed yet.
        for _ in 0..MOST_LOOKS {
            let mut new = super::threads_of(pid);
            new.retain(|tid| !known.contains(tid));
            if new.is_empty() {
                break;
            }
            let text: Vec<String> = new.iter().map(ToString::to_string).collect();
            // If it fails the recording has no evidence from there, and says so.
            let _ = pids.write_all(text.join(" ").as_bytes());
            known.extend(new);
        }
        take(Record {
            pid,
            tid: pid,
            ..Record::new(RecordKind::Exec, ticks)
        });
        for tid in known.into_iter().filter(|tid| *tid != pid) {
            take(Record {
                pid,
                tid,
                a: 1,
                ..Record::new(RecordKind::NewTask, ticks)
            });
        }
        let _ = on.write_all(b"1");
    }

    /// Passes on the records that have arrived since; false if there are more.
    pub(super) fn drain(&mut self, mut take: impl FnMut(Record)) -> bool {
        let mut all = true;
        for (cpu, file) in &mut self.buffers {
            all &= (0..MOST_PAGES).any(|_| match file.read(&mut self.page) {
                Ok(bytes) if bytes > 0 => {
                    self.decoder.page(*cpu, &self.page[..bytes], &mut take);
                    false
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => false,
                _ => true,
            });
        }
        all
    }

    /// Stops recording.
    pub(super) fn stop(&mut self) {
        let _ = write(&self.instance.dir.join("tracing_on"), "0");
    }
}

/// Waits until the instances of earlier recordings of this process are removed.
pub(super) fn wait_for_removals() {
    remove::wait();
}

impl Drop for Tracefs {
    fn drop(&mut self) {
        self.stop();
        // An open instance cannot be removed.
        self.buffers.clear();
        self.switches = None;
    }
}

/// Enables all events that exist; returns those that are missing.
fn switch_on(dir: &Path, mapped: bool) -> Result<(Decoder, Vec<String>), String> {
    let events = dir.join("events");
    let header = events.join("header_page");
    let layout = PageLayout::parse(&read(&header)?)
        .ok_or_else(|| format!("{}: not understood", header.display()))?;
    let format = |group: &str, name: &str| {
        let text = read(&events.join(group).join(name).join("format")).ok()?;
        Format::parse(&text)
    };
    let mut decoder = format("sched", "sched_switch")
        .and_then(|common| Decoder::new(layout, &common, mapped))
        .ok_or("this kernel's trace has no sched_switch")?;
    let vectors = VECTORS.iter().flat_map(|name| {
        [
            (format!("{name}_entry"), Event::Enter(Over::Vector)),
            (format!("{name}_exit"), Event::Leave(Over::Vector)),
        ]
    });
    let vectors = vectors.map(|(name, event)| ("irq_vectors", name, event, &["vector"][..]));
    let all = (EVENTS.iter())
        .map(|&(group, name, event, fields)| (group, name.to_owned(), event, fields))
        .chain(vectors);
    let mut missing = Vec::new();
    for (group, name, event, fields) in all {
        let known = format(group, &name).is_some_and(|of| decoder.add(event, &of, fields));
        let on = events.join(group).join(&name).join("enable");
        if known && write(&on, "1").is_ok() {
            continue;
        }
        if matches!(event, Event::Switch | Event::Exec | Event::NewTask) {
            return Err(format!("this kernel's trace has no {name}"));
        }
        missing.push(name);
    }
    Ok((decoder, missing))
}

/// A directory under `instances`, ours.
#[derive(Debug)]
struct Instance {
    dir: PathBuf,
    /// A private mount, where there was none.
    mount: Option<OwnedFd>,
}

impl Instance {
    fn make(root: &Path, mount: Option<OwnedFd>) -> Result<Self, String> {
        let own = std::process::id();
        let started = started(own).unwrap_or(0);
        // One process may record twice at the same time.
        for attempt in 0..100 {
            let name = format!("{PREFIX}{own}-{started}-{attempt}");
            let dir = root.join("instances").join(name);
            match fs::create_dir(&dir) {
                Ok(()) => return Ok(Self { dir, mount }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(refused(&dir, &error)),
            }
        }
        Err("a hundred instances of this process are there".to_owned())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // No other process sees a private mount.
        if self.mount.is_some() || !remove::in_another_process(&self.dir) {
            let _ = fs::remove_dir(&self.dir);
        }
    }
}

/// Removes instances of recorders that no longer run.
fn remove_stale(instances: &Path) {
    for entry in fs::read_dir(instances).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(owner) = name.to_str().and_then(owner) else {
            continue;
        };
        if started(owner.0) != Some(owner.1) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Returns process id and start time from an instance's name.
fn owner(name: &str) -> Option<(u32, u64)> {
    let mut words = name.strip_prefix(PREFIX)?.split('-');
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

/// Returns when a process was started, in the kernel's ticks since boot. Together with its id
/// this identifies a process uniquely.
fn started(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may contain anything.
    let after = text.rsplit_once(')')?.1;
    after.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// Returns where tracefs is mounted, or a private mount if it is not.
fn root() -> Result<(PathBuf, Option<OwnedFd>), String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    if let Some(point) = mounted(&mounts) {
        return Ok((point, None));
    }
    let failed = |error: rustix::io::Errno| {
        if error == rustix::io::Errno::PERM {
            "tracefs is not mounted, and only root may (mount -t tracefs nodev /sys/kernel/tracing)"
                .to_owned()
        } else {
            format!("tracefs cannot be mounted: {error}")
        }
    };
    let context = rustix::mount::fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC).map_err(failed)?;
    rustix::mount::fsconfig_create(&context).map_err(failed)?;
    let mount = rustix::mount::fsmount(
        &context,
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::empty(),
    )
    .map_err(failed)?;
    let path = format!("/proc/self/fd/{}", mount.as_raw_fd());
    Ok((path.into(), Some(mount)))
}

/// Returns the mount point of a tracefs: `ID PARENT DEV ROOT POINT OPTIONS ... - TYPE ...`.
fn mounted(mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (about, kind) = line.split_once(" - ")?;
        let point = about.split(' ').nth(4)?;
        // An escaped name is not supported.
        (kind.starts_with("tracefs ") && !point.contains('\\')).then(|| point.into())
    })
}

/// Reads a file at once: some of these files deliver all their content to the first read or
/// never.
fn read(path: &Path) -> Result<String, String> {
    let failed = |error| refused(path, &error);
    let mut file = File::open(path).map_err(failed)?;
    let (mut bytes, mut used) = (vec![0; 1 << 16], 0);
    loop {
        match file.read(&mut bytes[used..]).map_err(failed)? {
            0 => break,
            more => used += more,
        }
    }
    Ok(String::from_utf8_lossy(&bytes[..used]).into_owned())
}

/// Writes a file in one write, as switches require.
fn write(path: &Path, text: &str) -> Result<(), String> {
    let mut file = (OpenOptions::new().write(true).open(path)).map_err(|e| refused(path, &e))?;
    file.write_all(text.as_bytes())
        .map_err(|error| refused(path, &error))
}

fn refused(path: &Path, error: &std::io::Error) -> String {
    if error.kind() == ErrorKind::PermissionDenied {
        "not allowed: it takes root, or permission on /sys/kernel/tracing".to_owned()
    } else {
        format!("{}: {error}", path.display())
    }
}

#[cfg(test)]
mod tests;
