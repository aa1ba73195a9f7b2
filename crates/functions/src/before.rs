//! Can functions of a program be recorded? This is checked before it is started.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use regex::Regex;

use crate::FunctionsError;
use crate::symbols::{self, Instrumented, Module};
use crate::table;

/// The mend if nothing is instrumented.
const COMPILE: &str = "compile it with -finstrument-functions (gcc or clang)";

/// The result of the check before the start.
#[derive(Debug, Default)]
pub struct Before {
    /// Files that call the hooks: the program and the libraries that it is linked with.
    pub modules: Vec<(PathBuf, Module)>,
    /// What the user should know before the start.
    pub note: Option<String>,
}

/// Examines the program and the libraries that it is linked with.
///
/// # Errors
/// The program is statically linked, is for another processor, runs as another user, or calls its
/// own hooks; or the filter selects none of its functions.
pub fn look(program: &OsStr, filter: &Regex) -> Result<Before, FunctionsError> {
    let Some(path) = find(program) else {
        return Ok(Before::default()); // who starts it says so
    };
    let refuse = |why: String| {
        Err(FunctionsError::Program {
            program: path.clone(),
            why,
        })
    };
    let Some(module) = symbols::read(&path)? else {
        return Ok(Before {
            note: Some(format!(
                "{}: a script; functions are recorded of the programs that it starts",
                path.display()
            )),
            ..Before::default()
        });
    };
    if let Some(why) = impossible(&path, &module) {
        return refuse(why);
    }
    let libraries = libraries(&path, &module);
    let modules: Vec<_> = std::iter::once((path.clone(), module))
        .chain(libraries)
        .filter(|(_, module)| module.calls_our_hooks())
        .collect();
    if modules.is_empty() {
        let note = format!(
            "{}: not instrumented, so none of its functions is recorded, only those of programs and libraries that it starts or opens; {COMPILE}",
            path.display()
        );
        return Ok(Before {
            note: Some(note),
            modules,
        });
    }
    if modules
        .iter()
        .all(|(_, module)| table::wanted(module, filter) == 0)
    {
        return refuse(none_matches(&modules, filter));
    }
    Ok(Before {
        modules,
        note: None,
    })
}

/// Checks whether a program can preload a library; what is no ELF file, or not there, can.
///
/// # Errors
/// The program cannot: why, and the mend.
pub fn can_preload(program: &OsStr) -> Result<(), FunctionsError> {
    let Some(program) = find(program) else {
        return Ok(()); // the caller that starts it says so
    };
    let Some(module) = symbols::read(&program)? else {
        return Ok(()); // a script
    };
    let other_loader = || {
        let loader = (module.interpreter.as_deref()).filter(|_| !is_glibcs(&module))?;
        Some(format!(
            "its loader is {loader}: the library to preload needs glibc"
        ))
    };
    match no_preload(&program, &module, "").or_else(other_loader) {
        Some(why) => Err(FunctionsError::Program { program, why }),
        None => Ok(()),
    }
}

/// Whether the loader of a program is glibc's.
fn is_glibcs(module: &Module) -> bool {
    let loader = module.interpreter.as_deref();
    loader.is_some_and(|loader| loader.contains("/ld-linux"))
}

/// Why nothing can ever be recorded of a file; `None` if something can.
fn impossible(path: &Path, module: &Module) -> Option<String> {
    let own_hooks = || {
        let why = "has an own __cyg_profile_func_enter, which gets the calls; take that out";
        (module.instrumented == Instrumented::OwnHooks).then(|| why.to_owned())
    };
    no_preload(path, module, &format!(", or with {}", crate::SOURCE_FILE)).or_else(own_hooks)
}

/// Why a program cannot preload a library, and has not got it; `else_link` is another mend.
fn no_preload(path: &Path, module: &Module, else_link: &str) -> Option<String> {
    if !module.is_for_this_machine {
        return Some("for another processor, or 32 bits: the library to preload is not".into());
    }
    if module.is_static && (else_link.is_empty() || module.instrumented != Instrumented::Ours) {
        return Some(format!(
            "statically linked, so no library can be preloaded; link it dynamically{else_link}"
        ));
    }
    let meta = std::fs::metadata(path).ok()?;
    let me = rustix::process::geteuid().as_raw();
    let becomes_another = (meta.mode() & 0o4000 != 0 && meta.uid() != me)
        || (meta.mode() & 0o2010 == 0o2010 && meta.gid() != rustix::process::getegid().as_raw());
    becomes_another.then(|| {
        "set-user-ID or set-group-ID, so the system ignores LD_PRELOAD; record a copy without that bit, or as that user".into()
    })
}

fn none_matches(modules: &[(PathBuf, Module)], filter: &Regex) -> String {
    let all: Vec<&str> = modules
        .iter()
        .flat_map(|(_, module)| &module.functions)
        .map(|function| function.name.as_str())
        .collect();
    let some: Vec<&str> = (all.iter().copied())
        .filter(|name| !is_of_the_compiler(name))
        .take(8)
        .collect();
    if all.is_empty() {
        return "stripped: its functions have no names; give one that is not stripped".to_owned();
    }
    format!(
        "--functions {:?} matches none of its {} functions; some of them: {}",
        filter.as_str(),
        all.len(),
        some.join(", ")
    )
}

/// Whether the compiler puts this function into every program.
fn is_of_the_compiler(name: &str) -> bool {
    let known = ["deregister_tm_clones", "register_tm_clones", "frame_dummy"];
    name.starts_with('_') || known.contains(&name)
}

/// The file that would be executed, if there is one.
#[must_use]
pub fn find(program: &OsStr) -> Option<PathBuf> {
    let path = Path::new(program);
    if program.as_encoded_bytes().contains(&b'/') {
        return path.is_file().then(|| path.to_owned());
    }
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|dir| dir.join(path))
        .find(|path| {
            path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
        })
}

/// The readable libraries among those that glibc's loader would load with the program.
fn libraries(program: &Path, module: &Module) -> Vec<(PathBuf, Module)> {
    // Other loaders would run the program instead of listing its libraries.
    if !is_glibcs(module) {
        return Vec::new();
    }
    let program = std::path::absolute(program).unwrap_or_else(|_| program.to_owned());
    let told = Command::new(program)
        .env("LD_TRACE_LOADED_OBJECTS", "1")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let told = told.map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&told)
        .lines()
        .filter_map(|line| {
            // name => /path (0xaddress), or /path (0xaddress)
            let right = line.split_once("=>").map_or(line, |(_, right)| right);
            let path = PathBuf::from(right.rsplit_once(" (0x")?.0.trim());
            let module = path
                .is_absolute()
                .then(|| symbols::read(&path).ok())
                .flatten()??;
            Some((path, module))
        })
        .collect()
}
