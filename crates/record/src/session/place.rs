//! Where a session lies, how much memory it may take, and removal of what killed recorders left.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use undertick_format::TraceError;
use undertick_memory::pool::Pool;
use undertick_memory::pool_map::PoolMap;
use undertick_memory::session_dir::SessionDir;
use undertick_memory::session_lock::SessionLock;
use undertick_ring::Overflow;
use undertick_ring::layout::pool::Shape;
use undertick_ring::layout::{SEGMENT_BYTES, pool};

use super::Settings;

/// Least memory with which a session is started, bytes.
const LEAST_BYTES: u64 = 4 * SEGMENT_BYTES;
/// Default budget of a session, bytes.
const DEFAULT_BUDGET_BYTES: u64 = 1 << 30;
/// Most rings at a time where files may not be large.
const FEW_HEADS: u32 = 64;

/// Makes the pool of a new session, as large as requested or as the file size limit allows
/// (`ulimit -f`). The limit is checked first, because a file that grows beyond it ends the
/// process.
pub(super) fn make_pool(dir: &SessionDir, budget_bytes: u64) -> Result<Pool, TraceError> {
    let wanted = (budget_bytes / SEGMENT_BYTES).clamp(2, u64::from(pool::MOST_SEGMENTS)) as u32;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
    let limit = limit.unwrap_or(u64::MAX);
    let fitting = |heads| {
        let least = Shape { heads, segments: 2 };
        let more = limit.checked_sub(least.bytes())? / (SEGMENT_BYTES + 16);
        let segments = u64::from(wanted).min(more) as u32;
        Shape::new(heads, segments.max(2))
    };
    let shape = [pool::MOST_HEADS, FEW_HEADS].into_iter().find_map(fitting);
    let shape = shape.ok_or_else(|| {
        TraceError::Recording(format!(
            "files of this process may have {limit} bytes, which is too little for rings (ulimit -f)"
        ))
    })?;
    let pool = Pool::fill(Arc::new(PoolMap::make(dir, shape)?));
    pool.map().open_to_programs();
    Ok(pool)
}

pub(super) fn waited_for(
    dir: &SessionDir,
    overflow: Overflow,
) -> Result<Option<SessionLock>, TraceError> {
    if overflow != Overflow::Block {
        return Ok(None);
    }
    let lock = SessionLock::open(dir)?;
    lock.share();
    Ok(Some(lock))
}

/// The directory in which a session will be made; `parent` is what its settings say.
pub(crate) fn parent_of(parent: Option<&Path>) -> PathBuf {
    chosen(parent).0
}

/// That directory, and why it is not /dev/shm although nothing else was asked for.
fn chosen(parent: Option<&Path>) -> (PathBuf, Option<String>) {
    let by_variable = || std::env::var_os("UNDERTICK_DIR").map(PathBuf::from);
    if let Some(asked) = parent.map(Path::to_owned).or_else(by_variable) {
        return (asked, None);
    }
    let shm = PathBuf::from("/dev/shm");
    let why = match free_bytes(&shm) {
        Ok(free) if free >= 16 * LEAST_BYTES => return (shm, None),
        Ok(free) => format!("/dev/shm has only {free} bytes free"),
        Err(_) => "/dev/shm cannot be used".to_owned(),
    };
    (std::env::temp_dir(), Some(why))
}

pub(super) fn place(
    settings: &Settings,
    warnings: &mut Vec<String>,
) -> Result<(PathBuf, u64), TraceError> {
    let (parent, why) = chosen(settings.parent.as_deref());
    warnings.extend(why.map(|why| {
        format!(
            "{why}: the rings are in {} instead, which may be slower (in a container: --shm-size)",
            parent.display()
        )
    }));
    let free = free_bytes(&parent)?;
    Ok((parent, free))
}

pub(super) fn budget(settings: &Settings, parent: &Path, free: u64) -> Result<u64, TraceError> {
    let short = |needed: u64, what: &str| {
        TraceError::Recording(format!(
            "{}: {free} bytes free, {needed} needed for {what}: free some, give less with --ring or --budget, \
             or another directory in UNDERTICK_DIR",
            parent.display()
        ))
    };
    if free < LEAST_BYTES {
        return Err(short(LEAST_BYTES, "the smallest session"));
    }
    if settings.ring_bytes > free {
        return Err(short(settings.ring_bytes, "one ring"));
    }
    match settings.budget_bytes {
        Some(asked) if asked > free => Err(short(asked, "the budget")),
        Some(asked) if asked < LEAST_BYTES => Err(TraceError::Usage(format!(
            "--budget {asked}: at least {LEAST_BYTES} bytes are needed"
        ))),
        Some(asked) => Ok(asked),
        None => Ok(DEFAULT_BUDGET_BYTES.min(free / 2).max(LEAST_BYTES)),
    }
}

fn free_bytes(parent: &Path) -> Result<u64, TraceError> {
    let stat = rustix::fs::statvfs(parent)
        .map_err(|e| TraceError::io(parent, "cannot be used for rings")(e.into()))?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Removes what a killed recorder has left: the directory, and the memory of rings that a program
/// still has mapped.
pub(super) fn remove_left_behind(path: &Path, owner: u32) {
    let is_named_so =
        (path.file_name()).is_some_and(|name| name.as_encoded_bytes().starts_with(b"undertick-"));
    let Some(dir) = SessionDir::open(path).ok().filter(|_| is_named_so) else {
        return;
    };
    // A running recorder holds the lock.
    if dir.owner() != Some(owner) || !dir.lock() {
        return;
    }
    if let Ok(pool) = PoolMap::open(&dir, true) {
        pool.empty();
    }
    dir.remove_all();
}
