//! Exchanges of stamps between two hosts, as `undertick sync` stores them.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use undertick_format::TraceError;
use undertick_format::identity::ClockIdentity;
use undertick_format::input::{self, Kind};
use undertick_format::manifest::Manifest;

/// The file's own name for its kind.
const KIND: &str = "undertick-sync";
/// Version of the file.
/// The `schema_version` of such a file.
pub const VERSION: u32 = 1;
/// The directory of exchange files in a trace.
pub const SYNC_DIR: &str = "sync";

/// One of the two hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    /// Node name.
    pub name: String,
    /// The clock of its stamps.
    pub clock: ClockIdentity,
    /// Exact rate of that clock as a fraction: ticks per second = numerator / denominator.
    pub ticks_per_second_numerator: u64,
    /// See `ticks_per_second_numerator`.
    pub ticks_per_second_denominator: u64,
}

/// All exchanges of one run of `undertick sync`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SyncFile {
    /// Always `undertick-sync`.
    pub kind: String,
    /// Always 1.
    pub schema_version: u32,
    /// Version of Undertick that wrote it.
    pub undertick_version: String,
    /// Unix time of the start, nanoseconds.
    pub started_unix_ns: i64,
    /// The host that asked.
    pub here: Side,
    /// The host that answered.
    pub there: Side,
    /// The address of the host that answered.
    pub address: String,
    /// Questions sent.
    pub sent: u64,
    /// The four stamps of each answered question: sent here, received there, answered there,
    /// answer received here. Each is in ticks of the clock of its host.
    pub exchanges: Vec<[i64; 4]>,
}

impl SyncFile {
    pub(super) fn new(here: Side, there: Side, address: String) -> Self {
        let started = std::time::SystemTime::now()
            .duration_since(std::time::SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            kind: KIND.to_owned(),
            schema_version: VERSION,
            undertick_version: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix_ns: i64::try_from(started.as_nanos()).unwrap_or(i64::MAX),
            here,
            there,
            address,
            sent: 0,
            exchanges: Vec::new(),
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or is not a file of exchanges.
    pub fn read(path: &Path) -> Result<Self, TraceError> {
        let text = input::text(path, Kind::EXCHANGES)?;
        let file: Self = serde_json::from_str(&text).map_err(|e| {
            TraceError::damaged(path, format!("not a file of `undertick sync`: {e}"))
        })?;
        if (file.kind.as_str(), file.schema_version) != (KIND, VERSION) {
            let found = format!("{:?} version {}", file.kind, file.schema_version);
            return Err(TraceError::damaged(
                path,
                format!("{found}, expected {KIND:?} version {VERSION}, as `undertick sync` writes"),
            ));
        }
        for side in [&file.here, &file.there] {
            if side.ticks_per_second_numerator == 0 || side.ticks_per_second_denominator == 0 {
                return Err(TraceError::damaged(path, "the rate of a clock is zero"));
            }
        }
        Ok(file)
    }

    /// Writes the file atomically.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn write(&self, path: &Path) -> Result<(), TraceError> {
        let text = serde_json::to_string(self).map_err(|e| TraceError::damaged(path, e))?;
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(".new");
        let temporary = PathBuf::from(temporary);
        std::fs::write(&temporary, text + "\n")
            .map_err(TraceError::io(&temporary, "cannot write"))?;
        std::fs::rename(&temporary, path).map_err(TraceError::io(path, "cannot replace"))
    }

    /// Writes the file into a trace, under a name that is free there.
    ///
    /// # Errors
    /// There is no such trace, or the disk refuses.
    pub fn write_into(&self, trace: &Path) -> Result<PathBuf, TraceError> {
        let dir = trace.join(SYNC_DIR);
        std::fs::create_dir_all(&dir).map_err(TraceError::io(&dir, "cannot make"))?;
        let path = (1..)
            .map(|i| dir.join(format!("{}-{i}.json", self.started_unix_ns)))
            .find(|path| !path.exists())
            .unwrap_or_else(|| dir.join("sync.json"));
        self.write(&path)?;
        Ok(path)
    }

    /// Returns all files in a trace, sorted by name.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub fn of_trace(trace: &Path) -> Result<Vec<(PathBuf, Self)>, TraceError> {
        let dir = trace.join(SYNC_DIR);
        let Ok(entries) = std::fs::read_dir(&dir) else {
            return Ok(Vec::new());
        };
        let mut paths: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|e| e == "json"))
            .collect();
        paths.sort();
        let read = |path: PathBuf| Self::read(&path).map(|file| (path, file));
        paths.into_iter().map(read).collect()
    }

    /// Smallest and median round trip without the time of answering, ns of the host that asked.
    /// `None` without exchanges.
    #[must_use]
    pub fn round_trips_ns(&self) -> Option<(f64, f64)> {
        let ns = |side: &Side| {
            1e9 * side.ticks_per_second_denominator as f64 / side.ticks_per_second_numerator as f64
        };
        let (here, there) = (ns(&self.here), ns(&self.there));
        let mut all: Vec<f64> = (self.exchanges.iter())
            .map(|[sent, received, answered, back]| {
                back.wrapping_sub(*sent) as f64 * here
                    - answered.wrapping_sub(*received) as f64 * there
            })
            .collect();
        all.sort_unstable_by(f64::total_cmp);
        Some((*all.first()?, all[all.len() / 2]))
    }
}

impl Side {
    /// Whether the stamps are of the clock of this host's trace. This is certain if the trace
    /// says which boot it is of; otherwise node and clock decide.
    #[must_use]
    pub fn is_of(&self, manifest: &Manifest) -> bool {
        match manifest.hosts.first() {
            Some(host) if host.clock.boot_id.is_some() => self.clock == host.clock,
            _ => self.name == manifest.host.name && self.clock.clock == manifest.clock.name,
        }
    }
}

#[cfg(test)]
mod tests;
