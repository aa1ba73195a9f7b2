//! Manual pages and completions: complete, and accepted by their readers.

use crate::support;

use std::process::Command;

use support::{said, undertick};

fn commands() -> Vec<String> {
    let (code, help) = said(&undertick(&["--help"]));
    assert_eq!(code, 0);
    let list = help.split("\nOptions:\n").next().unwrap();
    let names = list
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    let names: Vec<String> = names.filter(|n| *n != "help").map(str::to_owned).collect();
    assert!(names.len() >= 20, "{names:?}");
    names
}

#[test]
fn every_command_has_a_page() {
    let dir = tempfile::tempdir().unwrap();
    let (code, text) = said(&undertick(&["man", "--dir", dir.path().to_str().unwrap()]));
    assert_eq!(code, 0, "{text}");
    let page = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    let whole = page("undertick.1");
    for command in commands() {
        let text = page(&format!("undertick-{command}.1"));
        assert!(text.contains(".SH DESCRIPTION") && text.contains(".SH SYNOPSIS"));
        assert!(
            whole.contains(&command),
            "undertick.1 does not name {command}"
        );
    }
    let record = page("undertick-record.1");
    assert!(record.contains("perturbation") && record.contains("Examples:"));
    for file in std::fs::read_dir(dir.path()).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        assert!(!name.contains("__"), "{name} is nobody's business");
        accepted_by_man(&dir.path().join(name));
    }
}

/// Asserts that `man` formats the page without warnings.
fn accepted_by_man(page: &std::path::Path) {
    let Ok(done) = Command::new("man")
        .args(["--warnings", "-l"])
        .arg(page)
        .output()
    else {
        println!("skipped: no man here");
        return;
    };
    let complaint = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success() && complaint.is_empty(),
        "{}: {complaint}",
        page.display()
    );
    assert!(String::from_utf8_lossy(&done.stdout).contains("SYNOPSIS"));
}

#[test]
fn bash_completes_commands_and_options() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("undertick.bash");
    let output = undertick(&["completions", "bash"]);
    assert_eq!(output.status.code(), Some(0));
    std::fs::write(&script, &output.stdout).unwrap();
    let complete = |line: &str, at: usize| {
        let ask = format!(
            "set -eu; . {}; COMP_WORDS=({line}); COMP_CWORD={at}; COMPREPLY=(); \
             word=${{COMP_WORDS[$COMP_CWORD]}}; \
             _undertick undertick \"$word\" \"${{COMP_WORDS[$((COMP_CWORD - 1))]}}\"; echo \"${{COMPREPLY[*]}}\"",
            script.display()
        );
        let done = Command::new("bash").args(["--norc", "-c", &ask]).output();
        let Ok(done) = done else {
            println!("skipped: no bash here");
            return None;
        };
        assert!(
            done.status.success() && done.stderr.is_empty(),
            "{}",
            said(&done).1
        );
        Some(said(&done).1.trim().to_owned())
    };
    if let Some(found) = complete("undertick repo", 1) {
        assert_eq!(found, "report");
        assert_eq!(complete("undertick report --ht", 2).unwrap(), "--html");
        assert!(!complete("undertick ''", 1).unwrap().contains("__"));
    }
}

#[test]
fn every_shell_has_a_script() {
    for (shell, word) in [
        ("zsh", "#compdef undertick"),
        ("fish", "complete -c undertick"),
        ("elvish", "edit:completion"),
        ("powershell", "Register-ArgumentCompleter"),
    ] {
        let (code, text) = said(&undertick(&["completions", shell]));
        assert_eq!(code, 0, "{text}");
        assert!(
            text.contains(word) && text.contains("perturbation"),
            "{shell}"
        );
        assert!(
            !text.contains("__demo-workload"),
            "{shell} shows hidden commands"
        );
    }
    support::refused(&undertick(&["completions", "tcsh"]), 2, &["bash", "fish"]);
}
