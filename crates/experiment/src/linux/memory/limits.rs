//! Limits of this machine, checked before any memory is allocated: a process that touches promised
//! memory that is not available is killed.

use std::fs;
use std::io;

use super::map::free_for_shm;
use crate::script::{Pages, RegionKind};

const HUGE_SETTINGS: &str = "/sys/kernel/mm/transparent_hugepage";

/// Checks whether such a region is available.
pub(super) fn check(bytes: u64, kind: RegionKind, pages: Pages) -> io::Result<()> {
    if let Some(free) = available_bytes().filter(|free| *free < bytes) {
        return Err(refuse(&format!(
            "needs {} MiB, {} MiB of memory are available: make it smaller",
            mib(bytes),
            mib(free)
        )));
    }
    if kind == RegionKind::Shm {
        let free = free_for_shm()
            .ok_or_else(|| refuse("there is no /dev/shm: take memfd, or mount a tmpfs there"))?;
        if free < bytes {
            return Err(refuse(&format!(
                "needs {} MiB, /dev/shm has {} MiB free: take memfd, or give it more (mount -o \
                 remount,size=SIZE /dev/shm; for a container --shm-size=SIZE)",
                mib(bytes),
                mib(free)
            )));
        }
    }
    if pages == Pages::Huge {
        check_huge(
            kind,
            &chosen("enabled"),
            &chosen("shmem_enabled"),
            &huge_of_shm(),
        )?;
    }
    Ok(())
}

/// Checks whether the kernel would provide huge pages. It accepts the advice in any case.
fn check_huge(kind: RegionKind, private: &str, shared: &str, shm: &str) -> io::Result<()> {
    let (file, setting, gives) = match kind {
        RegionKind::Private | RegionKind::Static => ("enabled", private, "madvise"),
        _ => ("shmem_enabled", shared, "advise"),
    };
    if setting.is_empty() {
        return Err(refuse("this kernel has no transparent huge pages"));
    }
    let mount_gives = kind == RegionKind::Shm && !matches!(shm, "" | "never");
    let may = match setting {
        "force" => true,
        "deny" => false,
        _ if kind == RegionKind::Shm => mount_gives,
        "never" => false,
        _ => true,
    };
    if may {
        return Ok(());
    }
    let mend = if kind == RegionKind::Shm && setting != "deny" {
        "mount -o remount,huge=advise /dev/shm".to_owned()
    } else {
        format!("echo {gives} > {HUGE_SETTINGS}/{file}")
    };
    Err(refuse(&format!(
        "huge pages are switched off for this kind of memory ({file}: {setting}); as root: {mend}"
    )))
}

fn refuse(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, why)
}

fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

/// The word in brackets; empty if there is no such file.
fn chosen(file: &str) -> String {
    let text = fs::read_to_string(format!("{HUGE_SETTINGS}/{file}")).unwrap_or_default();
    let word = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    word.map(|(word, _)| word.to_owned()).unwrap_or_default()
}

/// The mount option of /dev/shm: the word after `huge=`; empty if there is none.
fn huge_of_shm() -> String {
    let text = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let options = text.lines().rev().find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        (fields.next() == Some("/dev/shm")).then(|| fields.nth(1).unwrap_or_default())
    });
    let word = options
        .unwrap_or_default()
        .split(',')
        .find_map(|option| option.strip_prefix("huge="));
    word.unwrap_or_default().to_owned()
}

/// Memory available without swapping, as the kernel estimates it, bytes.
fn available_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests;
