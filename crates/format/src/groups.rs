//! Divides a trace into shards that share no ring, for parallel analysis.

/// Least rows in a shard, so that merging the shards is little work.
const LEAST_ROWS: u64 = 1 << 20;
/// Most shards of a trace.
const MOST: u64 = 64;

/// A shard of a trace: all rows of a subset of rings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Row groups: the index of the part in the manifest, and the index in its file.
    pub row_groups: Vec<(usize, usize)>,
    /// Number of rows in them; of raw blocks, of records, which are at least as many.
    pub rows: u64,
    /// Whether the rows of each ring lie together.
    pub by_ring: bool,
}

/// Smallest and largest ring of a row group, where known, and its rows (or records).
pub type RowGroup = (Option<(i32, i32)>, u64);

/// Divides a trace into shards, given for each part whether it is in order, and its row groups.
/// Row groups with ring -1 only are the kernel's, and in no shard.
#[must_use]
pub fn groups(parts: &[(bool, Vec<RowGroup>)]) -> Vec<Group> {
    let all = || {
        (parts.iter().enumerate()).flat_map(|(part, (by_ring, groups))| {
            (groups.iter().enumerate())
                .filter(|(_, (rings, _))| *rings != Some((-1, -1)))
                .map(move |(place, &(rings, rows))| ((part, place), *by_ring, rings, rows))
        })
    };
    let total: u64 = all().map(|(.., rows)| rows).sum();
    let target = LEAST_ROWS.max(total.div_ceil(MOST));
    let mut groups: Vec<Group> = Vec::new();
    let mut last = i32::MIN;
    let ordered = all().all(|(_, by_ring, rings, _)| {
        // A ring may continue in the next row group, but must not come back.
        let in_order = rings.is_some_and(|(least, most)| {
            let follows = least >= last;
            last = last.max(most);
            follows
        });
        by_ring && in_order
    });
    let mut last = i32::MIN;
    for (place, _, rings, rows) in all() {
        let (least, most) = rings.unwrap_or((i32::MIN, i32::MAX));
        match groups.last_mut() {
            Some(group) if !ordered || group.rows < target || least <= last => {
                group.row_groups.push(place);
                group.rows += rows;
            }
            _ => groups.push(Group {
                row_groups: vec![place],
                rows,
                by_ring: ordered,
            }),
        }
        last = last.max(most);
    }
    groups
}

#[cfg(test)]
mod tests;
