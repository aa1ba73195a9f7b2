//! What unwinding and naming need of an ELF file.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use framehop::ExplicitModuleSectionInfo;
use gimli::{
    BaseAddresses, CallFrameInstruction, CallFrameInstructionIter, CieOrFde, DebugFrame, EhFrame,
    NativeEndian, Operation, UnwindOffset, UnwindSection,
};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadCache, ReadRef, SymbolKind};

type Slice<'a> = gimli::EndianSlice<'a, NativeEndian>;

/// Contents of a section.
pub(crate) type Bytes = Arc<[u8]>;

/// Largest section that is read, bytes.
const MOST_SECTION_BYTES: u64 = 256 << 20;
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
        Self::parsed(&ReadCache::new(file))
    }

    /// Reads the image of a file.
    ///
    /// # Errors
    /// It is no ELF file of 64 bits.
    pub(crate) fn of_image(image: &[u8]) -> io::Result<Self> {
        Self::parsed(image)
    }

    fn parsed<'data>(data: impl ReadRef<'data>) -> io::Result<Self> {
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
        let eh_frame = bytes(".eh_frame").filter(|table| has_no_jumps(table, true));
        let has_table = eh_frame.is_some();
        let debug_frame =
            bytes(".debug_frame").filter(|table| !has_table && has_no_jumps(table, false));
        Ok(Self {
            build_id: build_id(&file),
            sections: ExplicitModuleSectionInfo {
                base_svma: 0,
                text_svma: range(".text"),
                got_svma: range(".got"),
                eh_frame_svma: range(".eh_frame"),
                eh_frame,
                // Without .eh_frame_hdr: its entries may lead to what was not checked.
                debug_frame,
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

    /// Bytes of memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        let of = &self.sections;
        [&of.eh_frame, &of.debug_frame]
            .into_iter()
            .flatten()
            .map(|section| section.len())
            .sum()
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

/// Whether no expression of an unwind table jumps: one that does may never end. Compilers make none. What
/// cannot be read is not evaluated either.
fn has_no_jumps(table: &[u8], is_eh_frame: bool) -> bool {
    fn check<'a, S: UnwindSection<Slice<'a>>>(section: &S) -> bool
    where
        S::Offset: UnwindOffset<usize>,
    {
        // Only expressions matter, so all bases may be 0.
        let bases = (BaseAddresses::default().set_eh_frame(0))
            .set_eh_frame_hdr(0)
            .set_text(0)
            .set_got(0);
        let mut entries = section.entries(&bases);
        let mut checked = HashSet::new();
        while let Ok(Some(entry)) = entries.next() {
            let is_plain = match &entry {
                CieOrFde::Cie(cie) => {
                    checked.insert(cie.offset());
                    is_jump_free(cie.instructions(section, &bases), cie.encoding(), section)
                }
                CieOrFde::Fde(partial) => partial.parse(S::cie_from_offset).map_or(true, |fde| {
                    let encoding = fde.cie().encoding();
                    // One that is not among the entries was not checked.
                    checked.contains(&fde.cie().offset())
                        && is_jump_free(fde.instructions(section, &bases), encoding, section)
                }),
            };
            if !is_plain {
                return false;
            }
        }
        true
    }
    fn is_jump_free<'a, S: UnwindSection<Slice<'a>>>(
        mut instructions: CallFrameInstructionIter<'_, Slice<'a>>,
        encoding: gimli::Encoding,
        section: &S,
    ) -> bool {
        while let Ok(Some(instruction)) = instructions.next() {
            let (CallFrameInstruction::DefCfaExpression { expression }
            | CallFrameInstruction::Expression { expression, .. }
            | CallFrameInstruction::ValExpression { expression, .. }) = instruction
            else {
                continue;
            };
            let Ok(expression) = expression.get(section) else {
                continue;
            };
            let mut operations = expression.operations(encoding);
            while let Ok(Some(operation)) = operations.next() {
                if matches!(operation, Operation::Bra { .. } | Operation::Skip { .. }) {
                    return false;
                }
            }
        }
        true
    }
    match is_eh_frame {
        true => check(&EhFrame::new(table, NativeEndian)),
        false => check(&DebugFrame::new(table, NativeEndian)),
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

/// The function that covers each of these addresses, of the file with this build id: of its separate file of
/// symbols if there is one, and of the file itself.
pub(crate) fn symbols(
    path: &Path,
    build_id: Option<&str>,
    addresses: &[u64],
) -> Vec<Option<String>> {
    let all = all_symbols(path, build_id);
    names_at(&all, addresses)
}

/// The name of the symbol that covers each of these addresses; symbols are in order.
pub(crate) fn names_at(symbols: &[Symbol], addresses: &[u64]) -> Vec<Option<String>> {
    let name = |&address: &u64| at(symbols, address).map(|found| found.symbol.clone());
    addresses.iter().map(name).collect()
}

/// All functions, in order of their addresses, one for each.
fn all_symbols(path: &Path, build_id: Option<&str>) -> Vec<Symbol> {
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
    let file = crate::process::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let data = ReadCache::new(file);
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
        let found = all_symbols(&own, unwinding.build_id.as_deref());
        assert!(found.len() > 100, "{}", found.len());
        assert!(found.is_sorted_by(|a, b| a.addresses.start < b.addresses.start));
        assert!(all_symbols(&own, Some("00")).is_empty());
        let sized = found
            .iter()
            .find(|of| of.addresses.end > of.addresses.start + 1);
        let addresses = &sized.expect("a function").addresses;
        let name = &sized.expect("a function").symbol;
        let wanted = symbols(
            &own,
            unwinding.build_id.as_deref(),
            &[addresses.start + 1, 0],
        );
        assert_eq!(wanted, [Some(name.clone()), None]);
    }

    /// An unwind table with one CIE whose CFA is an expression, as DWARF 5 describes it.
    fn table(expression: &[u8]) -> Vec<u8> {
        let mut cie: Vec<u8> = vec![0, 0, 0, 0, 1, 0, 1, 0x78, 16]; // id, version, augmentation, factors, register
        cie.extend([0x0f, expression.len() as u8]); // DW_CFA_def_cfa_expression
        cie.extend(expression);
        cie.resize(cie.len().next_multiple_of(4), 0);
        let mut table = (cie.len() as u32).to_ne_bytes().to_vec();
        table.extend(cie);
        table.extend([0; 4]);
        table
    }

    #[test]
    fn a_table_whose_expressions_jump_is_not_used() {
        let plain = [0x77, 8, 0x06]; // DW_OP_breg7 8, DW_OP_deref
        assert!(has_no_jumps(&table(&plain), true));
        let skip = [0x2f, 0xfd, 0xff]; // DW_OP_skip -3
        assert!(!has_no_jumps(&table(&skip), true));
        let branch = [0x31, 0x28, 0xfc, 0xff]; // DW_OP_lit1, DW_OP_bra -4
        assert!(!has_no_jumps(&table(&branch), true));
        // Behind one that does not.
        let both = [&table(&plain)[..table(&plain).len() - 4], &table(&skip)].concat();
        assert!(!has_no_jumps(&both, true));
    }
}
