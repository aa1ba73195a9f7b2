//! The workload that `undertick demo` records: SQLite (C, through
//! `undertick.h`) inserting and looking up from two threads, and zstd (Rust,
//! through the `undertick` crate) compressing beside it, all in one process
//! and one trace.

use std::ffi::{CString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::thread;
use std::time::{Duration, Instant};

// Links the bundled SQLite that the driver calls.
use libsqlite3_sys as _;

unsafe extern "C" {
    fn undertick_demo_fill(path: *const c_char, rows: u32) -> c_int;
    fn undertick_demo_insert(path: *const c_char, keys: u32, rows: u32, seconds: f64) -> c_int;
    fn undertick_demo_lookup(path: *const c_char, keys: u32, seconds: f64) -> c_int;
}

const COMPRESS: u16 = 20;
const DECOMPRESS: u16 = 21;
const COMPRESSED_BYTES: u16 = 22;

/// Rows of the table.
const KEYS: u32 = 100_000;
/// Inserts in a transaction.
const ROWS: u32 = 100;
/// Rest between two blocks: with two threads in SQLite, two cores are busy.
const REST: Duration = Duration::from_millis(4);

/// Runs the workload for that long.
///
/// # Errors
/// SQLite or the disk refused something.
pub fn run(duration: Duration) -> Result<(), String> {
    let dir = tempfile::tempdir().map_err(|e| format!("no temporary directory: {e}"))?;
    let path = CString::new(dir.path().join("demo.sqlite").as_os_str().as_bytes())
        .map_err(|e| e.to_string())?;
    let checked = |code: c_int| {
        if code == 0 {
            Ok(())
        } else {
            Err(format!("SQLite: error {code}"))
        }
    };
    // SAFETY: here and below the path ends with zero and outlives the call.
    checked(unsafe { undertick_demo_fill(path.as_ptr(), KEYS) })?;
    let seconds = duration.as_secs_f64();
    thread::scope(|scope| {
        // SAFETY: as above.
        let insert =
            scope.spawn(|| unsafe { undertick_demo_insert(path.as_ptr(), KEYS, ROWS, seconds) });
        // SAFETY: as above.
        let lookup = scope.spawn(|| unsafe { undertick_demo_lookup(path.as_ptr(), KEYS, seconds) });
        let zstd = compress(duration);
        checked(insert.join().unwrap_or(1))?;
        checked(lookup.join().unwrap_or(1))?;
        zstd
    })
}

fn compress(duration: Duration) -> Result<(), String> {
    let start = Instant::now();
    undertick::thread_name("zstd");
    undertick::name!(COMPRESS, "compress");
    undertick::name!(DECOMPRESS, "decompress");
    undertick::name!(COMPRESSED_BYTES, "compressed bytes");
    let mut block = vec![0u8; 64 * 1024];
    let mut state = 1u32;
    while start.elapsed() < duration {
        thread::sleep(REST);
        for word in block.chunks_exact_mut(4) {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            word.copy_from_slice(&(state & 0x0f0f_00ff).to_le_bytes());
        }
        let packed = {
            let _span = undertick::span!(COMPRESS);
            zstd::bulk::compress(&block, 1).map_err(|e| e.to_string())?
        };
        undertick::event64!(COMPRESSED_BYTES, packed.len() as u64);
        let _span = undertick::span!(DECOMPRESS);
        let unpacked = zstd::bulk::decompress(&packed, block.len()).map_err(|e| e.to_string())?;
        if unpacked != block {
            return Err("zstd gave back something else".to_owned());
        }
    }
    Ok(())
}
