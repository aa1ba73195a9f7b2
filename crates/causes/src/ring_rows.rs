//! Reads the rows of rings, however a trace stores them.

use undertick_analyze::Failed;
use undertick_analyze::columns::{Columns, Writer, cut};
use undertick_format::block::{self, Next};
use undertick_format::groups::Group;
use undertick_format::read::Trace;
use undertick_format::rows::{Rows, RowsOfRing};

/// Passes on the rows of the wanted rings of a group, each ring's in order.
///
/// # Errors
/// The trace cannot be read.
pub(crate) fn pass_on(
    trace: &Trace,
    group: &Group,
    wants: impl Fn(i32) -> bool,
    mut take: impl FnMut(Writer, &RowsOfRing<'_>),
) -> Result<(), Failed> {
    if !trace.is_of_blocks(group) {
        for batch in trace.group_batches(group) {
            of_rows(&Columns::from_batch(&batch?)?, &wants, &mut take);
        }
        return Ok(());
    }
    let mut blocks = Vec::new();
    for &row_group in &group.row_groups {
        trace.read_blocks(row_group, &mut blocks)?;
        if !of_blocks(&blocks, &wants, &mut take) {
            return Err(trace.damaged_blocks(row_group).into());
        }
    }
    Ok(())
}

/// Returns whether all blocks could be decoded.
fn of_blocks(
    mut blocks: &[u8],
    wants: &impl Fn(i32) -> bool,
    take: &mut impl FnMut(Writer, &RowsOfRing<'_>),
) -> bool {
    let mut rows = Rows::default();
    while !blocks.is_empty() {
        let Next::Block(header, length) = block::check(blocks) else {
            return false;
        };
        if wants(header.ring as i32) {
            rows.clear();
            let Next::Block(..) = rows.push_block(blocks).0 else {
                return false;
            };
            take(Writer::from_block(header), &rows.of_ring());
        }
        blocks = &blocks[length..];
    }
    true
}

fn of_rows(
    columns: &Columns<'_>,
    wants: &impl Fn(i32) -> bool,
    take: &mut impl FnMut(Writer, &RowsOfRing<'_>),
) {
    let mut at = 0;
    while at < columns.n_rows() {
        let (ring, mode) = (columns.ring[at], columns.mode[at]);
        let same = |&(&other, &of): &(&i32, &i8)| other == ring && of == mode;
        let rest = columns.ring[at..].iter().zip(&columns.mode[at..]);
        let n = rest.take_while(same).count();
        if mode == 0 && wants(ring) {
            take(columns.writer(at), &cut(&columns.rows, at..at + n));
        }
        at += n;
    }
}
