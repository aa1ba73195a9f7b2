//! What a process has mapped for execution.

use std::ops::Range;
use std::path::PathBuf;

/// After the path of a file that was removed or replaced.
const DELETED: &str = " (deleted)";

/// A mapping with code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) addresses: Range<u64>,
    /// Place of its first byte in the file.
    pub(crate) offset: u64,
    pub(crate) backing: Backing,
}

/// What is mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Backing {
    /// A file, by device and inode, at a path.
    File {
        identity: (u64, u64),
        path: PathBuf,
        /// There is no file at its path now, or another one.
        is_deleted: bool,
    },
    /// The kernel's code for all programs.
    Vdso,
    /// Memory without a file: code made while the program runs.
    Memory,
}

/// Parses `/proc/PID/maps`; lines that are no mapping of code are left out.
pub(crate) fn parse(text: &str) -> Vec<Mapping> {
    text.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<Mapping> {
    // addresses, permissions, offset, device, inode, and a path that may contain spaces
    let mut words = line.splitn(6, ' ');
    let (from, to) = words.next()?.split_once('-')?;
    let permissions = words.next()?;
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let offset = hex(words.next()?)?;
    let (major, minor) = words.next()?.split_once(':')?;
    let device = hex(major)? << 32 | hex(minor)?;
    let inode: u64 = words.next()?.parse().ok()?;
    let path = words.next().unwrap_or("").trim_start();
    let addresses = hex(from)?..hex(to)?;
    if !permissions.contains('x') || addresses.is_empty() {
        return None;
    }
    let backing = match path {
        // Nothing runs there that calls anything.
        "[vsyscall]" => return None,
        "[vdso]" => Backing::Vdso,
        path if inode != 0 && path.starts_with('/') => Backing::File {
            identity: (device, inode),
            path: path.strip_suffix(DELETED).unwrap_or(path).into(),
            is_deleted: path.ends_with(DELETED),
        },
        _ => Backing::Memory,
    };
    Some(Mapping {
        addresses,
        offset,
        backing,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines as `proc(5)` describes them.
    const MAPS: &str = "\
55d0c6a00000-55d0c6a02000 r--p 00000000 08:01 1311 /usr/bin/a program
55d0c6a02000-55d0c6a07000 r-xp 00002000 08:01 1311                       /usr/bin/a program
7f2a10000000-7f2a10021000 rwxp 00000000 00:00 0 
7f2a20000000-7f2a20001000 r-xp 00000000 00:01 77 /memfd:code (deleted)
7ffd5b1f0000-7ffd5b1f2000 r-xp 00000000 00:00 0                          [vdso]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
nonsense
9-1 r-xp 00000000 08:01 1311 /backwards
";

    #[test]
    fn code_is_distinguished_by_where_it_is_from() {
        let found = parse(MAPS);
        let of: Vec<&Backing> = found.iter().map(|mapping| &mapping.backing).collect();
        let file = |device: u64, inode: u64, path: &str| Backing::File {
            identity: (device, inode),
            path: path.into(),
            is_deleted: path.starts_with("/memfd"),
        };
        assert_eq!(
            of,
            [
                &file(8 << 32 | 1, 1311, "/usr/bin/a program"),
                &Backing::Memory,
                &file(1, 77, "/memfd:code"),
                &Backing::Vdso,
            ]
        );
        assert_eq!(found[0].addresses, 0x55d0_c6a0_2000..0x55d0_c6a0_7000);
        assert_eq!(found[0].offset, 0x2000);
    }
}
