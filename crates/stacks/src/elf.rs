//! What unwinding and naming need of an ELF file.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use framehop::ExplicitModuleSectionInfo;
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadCache, ReadRef, SymbolKind};

/// Contents of a section.
pub(crate) type Bytes = Arc<[u8]>;

/// Largest section that is read, bytes.
const MOST_SECTION_BYTES: u64 = 1 << 30;
/// Where separate files of symbols lie, by build id.
const DEBUG_DIR: &str = "/usr/lib/debug/.build-id";

/// What is read of a file to unwind through it.
#[derive(Debug)]
pub(crate) struct Unwinding {
    pub(crate) build_id: Option<String>,
    sections: ExplicitModuleSectionInfo<Bytes>,
    segments: Vec<Segment>,
}

/// A part of the file with code: its place in the file, and its address there.
#[derive(Debug)]
struct Segment {
    file: Range<u64>,
    address: u64,
}

impl Unwinding {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or is no ELF file of 64 bits.
    pub(crate) fn read(file: File) -> io::Result<Self> {
        Self::of(&ReadCache::new(file))
    }

    /// Reads the image of a file.
    ///
    /// # Errors
    /// It is no ELF file of 64 bits.
    pub(crate) fn of_image(image: &[u8]) -> io::Result<Self> {
        Self::of(image)
    }

    fn of<'data>(data: impl ReadRef<'data>) -> io::Result<Self> {
        let file = ElfFile64::<object::Endianness, _>::parse(data).map_err(io::Error::other)?;
        let range = |name: &str| {
            let section = file.section_by_name(name)?;
            Some(section.address()..section.address().checked_add(section.size())?)
        };
        let bytes = |name: &str| -> Option<Bytes> {
            let section = file.section_by_name(name)?;
            (section.size() <= MOST_SECTION_BYTES).then_some(())?;
            Some(section.data().ok()?.into())
        };
        Ok(Self {
            build_id: build_id(&file),
            sections: ExplicitModuleSectionInfo {
                base_svma: 0,
                text_svma: range(".text"),
                text: bytes(".text"),
                got_svma: range(".got"),
                eh_frame_svma: range(".eh_frame"),
                eh_frame: bytes(".eh_frame"),
                eh_frame_hdr_svma: range(".eh_frame_hdr"),
                eh_frame_hdr: bytes(".eh_frame_hdr"),
                debug_frame: bytes(".debug_frame"),
                ..ExplicitModuleSectionInfo::default()
            },
            segments: (file.segments())
                .filter(|segment| segment.permissions().executable())
                .filter_map(|segment| {
                    let (from, bytes) = segment.file_range();
                    Some(Segment {
                        file: from..from.checked_add(bytes)?,
                        address: segment.address(),
                    })
                })
                .collect(),
        })
    }

    pub(crate) fn sections(&self) -> ExplicitModuleSectionInfo<Bytes> {
        self.sections.clone()
    }

    /// What to add to addresses in the file where its byte `offset` is mapped at `start`.
    pub(crate) fn bias(&self, start: u64, offset: u64) -> Option<u64> {
        // A mapping begins at the page in which its segment begins, so maybe before it.
        const PAGE: u64 = 1 << 16;
        let segment = (self.segments.iter())
            .find(|segment| segment.file.contains(&offset))
            .or_else(|| {
                let begins = |segment: &&Segment| {
                    segment.file.start >= offset && segment.file.start - offset < PAGE
                };
                self.segments.iter().find(begins)
            })?;
        let address = segment
            .address
            .wrapping_add(offset)
            .wrapping_sub(segment.file.start);
        Some(start.wrapping_sub(address))
    }
}

fn build_id<'data>(file: &impl Object<'data>) -> Option<String> {
    let id = file.build_id().ok().flatten()?;
    let id = id.get(..id.len().min(64))?;
    (!id.is_empty()).then(|| id.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A function of a file, by its address there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Symbol {
    pub(crate) addresses: Range<u64>,
    pub(crate) symbol: String,
}

/// The functions of the file with this build id: of its separate file of symbols if there is one, and of
/// the file itself. In order of their addresses, one for each.
pub(crate) fn symbols(path: &Path, build_id: Option<&str>) -> Vec<Symbol> {
    let mut all = Vec::new();
    for path in build_id
        .and_then(debug_file)
        .into_iter()
        .chain([path.to_owned()])
    {
        if let Ok(found) = symbols_of(&path, build_id) {
            all.extend(found);
        }
    }
    // Of several at one address, the global one that has a size and the shortest name.
    all.sort_by(|(a, of_a), (b, of_b)| {
        let rank = |rank: &u8, of: &Symbol| (of.addresses.is_empty(), *rank, of.symbol.len());
        (of_a.addresses.start.cmp(&of_b.addresses.start))
            .then(rank(a, of_a).cmp(&rank(b, of_b)))
            .then(of_a.symbol.cmp(&of_b.symbol))
    });
    all.dedup_by_key(|(_, of)| of.addresses.start);
    all.into_iter().map(|(_, symbol)| symbol).collect()
}

fn debug_file(build_id: &str) -> Option<PathBuf> {
    let (first, rest) = build_id.split_at_checked(2)?;
    Some(
        Path::new(DEBUG_DIR)
            .join(first)
            .join(format!("{rest}.debug")),
    )
}

fn symbols_of(path: &Path, wanted: Option<&str>) -> io::Result<Vec<(u8, Symbol)>> {
    let data = ReadCache::new(crate::process::open(path)?);
    let file = ElfFile64::<object::Endianness, _>::parse(&data).map_err(io::Error::other)?;
    if build_id(&file).as_deref() != wanted {
        return Err(io::Error::other("another file is there now"));
    }
    let symbols = file.symbols().chain(file.dynamic_symbols());
    Ok(symbols
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
        .filter_map(|symbol| {
            let rank = match (symbol.is_global(), symbol.is_weak()) {
                (true, false) => 0,
                (_, true) => 1,
                _ => 2,
            };
            let name = symbol.name_bytes().ok()?;
            let name = name.split(|byte| *byte == b'@').next()?;
            (!name.is_empty()).then_some(())?;
            let start = symbol.address();
            Some((
                rank,
                Symbol {
                    addresses: start..start.checked_add(symbol.size())?,
                    symbol: String::from_utf8_lossy(name).into_owned(),
                },
            ))
        })
        .collect())
}

/// The function at an address. One without a size reaches to the next.
pub(crate) fn at(symbols: &[Symbol], address: u64) -> Option<&Symbol> {
    let after = symbols.partition_point(|symbol| symbol.addresses.start <= address);
    let found = symbols.get(after.checked_sub(1)?)?;
    (found.addresses.is_empty() || found.addresses.contains(&address)).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_belongs_to_the_function_that_covers_it() {
        let symbol = |addresses: Range<u64>, symbol: &str| Symbol {
            addresses,
            symbol: symbol.to_owned(),
        };
        let all = [
            symbol(10..20, "a"),
            symbol(30..30, "assembly"),
            symbol(40..45, "b"),
        ];
        let name = |address| at(&all, address).map(|found| found.symbol.as_str());
        assert_eq!(name(9), None);
        assert_eq!(name(10), Some("a"));
        assert_eq!(name(20), None, "between two functions");
        assert_eq!(name(39), Some("assembly"));
        assert_eq!(name(44), Some("b"));
        assert_eq!(name(45), None);
    }

    #[test]
    fn functions_of_this_program_are_found_by_its_build_id_only() {
        let own = std::env::current_exe().expect("a path");
        let unwinding = Unwinding::read(File::open(&own).expect("open")).expect("an ELF file");
        let found = symbols(&own, unwinding.build_id.as_deref());
        assert!(found.len() > 100, "{}", found.len());
        assert!(found.is_sorted_by(|a, b| a.addresses.start < b.addresses.start));
        assert!(symbols(&own, Some("00")).is_empty());
    }
}
