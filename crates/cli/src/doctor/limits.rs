//! The limits of this process and of its control group.

use std::fs;
use std::path::{Path, PathBuf};

/// Bytes of memory that a cgroup may use, and those that it uses and cannot give back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    pub most_bytes: u64,
    pub used_bytes: u64,
}

/// Number of CPUs that this process may use, by its affinity and its control group.
pub fn cpus_allowed() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Number of files that this process may have open; `None`: without a limit.
pub fn open_files() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

/// The narrowest memory limit of this process's control groups; `None` without one, or where the
/// kernel does not say.
pub fn memory() -> Option<MemoryLimit> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let interfaces = [Interface::V2, Interface::V1];
    let limits = interfaces.into_iter().filter_map(|interface| {
        let group = interface.group(&groups, &mounts)?;
        interface.narrowest(group)
    });
    limits.min_by_key(|limit| limit.most_bytes)
}

/// The versions of the kernel's control groups.
#[derive(Clone, Copy, Debug)]
enum Interface {
    V1,
    V2,
}

impl Interface {
    /// The files with the limit and with what is used.
    const fn files(self) -> [&'static str; 2] {
        match self {
            Self::V1 => ["memory.limit_in_bytes", "memory.usage_in_bytes"],
            Self::V2 => ["memory.max", "memory.current"],
        }
    }

    /// The directory of this process's group. `groups` has a line `ID:CONTROLLERS:GROUP` for each
    /// hierarchy, `mounts` has `ID PARENT DEV ROOT POINT OPTIONS ... - TYPE SOURCE OPTIONS`.
    fn group(self, groups: &str, mounts: &str) -> Option<PathBuf> {
        let has_memory = |list: &str| list.split(',').any(|one| one == "memory");
        let group = groups.lines().find_map(|line| {
            let mut words = line.splitn(3, ':');
            let (id, controllers, group) = (words.next()?, words.next()?, words.next()?);
            let is_it = match self {
                Self::V1 => has_memory(controllers),
                Self::V2 => id == "0" && controllers.is_empty(),
            };
            is_it.then_some(group)
        })?;
        mounts.lines().find_map(|line| {
            let (about, kind) = line.split_once(" - ")?;
            let is_it = match self {
                Self::V1 => kind.starts_with("cgroup ") && has_memory(kind.rsplit(' ').next()?),
                Self::V2 => kind.starts_with("cgroup2 "),
            };
            let mut words = about.split(' ').skip(3);
            let (root, point) = (words.next()?, words.next()?);
            // A container may see its own group as the root.
            let inside = group.strip_prefix(root).unwrap_or(group);
            is_it.then(|| Path::new(point).join(inside.trim_start_matches('/')))
        })
    }

    /// The narrowest limit of a group and of those around it, by which it is bounded as well.
    fn narrowest(self, mut group: PathBuf) -> Option<MemoryLimit> {
        let mut narrowest: Option<MemoryLimit> = None;
        while group.join("cgroup.procs").exists() {
            let limits = [narrowest, self.limit(&group)].into_iter().flatten();
            narrowest = limits.min_by_key(|limit| limit.most_bytes);
            if !group.pop() {
                break;
            }
        }
        narrowest
    }

    /// The limit of a group itself.
    fn limit(self, group: &Path) -> Option<MemoryLimit> {
        let [most, used] = self.files().map(|name| {
            let text = fs::read_to_string(group.join(name)).ok()?;
            text.trim().parse::<u64>().ok() // "max" is no number
        });
        let most_bytes = most.filter(|most| *most < UNLIMITED)?;
        let cached = self.reclaimable(group).unwrap_or(0);
        Some(MemoryLimit {
            most_bytes,
            used_bytes: used.unwrap_or(0).saturating_sub(cached),
        })
    }

    /// The part of what is used that the kernel gives back when memory is short: files that nothing
    /// has read for a time.
    fn reclaimable(self, group: &Path) -> Option<u64> {
        let text = fs::read_to_string(group.join("memory.stat")).ok()?;
        let key = match self {
            Self::V1 => "total_inactive_file ",
            Self::V2 => "inactive_file ",
        };
        text.lines()
            .find_map(|line| line.strip_prefix(key))?
            .trim()
            .parse()
            .ok()
    }
}

/// Version 1 has a number near 2^63 where there is no limit.
const UNLIMITED: u64 = 1 << 62;

#[cfg(test)]
mod tests {
    use super::*;

    const GROUPS: &str = "4:cpuset,memory:/a/b\n1:name=systemd:/x\n0::/user.slice/c\n";
    const MOUNTS: &str = "25 1 0:22 / /proc rw - proc proc rw\n\
        26 1 0:23 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
        27 1 0:24 /a /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory\n\
        30 1 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    #[test]
    fn the_group_lies_below_the_mount_of_its_version() {
        let found = |interface: Interface| interface.group(GROUPS, MOUNTS).unwrap();
        let v2 = Path::new("/sys/fs/cgroup/unified/user.slice/c");
        assert_eq!(found(Interface::V2), v2);
        // The mount begins at /a.
        assert_eq!(found(Interface::V1), Path::new("/sys/fs/cgroup/memory/b"));
        assert_eq!(Interface::V2.group("4:memory:/old\n", MOUNTS), None);
        assert_eq!(Interface::V1.group("0::/new\n", MOUNTS), None);
    }

    #[test]
    fn the_narrowest_limit_of_all_groups_around_counts() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("outer/inner");
        fs::create_dir_all(&inner).unwrap();
        assert_eq!(Interface::V2.narrowest(inner.clone()), None);
        let write = |group: &str, name: &str, text: &str| {
            fs::write(dir.path().join(group).join(name), text).unwrap();
        };
        for group in ["outer", "outer/inner"] {
            write(group, "cgroup.procs", "1\n");
            write(group, "memory.max", "max\n");
        }
        assert_eq!(Interface::V2.narrowest(inner.clone()), None);
        write("outer", "memory.max", "268435456\n");
        write("outer", "memory.current", "5096\n");
        write(
            "outer",
            "memory.stat",
            "anon 4000\nfile 1096\ninactive_file 1000\n",
        );
        write("outer/inner", "memory.max", "536870912\n");
        let narrow = MemoryLimit {
            most_bytes: 256 << 20,
            used_bytes: 4096,
        };
        assert_eq!(Interface::V2.narrowest(inner.clone()), Some(narrow));
        write(
            "outer/inner",
            "memory.limit_in_bytes",
            "9223372036854771712\n",
        );
        assert_eq!(Interface::V1.narrowest(inner), None);
    }
}
