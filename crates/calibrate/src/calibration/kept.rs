//! The calibrations kept from earlier: later recordings only check whether they still hold.
//!
//! There is one small file for each recording program and each clock, in the user's cache directory
//! (`$XDG_CACHE_HOME`, or `~/.cache`). It is valid until the machine reboots or the program
//! changes. Where there is no such directory nothing is kept.

use std::fs::{self, DirBuilder};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use undertick_clock::ClockId;
use undertick_format::input::{self, Kind};
use undertick_format::manifest::Calibration;

/// The circumstances of a measurement; it is valid under the same circumstances only.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Circumstances {
    undertick_version: String,
    /// The kernel's identifier of a boot; it changes when the machine is started.
    boot_id: String,
    clock: String,
    /// Whether kernel events were requested.
    with_kernel: bool,
    program: Program,
}

/// The file of the recording program.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Program {
    path: PathBuf,
    device: u64,
    inode: u64,
    bytes: u64,
    modified_ns: i128,
}

/// The contents of the file.
#[derive(Serialize, Deserialize)]
struct Contents {
    circumstances: Circumstances,
    calibration: Calibration,
}

/// The file in which costs measured under these circumstances are kept.
#[derive(Debug)]
pub struct Kept {
    file: PathBuf,
    circumstances: Circumstances,
}

impl Kept {
    /// The file for the running program; `None` where nothing can be kept.
    #[must_use]
    pub fn here(clock: ClockId, with_kernel: bool) -> Option<Self> {
        Self::in_directory(&cache_directory()?, clock, with_kernel)
    }

    fn in_directory(directory: &Path, clock: ClockId, with_kernel: bool) -> Option<Self> {
        let path = own_file()?;
        let about = fs::metadata(&path).ok()?;
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let circumstances = Circumstances {
            undertick_version: env!("CARGO_PKG_VERSION").to_owned(),
            boot_id: boot_id.trim().to_owned(),
            clock: clock.name().to_owned(),
            with_kernel,
            program: Program {
                device: about.dev(),
                inode: about.ino(),
                bytes: about.len(),
                modified_ns: i128::from(about.mtime()) * 1_000_000_000
                    + i128::from(about.mtime_nsec()),
                path,
            },
        };
        // A new version of the program at the same path replaces the file of the old one.
        let mut hasher = DefaultHasher::new();
        let c = &circumstances;
        (&c.program.path, &c.clock, c.with_kernel).hash(&mut hasher);
        let name = format!("calibration-{:016x}.json", hasher.finish());
        Some(Self {
            file: directory.join(name),
            circumstances,
        })
    }

    /// The calibration that this user measured earlier under the same circumstances; none that a
    /// busy machine has blurred.
    #[must_use]
    pub fn load(&self) -> Option<Calibration> {
        let about = fs::symlink_metadata(&self.file).ok()?;
        if !about.is_file() || about.uid() != rustix::process::geteuid().as_raw() {
            return None;
        }
        let text = input::text(&self.file, Kind::ABOUT).ok()?;
        let contents: Contents = serde_json::from_str(&text).ok()?;
        let is_sound = contents.circumstances == self.circumstances
            && super::check(&contents.calibration).is_ok()
            && !super::look::is_blurred(&contents.calibration)
            && !super::look::is_too_wide_to_keep(&contents.calibration);
        is_sound.then_some(contents.calibration)
    }

    /// Keeps the calibration for the next recording; if it cannot be written, the next recording
    /// measures anew.
    pub fn keep(&self, calibration: &Calibration) {
        let contents = Contents {
            circumstances: self.circumstances.clone(),
            calibration: calibration.clone(),
        };
        let _ = self.write(&contents);
    }

    /// The directory in which it is kept.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.file.parent().unwrap_or_else(|| Path::new("."))
    }

    /// Checks whether it could be kept.
    ///
    /// # Errors
    /// The directory cannot be made or written.
    pub fn probe(&self) -> std::io::Result<()> {
        self.new_file().map(drop)
    }

    /// Writes all of the file or nothing, since other processes may write it at the same time.
    fn write(&self, contents: &Contents) -> std::io::Result<()> {
        let mut new = self.new_file()?;
        serde_json::to_writer(&mut new, contents)?;
        new.flush()?;
        new.persist(&self.file)?;
        Ok(())
    }

    /// A new file in the directory, which is made if it is not there.
    fn new_file(&self) -> std::io::Result<tempfile::NamedTempFile> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(self.directory())?;
        tempfile::NamedTempFile::new_in(self.directory())
    }
}

/// The file that contains this code: a program, or a shared library.
fn own_file() -> Option<PathBuf> {
    let here = own_file as fn() -> Option<PathBuf> as usize;
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| {
        let range = line
            .split(' ')
            .next()
            .and_then(|range| range.split_once('-'));
        let number = |text| usize::from_str_radix(text, 16).ok();
        let range = range.and_then(|(from, to)| Some(number(from)?..number(to)?));
        range.is_some_and(|range| range.contains(&here))
    })?;
    line.get(line.find('/')?..).map(PathBuf::from)
}

/// The program's own directory in the user's cache directory.
fn cache_directory() -> Option<PathBuf> {
    let absolute = |path: PathBuf| path.is_absolute().then_some(path);
    let given = |name: &str| std::env::var_os(name).map(PathBuf::from).and_then(absolute);
    let cache = given("XDG_CACHE_HOME").or_else(|| Some(given("HOME")?.join(".cache")))?;
    Some(cache.join("undertick"))
}

#[cfg(test)]
mod tests;
