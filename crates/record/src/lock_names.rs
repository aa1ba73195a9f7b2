//! Names of locks, by the symbols of the files in which they lie.

use std::collections::BTreeMap;
use std::path::Path;

use undertick_format::manifest::LockName;
use undertick_functions::symbols::{DataSymbol, data_symbols};

use crate::names::LockPlace;

/// Most files whose symbols are read.
const MOST_FILES: usize = 256;

/// The names of those locks that a symbol covers.
pub(crate) fn found(places: &[LockPlace]) -> Vec<LockName> {
    let mut files: BTreeMap<&str, Vec<DataSymbol>> = BTreeMap::new();
    let named = places.iter().filter_map(|place| {
        // A program may write any path, and any number of them.
        let is_read = files.contains_key(place.path.as_str()) || files.len() < MOST_FILES;
        if !place.path.starts_with('/') || !is_read {
            return None;
        }
        // A file that cannot be read has no symbols.
        let symbols = (files.entry(&place.path))
            .or_insert_with(|| data_symbols(Path::new(&place.path)).unwrap_or_default());
        Some(LockName {
            pid: place.pid,
            address: place.address,
            name: name(symbols, place.offset)?,
        })
    });
    named.collect()
}

/// The name of what lies at an offset.
fn name(symbols: &[DataSymbol], offset: u64) -> Option<String> {
    let after = symbols.partition_point(|symbol| symbol.offset <= offset);
    let symbol = &symbols[after.checked_sub(1)?];
    let within = offset - symbol.offset;
    match within {
        0 => Some(symbol.name.clone()),
        _ if within < symbol.bytes => Some(format!("{}+{within:#x}", symbol.name)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_has_the_name_of_the_symbol_that_covers_it() {
        let symbol = |offset: u64, bytes: u64, name: &str| DataSymbol {
            offset,
            bytes,
            name: name.to_owned(),
        };
        let symbols = [
            symbol(64, 40, "cache"),
            symbol(128, 80, "table"),
            symbol(300, 0, "end"),
        ];
        let name = |offset: u64| name(&symbols, offset);
        assert_eq!(name(64).as_deref(), Some("cache"));
        assert_eq!(name(168).as_deref(), Some("table+0x28"));
        assert_eq!(name(300).as_deref(), Some("end"));
        assert_eq!([name(10), name(104), name(301)], [None, None, None]);
    }
}
