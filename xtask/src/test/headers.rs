//! Tests of the header under strict compilers.

use super::Count;
use crate::run::{Scratch, command, exists, root, run};

/// Compiles `undertick.h` with the compilers and languages that it supports.
pub(super) fn compilers(count: &mut Count) {
    let Ok(scratch) = Scratch::new("header") else {
        return count.skip("no temporary directory for the header's tests");
    };
    let program = root().join("crates/record/tests/programs/writer.c");
    let cpp = scratch.path("writer.cpp");
    let minimal = "#include \"undertick.h\"\nint main() { undertick::span s(1); ut_name(1, \"x\"); ut_event64(2, 3); return ut_enabled(); }\n";
    if let Err(error) = std::fs::write(&cpp, minimal) {
        return count.step(Err(error.to_string()));
    }
    let warnings = [
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Wshadow",
        "-Wconversion",
        "-Werror",
        "-DUNDERTICK_OWN_WARNINGS",
        "-O2",
        "-pthread",
        "-Iinclude",
    ];
    for (compiler, standard, source) in [
        ("gcc", "-std=c11", program.to_str().unwrap_or_default()),
        ("gcc", "-std=gnu17", program.to_str().unwrap_or_default()),
        ("g++", "-std=c++17", cpp.as_str()),
        ("g++", "-std=c++20", cpp.as_str()),
        ("clang", "-std=c11", program.to_str().unwrap_or_default()),
        ("clang++", "-std=c++17", cpp.as_str()),
    ] {
        if !exists(&[compiler, "--version"]) {
            count.skip(&format!("no {compiler} here"));
            continue;
        }
        for extra in [
            &["-fPIC"][..],
            &["-DUNDERTICK_DISABLE"][..],
            &["-finstrument-functions"][..],
        ] {
            let out = scratch.path("program");
            let mut words = vec![compiler, standard];
            words.extend(warnings);
            words.extend(extra);
            words.extend([source, "-o", out.as_str(), "-ldl"]);
            count.step(run(command(&words)));
        }
    }
}

/// Compiles with the strictest warnings as errors: the header must cause none, whatever a program
/// uses of it.
pub(super) fn strict(count: &mut Count) {
    const USES: &str = "#include \"undertick.h\"\nint main(void) { ut_name(1, \"x\"); ut_thread_name(\"y\"); ut_event(1, 2); \
        ut_event64(1, 2); ut_begin(1); ut_next(1, 2); ut_end(2); ut_begin_ordered(1); ut_end_ordered(1); \
        ut_begin_sampled(3); ut_end_sampled(3); ut_pair(4); return ut_enabled(); }\n";
    const GCC: &str = "-Wall -Wextra -Wpedantic -Wcast-qual -Wcast-align -Wshadow -Wstrict-aliasing=1 -Wswitch-enum \
        -Wundef -Wpointer-arith -Wvla -Wformat=2 -Winit-self -Wfloat-equal -Wwrite-strings -Wredundant-decls \
        -Wmissing-declarations -Wconversion -Wsign-conversion -Wunused -Winline -Wpadded -Wcast-align=strict";
    const GCC_C: &str = "-Wmissing-prototypes -Wstrict-prototypes -Wc++-compat -Wdeclaration-after-statement -Wnested-externs";
    const GCC_CPP: &str =
        "-Wold-style-cast -Wuseless-cast -Wzero-as-null-pointer-constant -Weffc++";
    let Ok(scratch) = Scratch::new("strict") else {
        return count.skip("no temporary directory for the header's tests");
    };
    for (compiler, standard, name, flags) in [
        ("gcc", "-std=c11", "uses.c", [GCC, GCC_C]),
        ("g++", "-std=c++17", "uses.cpp", [GCC, GCC_CPP]),
        ("clang", "-std=c11", "uses.c", ["-Weverything", ""]),
        ("clang++", "-std=c++17", "uses.cpp", ["-Weverything", ""]),
    ] {
        let source = scratch.path(name);
        if let Err(error) = std::fs::write(&source, USES) {
            return count.step(Err(error.to_string()));
        }
        if !exists(&[compiler, "--version"]) {
            count.skip(&format!("no {compiler} here"));
            continue;
        }
        for build in ["-DNDEBUG", "-DUNDERTICK_DISABLE", "-DUNDERTICK_CARD=0x1000"] {
            let out = scratch.path("uses.o");
            let mut words = vec![compiler, standard, "-O2", "-Werror", "-Iinclude", build];
            words.extend(flags.iter().flat_map(|flags| flags.split_whitespace()));
            words.extend(["-c", source.as_str(), "-o", out.as_str()]);
            count.step(run(command(&words)));
        }
    }
}
