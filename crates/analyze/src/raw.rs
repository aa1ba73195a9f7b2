//! Raw blocks analysed as they are, before they are kept as Parquet: for a look at a
//! recording that goes on, at a third of the price of one that is kept.

use std::path::Path;

use undertick_report::document::Report;
use undertick_trace::block::Next;
use undertick_trace::manifest::Manifest;
use undertick_trace::raw_order::RawGroups;
use undertick_trace::rows::Rows;

use crate::analysis::Analysis;
use crate::options::Options;
use crate::part::Worker;
use crate::side_by_side::Failed;

/// Analyses the raw blocks of a recording, on one CPU; `manifest` says of what.
///
/// The blocks that are there are taken: a block that is being written, and what follows
/// bytes that are none, are left out. What the kernel says is not among them.
///
/// # Errors
/// The file cannot be read, or does not support the options.
pub fn analyze_raw(file: &Path, manifest: &Manifest, options: Options) -> Result<Report, Failed> {
    let mut analysis = Analysis::new(manifest, options)?;
    for _ in 0..analysis.passes() {
        let mut groups = RawGroups::open(file)?;
        let mut worker: Option<Worker> = None;
        let mut rows = Rows::default();
        while let Some(blocks) = groups.next_group()? {
            // Blocks of a file of that size come in the order of rings.
            let by_ring = groups.is_by_ring();
            let worker = worker.get_or_insert_with(|| analysis.worker(by_ring));
            take(worker, &mut rows, &blocks)?;
        }
        if let Some(worker) = worker {
            analysis.absorb(worker.finish());
        }
        analysis.finish_pass();
    }
    Ok(analysis.finish()?)
}

/// Blocks one after the other; `rows` is room to decode them in.
fn take(worker: &mut Worker, rows: &mut Rows, mut blocks: &[u8]) -> Result<(), Failed> {
    loop {
        rows.clear();
        let Next::Block(header, bytes) = rows.push_block(blocks).0 else {
            return Ok(());
        };
        worker.push_rows(header, &rows.of_ring())?;
        blocks = &blocks[bytes..];
    }
}
