//! Symbols of files that a compiler made, and tables that programs may damage.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use undertick_functions::symbols::{self, Function, Instrumented, Module};
use undertick_functions::{filter, table};

fn compile(dir: &Path, name: &str, texts: &[&str], words: &[&str]) -> PathBuf {
    let out = dir.join(name);
    let mut command = Command::new("cc");
    command.args(words).arg("-o").arg(&out);
    for (i, text) in texts.iter().enumerate() {
        let source = dir.join(format!("{name}{i}.c"));
        fs::write(&source, text).unwrap();
        command.arg(source);
    }
    assert!(command.status().expect("a C compiler").success());
    out
}

fn read(path: &Path) -> Module {
    symbols::read(path).unwrap().expect("an ELF file")
}

fn names(module: &Module) -> Vec<&str> {
    module.functions.iter().map(|f| f.name.as_str()).collect()
}

#[test]
fn what_a_file_says_of_itself() {
    let dir = tempfile::tempdir().unwrap();
    let text = "int main(void) { return 0; }\n";
    let hooks = "void __cyg_profile_func_enter(void *f, void *s) { (void)f; (void)s; }\n\
        void __cyg_profile_func_exit(void *f, void *s) { (void)f; (void)s; }\n";
    let of = |words: &[&str], texts: &[&str]| read(&compile(dir.path(), "p", texts, words));
    let plain = of(&[], &[text]);
    assert_eq!(
        (plain.instrumented, plain.is_static),
        (Instrumented::No, false)
    );
    assert!(plain.is_for_this_machine && plain.has_all_symbols && plain.functions.is_empty());
    assert!(
        plain
            .interpreter
            .as_deref()
            .is_some_and(|loader| loader.contains("/ld-"))
    );
    let hooked = of(&["-finstrument-functions"], &[text]);
    assert_eq!(hooked.instrumented, Instrumented::Yes);
    assert!(names(&hooked).contains(&"main"));
    let stripped = of(&["-finstrument-functions", "-s"], &[text]);
    assert_eq!(
        (stripped.instrumented, stripped.has_all_symbols),
        (Instrumented::Yes, false)
    );
    for words in [&["-static"][..], &["-static-pie"]] {
        let fixed = of(words, &[text]);
        assert_eq!(
            (fixed.is_static, fixed.interpreter),
            (true, None),
            "{words:?}"
        );
    }
    let library = of(&["-shared", "-fPIC"], &["int f(void) { return 1; }\n"]);
    assert!(!library.is_static && library.interpreter.is_none());
    assert_eq!(
        of(&["-rdynamic"], &[text, hooks]).instrumented,
        Instrumented::OwnHooks
    );
    let ours = format!("{hooks}const char undertick_functions_version[] = \"1\";\n");
    assert_eq!(of(&[], &[text, &ours]).instrumented, Instrumented::Ours);
}

/// Static functions of one name, and two names of one function.
#[test]
fn names_are_unique_in_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let part = |n: u32| {
        format!(
            "static __attribute__((noinline)) int twice(int x) {{ return x + {n}; }}\nint part{n}(int x) {{ return twice(x); }}\n"
        )
    };
    let main = "int part1(int); int part2(int);\nint alias(int) __attribute__((alias(\"behind\")));\n\
        int behind(int x) { return x; }\nint main(void) { return part1(1) + part2(2) + alias(3); }\n";
    let path = compile(
        dir.path(),
        "p",
        &[&part(1), &part(2), main],
        &["-O1", "-finstrument-functions"],
    );
    let module = read(&path);
    let all = names(&module);
    for expected in [
        "twice (p0.c)",
        "twice (p1.c)",
        "part1",
        "part2",
        "alias",
        "main",
    ] {
        assert_eq!(
            all.iter().filter(|&&name| name == expected).count(),
            1,
            "{expected} in {all:?}"
        );
    }
    let alias = module.functions.iter().find(|f| f.name == "alias").unwrap();
    assert_eq!(alias.symbols, ["alias", "behind"]);
    // nm reads the same file independently.
    let nm = String::from_utf8(Command::new("nm").arg(&path).output().unwrap().stdout).unwrap();
    for name in ["main", "part1", "part2", "behind"] {
        let line = nm
            .lines()
            .find(|line| line.ends_with(&format!(" {name}")))
            .unwrap();
        let address = u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap();
        let function = module
            .functions
            .iter()
            .find(|f| f.symbols.iter().any(|s| s == name));
        assert_eq!(function.unwrap().offset, address, "{name}");
    }
    assert!(
        module
            .functions
            .is_sorted_by_key(|function| function.offset)
    );
}

#[test]
fn damaged_files_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let path = compile(
        dir.path(),
        "p",
        &["int main(void) { return 0; }\n"],
        &["-finstrument-functions"],
    );
    let whole = fs::read(&path).unwrap();
    assert!(symbols::read(&dir.path().join("none")).is_err());
    fs::write(&path, "#!/bin/sh\n").unwrap();
    assert!(symbols::read(&path).unwrap().is_none());
    // A file is cut anywhere, or any byte of its headers is changed: no panic.
    for i in 0..400 {
        fs::write(&path, &whole[..whole.len() * i / 400]).unwrap();
        let _ = symbols::read(&path);
        let mut turned = whole.clone();
        let place = if i < 64 {
            i
        } else {
            whole.len() - 1 - (i - 64) * 5
        };
        turned[place] ^= 0xff;
        fs::write(&path, turned).unwrap();
        let _ = symbols::read(&path);
    }
}

fn module(names: &[&str]) -> Module {
    let functions = names.iter().enumerate().map(|(i, name)| Function {
        offset: 16 * (i as u64 + 1),
        name: (*name).to_owned(),
        symbols: vec![(*name).to_owned()],
    });
    Module {
        instrumented: Instrumented::Yes,
        interpreter: None,
        is_static: false,
        is_for_this_machine: true,
        has_all_symbols: true,
        functions: functions.collect(),
    }
}

/// Writes a table by hand as docs/format.md defines it.
fn table_file(entries: &[(u64, u32, &str)], file: &str) -> Vec<u8> {
    let mut texts = 32 + 24 * entries.len() as u64;
    let mut bytes = b"UTTBFN01".to_vec();
    bytes.extend((entries.len() as u64).to_le_bytes());
    bytes.extend(texts.to_le_bytes());
    bytes.extend((file.len() as u64).to_le_bytes());
    texts += file.len() as u64;
    for (offset, event, name) in entries {
        bytes.extend(offset.to_le_bytes());
        bytes.extend(event.to_le_bytes());
        bytes.extend((name.len() as u32).to_le_bytes());
        bytes.extend(texts.to_le_bytes());
        texts += name.len() as u64;
    }
    bytes.extend(file.as_bytes());
    entries
        .iter()
        .for_each(|(_, _, name)| bytes.extend(name.as_bytes()));
    bytes
}

const FIRST: &str = "functions-0000000000000001-0000000000000002";
const SECOND: &str = "functions-0000000000000001-0000000000000003";

#[test]
fn tables_are_read_as_the_format_says() {
    let dir = tempfile::tempdir().unwrap();
    let first = [
        (16, 0x8000, "init"),
        (32, 0, "never"),
        (48, 0xffff, "last"),
        (64, 0x1_0000, "beyond"),
        (80, 7, "spoilt"),
    ];
    fs::write(dir.path().join(FIRST), table_file(&first, "a")).unwrap();
    fs::write(
        dir.path().join(SECOND),
        table_file(&[(16, 0x8001, "init")], "b"),
    )
    .unwrap();
    fs::write(dir.path().join("functions-asked"), "no table").unwrap();
    let called: Vec<_> = table::called(dir.path())
        .into_iter()
        .map(|c| (c.event, c.name))
        .collect();
    let expected = [(0x8000, "init (a)"), (0xffff, "last"), (0x8001, "init (b)")];
    assert_eq!(
        called,
        expected.map(|(event, name)| (event, name.to_owned()))
    );
}

/// Programs can write to the tables: whatever they write is harmless.
#[test]
fn spoilt_tables_do_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FIRST);
    let whole = table_file(&[(16, 0x8000, "init"), (32, 0x8001, "next")], "a");
    for i in 0..whole.len() {
        fs::write(&path, &whole[..i]).unwrap();
        let _ = table::called(dir.path());
        for value in [0, 0x7f, 0x80, 0xff] {
            let mut spoilt = whole.clone();
            spoilt[i] = value;
            fs::write(&path, spoilt).unwrap();
            let _ = table::called(dir.path());
        }
    }
}

#[test]
fn the_filter_counts_what_it_takes() {
    let module = module(&["parse_a", "parse_b", "send"]);
    for (text, expected) in [("", 3), ("^parse_", 2), ("_b$|send", 2), ("none", 0)] {
        assert_eq!(
            table::wanted(&module, &filter(text).unwrap()),
            expected,
            "{text}"
        );
    }
    assert!(
        filter("(")
            .unwrap_err()
            .to_string()
            .contains("--functions \"(\"")
    );
}
