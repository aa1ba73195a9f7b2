//! The snapshots that rules have made, and the removal of the oldest.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use undertick_format::files::{EVENTS_FILE, KERNEL_FILE, MANIFEST_FILE, RAW_FILE, STACKS_FILE};

use crate::trace_dir::TraceDir;

/// The files of a complete snapshot.
const FILES: [&str; 5] = [
    MANIFEST_FILE,
    EVENTS_FILE,
    KERNEL_FILE,
    RAW_FILE,
    STACKS_FILE,
];

/// A snapshot that was made.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    trace: PathBuf,
    /// Device and inode number: another directory at its path is not ours to remove.
    identity: (u64, u64),
    bytes: u64,
}

impl Kept {
    pub(super) fn at(trace: &Path) -> Option<Self> {
        let dir = TraceDir::open(trace).ok()?;
        Some(Self {
            trace: trace.to_owned(),
            identity: dir.identity().ok()?,
            bytes: FILES.iter().map(|file| dir.length(file)).sum(),
        })
    }

    /// Removes the snapshot; leaves all of it where somebody has put another file.
    fn remove(&self) -> bool {
        let dir = TraceDir::open(&self.trace).ok();
        let Some(dir) = dir.filter(|dir| dir.identity().ok() == Some(self.identity)) else {
            return false;
        };
        let is_ours = |file: std::io::Result<std::fs::DirEntry>| {
            let name = file.map(|file| file.file_name());
            name.is_ok_and(|name| FILES.iter().any(|file| name == *file))
        };
        if !std::fs::read_dir(&self.trace).is_ok_and(|mut files| files.all(is_ours)) {
            return false;
        }
        for file in FILES {
            dir.remove(file);
        }
        std::fs::remove_dir(&self.trace).is_ok()
    }
}

/// Removes the oldest snapshots until all are within the limit; the newest stays. Those that cannot
/// be removed are the user's from then on.
pub(super) fn remove_oldest(kept: &mut VecDeque<Kept>, limit: u64) -> Vec<PathBuf> {
    let mut removed = Vec::new();
    let sum = |sum: u64, kept: &Kept| sum.saturating_add(kept.bytes);
    let mut all = kept.iter().fold(0, sum);
    while all > limit
        && kept.len() > 1
        && let Some(oldest) = kept.pop_front()
    {
        all = all.saturating_sub(oldest.bytes);
        if oldest.remove() {
            removed.push(oldest.trace);
        }
    }
    removed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_snapshots_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let trace = |name: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir(&path).unwrap();
            std::fs::write(path.join("manifest.json"), [b' '; 100]).unwrap();
            path
        };
        let traces = ["a-1.ut", "a-2.ut", "a-3.ut", "a-4.ut"].map(trace);
        let mut kept: VecDeque<_> = traces
            .iter()
            .map(|trace| Kept::at(trace).unwrap())
            .collect();
        assert_eq!(remove_oldest(&mut kept, 400), [] as [PathBuf; 0]);
        assert_eq!(remove_oldest(&mut kept, 399), traces[..1]);
        assert!(!traces[0].exists() && traces[1].exists());
        // Another directory has taken the place of the second; somebody's file is in the third. The
        // newest stays, although it is larger than the limit.
        std::fs::rename(&traces[1], dir.path().join("moved.ut")).unwrap();
        std::fs::create_dir(&traces[1]).unwrap();
        std::fs::write(traces[1].join("manifest.json"), "{}").unwrap();
        std::fs::write(traces[2].join("notes.txt"), "mine").unwrap();
        assert_eq!(remove_oldest(&mut kept, 1), [] as [PathBuf; 0]);
        let files = [1, 2, 3].map(|trace| (trace, "manifest.json"));
        for (trace, file) in files.into_iter().chain([(2, "notes.txt")]) {
            assert!(traces[trace].join(file).exists(), "{trace} {file}");
        }
        assert_eq!(kept.len(), 1);
    }
}
