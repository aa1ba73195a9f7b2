//! Fuzz targets for other tools' files.

use std::path::{Path, PathBuf};

use undertick_convert::import::{Source, import_text};
use undertick_format::read::Trace;

pub fn chrome(bytes: &[u8]) {
    import(Source::Chrome, bytes);
}

pub fn perfetto(bytes: &[u8]) {
    import(Source::Perfetto, bytes);
}

/// Requests of OpenTelemetry, as JSON or as messages.
pub fn otlp(bytes: &[u8]) {
    import(Source::Otlp, bytes);
}

/// The stream of the event card.
pub fn card(bytes: &[u8]) {
    import(Source::Card, bytes);
}

/// Imports the output of `perf script` or `babeltrace2`, selected by the first byte.
pub fn lines(bytes: &[u8]) {
    match bytes.split_first() {
        Some((b'p', text)) => import(Source::PerfScript, text),
        Some((_, text)) => import(Source::Ctf, text),
        None => {}
    }
}

/// Asserts that the file is imported and can then be read to its end, or is refused with a message.
fn import(source: Source, bytes: &[u8]) {
    thread_local! {
        static DIR: tempfile::TempDir = tempfile::tempdir_in(memory()).expect("a directory");
    }
    DIR.with(|dir| {
        let out = dir.path().join("t.ut");
        match import_text(Path::new("file"), source, bytes, &out) {
            Ok(manifest) => {
                let trace = Trace::open(&out).expect("a trace");
                let rows: usize = trace.batches().map(|b| b.expect("rows").num_rows()).sum();
                let kernel = manifest.kernel.map_or(0, |kernel| kernel.rows);
                // A card's gaps are rows, too; no other source reports gaps.
                let gaps = rows as u64 - (manifest.events + kernel);
                assert!(gaps == 0 || (source == Source::Card && manifest.lost > 0));
                std::fs::remove_dir_all(&out).expect("it can go");
            }
            Err(error) => {
                assert_eq!(error.exit_status(), 2, "{error}");
                assert!(!out.exists(), "it left something behind");
            }
        }
    });
}

/// Returns a directory where files cost little.
pub(crate) fn memory() -> PathBuf {
    let shm = PathBuf::from("/dev/shm");
    if shm.is_dir() {
        shm
    } else {
        std::env::temp_dir()
    }
}
