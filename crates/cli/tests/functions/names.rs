//! Names of functions: what the filter takes, how they are shown, and more of them than numbers.

use std::fs;

use super::support::{said, undertick};
use super::{CPP, PROGRAM, build, calls, known, record, text};

#[test]
fn the_filter_takes_names_and_symbols() {
    let dir = tempfile::tempdir().unwrap();
    let c = build(dir.path(), "c", PROGRAM, &["cc", "-O2"]);
    let cpp = build(dir.path(), "cpp", CPP, &["c++", "-O1"]);
    for (filter, program, expected) in [
        (
            "^in_(thread|child)$",
            &c,
            known(&[("in_thread", 4000, 0), ("in_child", 9, 0)]),
        ),
        // The same address has a second name.
        ("same_address", &c, known(&[("another_name", 5, 0)])),
        (
            "shop::price",
            &cpp,
            known(&[
                ("shop::price(int)", 50, 0),
                ("shop::price(std::string const&)", 60, 0),
            ]),
        ),
        // The name in the linker's table.
        (
            "^_ZN4shop5priceEi",
            &cpp,
            known(&[("shop::price(int)", 50, 0)]),
        ),
        (
            r"Shelf<int, int>::put",
            &cpp,
            known(&[("shop::Shelf<int, int>::put(int const&, int)", 30, 0)]),
        ),
        // Text that the shown name omits.
        (
            r"basic_string<char.*allocator<char> > const&\)$",
            &cpp,
            known(&[("shop::price(std::string const&)", 60, 0)]),
        ),
        (
            "throws|Early::Early",
            &cpp,
            known(&[("shop::throws(int)", 80, 0), ("shop::Early::Early()", 1, 0)]),
        ),
    ] {
        let trace = dir.path().join("t.ut");
        let (code, told) = said(&record(&trace, filter, &[], &[text(program)]));
        assert_eq!(code, 0, "{told}");
        assert_eq!(calls(&trace), expected, "{filter}");
        fs::remove_dir_all(&trace).unwrap();
    }
}

/// Names of C++ in the table and on the page are short enough, and contain no markup.
#[test]
fn long_names_are_readable() {
    let dir = tempfile::tempdir().unwrap();
    let program = build(dir.path(), "program", CPP, &["c++", "-O1"]);
    let (trace, page) = (dir.path().join("t.ut"), dir.path().join("page.html"));
    assert_eq!(said(&record(&trace, "shop", &[], &[text(&program)])).0, 0);
    let (code, told) = said(&undertick(&["report", text(&trace), "--html", text(&page)]));
    assert_eq!(code, 0, "{told}");
    assert!(
        told.lines().all(|line| line.chars().count() <= 100),
        "{told}"
    );
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("shop::Shelf&lt;int, int&gt;::put(int const&amp;, int)"));
    assert!(!page.contains("Shelf<int"));
}

/// More functions than numbers: the functions without a number are counted.
#[test]
fn functions_beyond_the_numbers_are_counted() {
    const MORE: usize = 100;
    let dir = tempfile::tempdir().unwrap();
    // Symbols lie a byte apart, with the calls that a compiler would make for them.
    let source = format!(
        "#include <stdint.h>\nextern char f0[];\n\
         void __cyg_profile_func_enter(void *, void *);\nvoid __cyg_profile_func_exit(void *, void *);\n\
         __asm__(\".text\\n.altmacro\\n.macro one n\\n.globl f\\\\n\\n.type f\\\\n, %function\\nf\\\\n: .byte 0\\n.size f\\\\n, 1\\n.endm\\n\"\n\
         \".set i, 0\\n.rept {all}\\none %i\\n.set i, i + 1\\n.endr\\n\");\n\
         __attribute__((no_instrument_function)) int main(void) {{\n\
         for (int k = 0; k < 2; k++) for (int i = 0; i < {all}; i++) {{ __cyg_profile_func_enter(f0 + i, 0); __cyg_profile_func_exit(f0 + i, 0); }}\n\
         return 0; }}\n",
        all = 0x8000 + MORE
    );
    let program = build(dir.path(), "many", &source, &["cc", "-O0"]);
    let trace = dir.path().join("t.ut");
    let (code, told) = said(&record(&trace, "^f", &[], &[text(&program)]));
    assert_eq!(code, 0, "{told}");
    let said = format!(
        "{MORE} functions got no number, since there are 32768: their {} calls",
        2 * MORE
    );
    assert!(told.contains(&said), "{told}");
    // A report has fewer rows than there are functions.
    let manifest = fs::read_to_string(trace.join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["names"].as_array().unwrap().len(), 0x8000);
    assert_eq!(manifest["events"], 2 * 2 * 0x8000);
}
