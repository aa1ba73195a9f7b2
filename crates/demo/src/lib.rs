//! The workload that `undertick demo` records: SQLite (C, through
//! `undertick.h`) inserting and looking up from two threads, and zstd (Rust,
//! through the `undertick` crate) compressing beside it, all in one process
//! and one trace.

use std::ffi::{CString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::thread;

// Links the bundled SQLite that the driver calls.
use libsqlite3_sys as _;

unsafe extern "C" {
    fn undertick_demo_insert(path: *const c_char, transactions: u32, rows: u32) -> c_int;
    fn undertick_demo_lookup(path: *const c_char, lookups: u32) -> c_int;
}

const COMPRESS: u16 = 20;
const DECOMPRESS: u16 = 21;
const COMPRESSED_BYTES: u16 = 22;

/// How much of everything is done.
#[derive(Clone, Copy, Debug)]
pub struct Amount {
    /// Transactions of [`Amount::rows`] inserts.
    pub transactions: u32,
    /// Inserts in a transaction.
    pub rows: u32,
    /// Look-ups.
    pub lookups: u32,
    /// Blocks compressed.
    pub blocks: u32,
}

impl Default for Amount {
    /// About two seconds on two cores.
    fn default() -> Self {
        Self {
            transactions: 300,
            rows: 200,
            lookups: 120_000,
            blocks: 1_500,
        }
    }
}

/// Runs the workload to its end.
///
/// # Errors
/// SQLite or the disk refused something.
pub fn run(amount: Amount) -> Result<(), String> {
    let dir = tempfile::tempdir().map_err(|e| format!("no temporary directory: {e}"))?;
    let path = CString::new(dir.path().join("demo.sqlite").as_os_str().as_bytes())
        .map_err(|e| e.to_string())?;
    thread::scope(|scope| {
        let insert = scope.spawn(|| {
            // SAFETY: the path ends with zero and outlives the call.
            unsafe { undertick_demo_insert(path.as_ptr(), amount.transactions, amount.rows) }
        });
        let lookup = scope.spawn(|| {
            // SAFETY: as above.
            unsafe { undertick_demo_lookup(path.as_ptr(), amount.lookups) }
        });
        let compress = scope.spawn(move || compress(amount.blocks));
        let sqlite = [insert.join(), lookup.join()].map(|result| result.unwrap_or(1));
        let zstd = compress
            .join()
            .unwrap_or_else(|_| Err("the compressing thread panicked".to_owned()));
        match sqlite.into_iter().find(|&code| code != 0) {
            Some(code) => Err(format!("SQLite: error {code}")),
            None => zstd,
        }
    })
}

fn compress(blocks: u32) -> Result<(), String> {
    undertick::thread_name("zstd");
    undertick::name!(COMPRESS, "compress");
    undertick::name!(DECOMPRESS, "decompress");
    undertick::name!(COMPRESSED_BYTES, "compressed bytes");
    let mut block = vec![0u8; 64 * 1024];
    let mut state = 1u32;
    for _ in 0..blocks {
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
