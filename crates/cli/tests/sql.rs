//! `undertick sql` calls the Python package; the package's tests check its answers
//! (python/tests/test_sql.py).

use crate::support;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use support::{refused, said, undertick};

fn sql(python: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_undertick"))
        .arg("sql")
        .args(words)
        .env("UNDERTICK_PYTHON", python)
        .output()
        .unwrap()
}

#[test]
fn without_the_package_it_says_what_to_install() {
    for python in ["/bin/false", "/nowhere/python"] {
        let refusal = sql(Path::new(python), &["run.ut", "select 1"]);
        refused(&refusal, 1, &[python, "pip install", "UNDERTICK_PYTHON"]);
    }
    refused(&undertick(&["sql"]), 2, &["NAME.ut"]);
    let (code, text) = said(&undertick(&["sql", "--help"]));
    assert_eq!(code, 0);
    assert!(text.contains("select name, count(*)"), "{text}");
}

/// An interpreter that prints its arguments.
#[test]
fn all_words_are_handed_on() {
    let dir = tempfile::tempdir().unwrap();
    let (written, python) = (dir.path().join("written"), dir.path().join("python"));
    let script =
        "#!/bin/sh\n[ \"$1\" = -c ] && exit 0\nfor word; do echo \"<$word>\"; done\nexit 7\n";
    std::fs::write(&written, script).unwrap();
    support::copy_program(&written, &python);
    std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (code, text) = said(&sql(
        &python,
        &["a b.ut", "select 1, '--json'", "--json", "--csv"],
    ));
    assert_eq!(code, 7, "{text}");
    assert_eq!(
        text,
        "<-m>\n<undertick>\n<sql>\n<a b.ut>\n<select 1, '--json'>\n<--json>\n<--csv>\n"
    );
}
