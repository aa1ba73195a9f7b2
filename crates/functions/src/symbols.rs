//! The functions of an ELF file, read from its symbols.

use std::collections::HashMap;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use object::elf;
use object::read::elf::{FileHeader, ProgramHeader, Sym};
use rustix::fs::OFlags;

use crate::FunctionsError;
use crate::names::{demangled, shown};

type Header = elf::FileHeader64<object::Endianness>;

/// Largest file whose variables are read, bytes.
const MOST_BYTES: u64 = 1 << 31;
const ENTER: &[u8] = b"__cyg_profile_func_enter";
/// A symbol that Undertick's library exports in addition to the hooks.
const OURS: &[u8] = b"undertick_functions_version";

/// Whether and how a file calls the hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instrumented {
    /// It is not compiled with `-finstrument-functions`.
    No,
    /// It calls hooks that another file has to define.
    Yes,
    /// Undertick's library is part of it.
    Ours,
    /// It defines its own hooks.
    OwnHooks,
}

/// A function with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Address less the address at which the file is loaded.
    pub offset: u64,
    /// Readable name, demangled and not too long. Unique in the file.
    pub name: String,
    /// All symbols at this address, as the linker has them, with what `name` leaves out.
    pub symbols: Vec<String>,
}

/// The relevant contents of an ELF file.
#[derive(Clone, Debug)]
pub struct Module {
    /// Whether and how it calls the hooks.
    pub instrumented: Instrumented,
    /// The loader that it asks for; `None` for a library or a statically linked program.
    pub interpreter: Option<String>,
    /// Whether it is a program into which no library can be preloaded.
    pub is_static: bool,
    /// Whether it is for this machine, with 64 bits.
    pub is_for_this_machine: bool,
    /// Whether it has a full symbol table, static functions included.
    pub has_all_symbols: bool,
    /// Its functions by offset; empty if it is not instrumented.
    pub functions: Vec<Function>,
}

/// Reads a file; returns `None` if it is no ELF file.
///
/// # Errors
/// The file cannot be read, or is damaged.
pub fn read(path: &Path) -> Result<Option<Module>, FunctionsError> {
    let data = std::fs::read(path).map_err(FunctionsError::io(path, "cannot read"))?;
    if !data.starts_with(&elf::ELFMAG) {
        return Ok(None);
    }
    if data.get(4) != Some(&elf::ELFCLASS64.0) {
        return Ok(Some(Module::foreign()));
    }
    parse(&data).map(Some).map_err(|error| {
        FunctionsError::io(path, "damaged ELF file")(std::io::Error::other(error.to_string()))
    })
}

/// A variable with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSymbol {
    /// Address less the address at which the file is loaded.
    pub offset: u64,
    /// Its size.
    pub bytes: u64,
    /// Readable name, demangled and not too long.
    pub name: String,
}

/// The variables of an ELF file by offset; none of a file that is not for this machine.
///
/// # Errors
/// The file cannot be read, or is damaged.
pub fn data_symbols(path: &Path) -> Result<Vec<DataSymbol>, FunctionsError> {
    let failed = |error: std::io::Error| FunctionsError::io(path, "cannot read")(error);
    // Neither a pipe nor a device of that name is waited for, and files of the kernel have no size.
    let file = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.union(OFlags::NOCTTY).bits() as i32)
        .open(path)
        .map_err(failed)?;
    let about = file.metadata().map_err(failed)?;
    if !about.is_file() || about.len() > MOST_BYTES {
        return Ok(Vec::new());
    }
    let mut data = Vec::new();
    std::io::Read::read_to_end(&mut std::io::Read::take(file, about.len()), &mut data)
        .map_err(failed)?;
    let is_ours = data.starts_with(&elf::ELFMAG) && data.get(4) == Some(&elf::ELFCLASS64.0);
    if !is_ours {
        return Ok(Vec::new());
    }
    parse_data(&data).map_err(|error| failed(std::io::Error::other(error.to_string())))
}

fn parse_data(data: &[u8]) -> object::Result<Vec<DataSymbol>> {
    let header = Header::parse(data)?;
    let endian = header.endian()?;
    if header.e_machine(endian) != this_machine() {
        return Ok(Vec::new());
    }
    let sections = header.sections(endian, data)?;
    let mut found: Vec<DataSymbol> = Vec::new();
    for kind in [elf::SHT_SYMTAB, elf::SHT_DYNSYM] {
        let symbols = sections.symbols(endian, data, kind)?;
        for symbol in symbols.iter() {
            let name = symbols.symbol_name(endian, symbol).unwrap_or(b"");
            let is_variable = symbol.st_type() == elf::STT_OBJECT && !name.is_empty();
            if is_variable && symbol.st_shndx(endian) != elf::SHN_UNDEF {
                found.push(DataSymbol {
                    offset: symbol.st_value(endian),
                    bytes: symbol.st_size(endian),
                    name: shown(&demangled(&String::from_utf8_lossy(name))),
                });
            }
        }
    }
    found.sort_by(|a, b| (a.offset, &a.name).cmp(&(b.offset, &b.name)));
    found.dedup_by_key(|symbol| symbol.offset);
    Ok(found)
}

impl Module {
    fn foreign() -> Self {
        Self {
            instrumented: Instrumented::No,
            interpreter: None,
            is_static: false,
            is_for_this_machine: false,
            has_all_symbols: false,
            functions: Vec::new(),
        }
    }
}

/// A symbol that may name a function.
struct Named<'data> {
    symbol: &'data [u8],
    /// Rank of the binding: 0 global, 1 weak, 2 local; the lowest rank names the address.
    rank: u8,
    /// Source file of a local symbol, if the table states it.
    source: &'data [u8],
}

fn parse(data: &[u8]) -> object::Result<Module> {
    let header = Header::parse(data)?;
    let endian = header.endian()?;
    if header.e_machine(endian) != this_machine() {
        return Ok(Module::foreign());
    }
    let mut interpreter = None;
    for segment in header.program_headers(endian, data)? {
        if let Some(text) = segment.interpreter(endian, data)? {
            interpreter = Some(String::from_utf8_lossy(text).into_owned());
        }
    }
    let sections = header.sections(endian, data)?;
    let (mut by_offset, mut hooks) = (HashMap::<u64, Vec<Named<'_>>>::new(), Hooks::default());
    let mut has_all_symbols = false;
    for kind in [elf::SHT_SYMTAB, elf::SHT_DYNSYM] {
        let symbols = sections.symbols(endian, data, kind)?;
        has_all_symbols |= kind == elf::SHT_SYMTAB && !symbols.is_empty();
        let mut source: &[u8] = b"";
        for symbol in symbols.iter() {
            let name = symbols.symbol_name(endian, symbol).unwrap_or(b"");
            if symbol.st_type() == elf::STT_FILE {
                source = name;
                continue;
            }
            let is_defined = symbol.st_shndx(endian) != elf::SHN_UNDEF;
            hooks.note(name, is_defined);
            let offset = symbol.st_value(endian);
            // An undefined symbol with a value is where the program expects a function of a
            // library.
            let is_function = matches!(symbol.st_type(), elf::STT_FUNC | elf::STT_GNU_IFUNC);
            if !is_function || offset == 0 || name.is_empty() {
                continue;
            }
            let is_local = symbol.st_bind() == elf::STB_LOCAL;
            let rank = match symbol.st_bind() {
                elf::STB_LOCAL => 2,
                elf::STB_WEAK => 1,
                _ => 0,
            };
            by_offset.entry(offset).or_default().push(Named {
                symbol: name,
                rank,
                source: if is_local { source } else { b"" },
            });
        }
    }
    // Reading the names takes most of the time, and most libraries are not instrumented.
    let functions = match hooks.say() {
        Instrumented::Yes | Instrumented::Ours => name_all(by_offset),
        Instrumented::No | Instrumented::OwnHooks => Vec::new(),
    };
    let is_program = header.e_type(endian) == elf::ET_EXEC || interpreter.is_some();
    Ok(Module {
        instrumented: hooks.say(),
        is_static: interpreter.is_none() && (is_program || is_static_pie(header, endian, data)?),
        interpreter,
        is_for_this_machine: true,
        has_all_symbols,
        functions,
    })
}

/// Whether the file is a position-independent program without a loader: a library has no such flag.
fn is_static_pie(header: &Header, endian: object::Endianness, data: &[u8]) -> object::Result<bool> {
    use object::read::elf::Dyn;
    for segment in header.program_headers(endian, data)? {
        for entry in segment.dynamic(endian, data)?.unwrap_or(&[]) {
            let is_flags = entry.tag(endian) == elf::DT_FLAGS_1;
            if is_flags && entry.val(endian) & elf::DF_1_PIE.0 != 0 {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

const fn this_machine() -> elf::Machine {
    if cfg!(target_arch = "aarch64") {
        elf::EM_AARCH64
    } else {
        elf::EM_X86_64
    }
}

impl Module {
    /// Whether calls of its functions reach Undertick's hooks.
    #[must_use]
    pub const fn calls_our_hooks(&self) -> bool {
        matches!(self.instrumented, Instrumented::Yes | Instrumented::Ours)
    }
}

/// What the symbols reveal about the hooks.
#[derive(Default)]
struct Hooks {
    wanted: bool,
    defined: bool,
    ours: bool,
}

impl Hooks {
    fn note(&mut self, name: &[u8], is_defined: bool) {
        // Some tables append the version to a symbol: "name@GLIBC_2.2.5".
        let plain = name.split(|&c| c == b'@').next().unwrap_or(name);
        self.wanted |= plain == ENTER && !is_defined;
        self.defined |= plain == ENTER && is_defined;
        self.ours |= plain == OURS && is_defined;
    }

    const fn say(&self) -> Instrumented {
        match (self.wanted, self.defined, self.ours) {
            (_, true, true) => Instrumented::Ours,
            (_, true, false) => Instrumented::OwnHooks,
            (true, false, _) => Instrumented::Yes,
            (false, false, _) => Instrumented::No,
        }
    }
}

/// Gives each address one name; all names differ.
fn name_all(by_offset: HashMap<u64, Vec<Named<'_>>>) -> Vec<Function> {
    let mut times = HashMap::<String, u32>::new();
    let mut functions: Vec<(Function, String)> = by_offset
        .into_iter()
        .map(|(offset, mut named)| {
            named.sort_by_key(|n| (n.rank, n.symbol.len(), n.symbol));
            let source = String::from_utf8_lossy(named[0].source).into_owned();
            let mut symbols: Vec<String> = named.iter().map(|n| plain(n.symbol)).collect();
            symbols.dedup();
            let full = demangled(&symbols[0]);
            let name = shown(&full);
            if name != full {
                symbols.push(full);
            }
            let function = Function {
                offset,
                name,
                symbols,
            };
            (function, source)
        })
        .collect();
    functions.sort_by_key(|(function, _)| function.offset);
    for (function, _) in &functions {
        *times.entry(function.name.clone()).or_default() += 1;
    }
    // Distinguish static functions of one name in several files, then any others.
    let mut seen = HashMap::<String, u32>::new();
    for (function, source) in &mut functions {
        if times[&function.name] > 1 && !source.is_empty() {
            function.name = format!("{} ({source})", function.name);
        }
        let before = seen.entry(function.name.clone()).or_default();
        *before += 1;
        if *before > 1 {
            function.name = format!("{} #{before}", function.name);
        }
    }
    functions
        .into_iter()
        .map(|(function, _)| function)
        .collect()
}

fn plain(symbol: &[u8]) -> String {
    let end = symbol.iter().position(|&c| c == b'@');
    String::from_utf8_lossy(&symbol[..end.unwrap_or(symbol.len())]).into_owned()
}
