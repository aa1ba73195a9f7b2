//! `undertick export`.

use undertick_trace::export::{Format, export};
use undertick_trace::read::Trace;

use crate::Failure;
use crate::args;
use crate::progress::Progress;

pub fn run(arguments: &args::Export) -> Result<u8, Failure> {
    let format = match arguments.to {
        args::Format::Perfetto => Format::Perfetto,
        args::Format::Chrome => Format::Chrome,
        args::Format::Csv => Format::Csv,
        args::Format::Parquet => Format::Parquet,
    };
    let mut progress = Progress::new();
    let result =
        Trace::open(&arguments.trace, |share| progress.share("keeping", share)).and_then(|trace| {
            export(&trace, format, &arguments.file, |share| {
                progress.share("exporting", share)
            })
        });
    progress.done();
    let rows = result?;
    eprintln!("undertick: {rows} rows in {}", arguments.file.display());
    Ok(0)
}
