//! Tokio's unstable callbacks, and platforms on which nothing is recorded: programs build there all the same, but for 32-bit Linux, where
//! the header and the crate refuse in words.

use super::Count;
use crate::run::{command, exists, line, root, run};

const REFUSED: &str = "32-bit programs cannot be recorded";
const ELSEWHERE: [&str; 2] = ["x86_64-pc-windows-gnu", "riscv64gc-unknown-linux-gnu"];
const NARROW: &str = "i686-unknown-linux-gnu";

pub(super) fn all(count: &mut Count) {
    unstable_tokio(count);
    if cfg!(target_arch = "x86_64") && exists(&["cc", "--version"]) {
        narrow_header(count);
    } else {
        count.skip("no compiler of C for x86-64 here");
    }
    for target in ELSEWHERE {
        if has_target(target, count) {
            count.step(run(command(&check(target))));
        }
    }
    if has_target(NARROW, count) {
        count.step(refused(&check(NARROW)));
        let disabled = [&check(NARROW)[..], &["--features", "disable"]].concat();
        count.step(run(command(&disabled)));
    }
}

/// The tests of the crate for Tokio where Tokio is compiled with its unstable callbacks, in a directory of its
/// builds. The tests find the program beside themselves.
fn unstable_tokio(count: &mut Count) {
    let dir = root().join("target/tokio_unstable");
    let beside = dir.join("release/undertick");
    let linked = std::fs::create_dir_all(dir.join("release")).and_then(|()| {
        let _ = std::fs::remove_file(&beside);
        std::os::unix::fs::symlink(root().join("target/release/undertick"), &beside)
    });
    if let Err(error) = linked {
        return count.step(Err(format!("{}: {error}", beside.display())));
    }
    let mut tests = line(
        "cargo test --release --locked -p undertick-tokio --target-dir target/tokio_unstable --test recorded",
        &[],
    );
    tests.env("RUSTFLAGS", "--cfg tokio_unstable");
    count.tests(tests);
}

/// The header, read by a compiler for 32 bits; the C library for it need not be there.
fn narrow_header(count: &mut Count) {
    for option in ["-m32", "-mx32"] {
        let words = ["cc", "-Iinclude", option, "-E", "-x", "c"];
        let words = [&words[..], &["-include", "undertick.h", "/dev/null"]].concat();
        count.step(refused(&words));
        let disabled = [&words[..], &["-DUNDERTICK_DISABLE"]].concat();
        count.step(match refused(&disabled) {
            Err(_) => Ok(()),
            Ok(()) => Err(format!(
                "refused although it is disabled: {}",
                disabled.join(" ")
            )),
        });
    }
}

/// Whether Rust can compile for a target here; counts a skip where it cannot.
pub(super) fn has_target(target: &str, count: &mut Count) -> bool {
    let has = exists(&["rustup", "target", "add", target]);
    if !has {
        count.skip(&format!("the {target} target cannot be installed here"));
    }
    has
}

fn check(target: &str) -> [&str; 8] {
    [
        "cargo",
        "check",
        "--release",
        "--locked",
        "--target",
        target,
        "-p",
        "undertick",
    ]
}

/// Checks that a command fails and says why.
fn refused(words: &[&str]) -> Result<(), String> {
    let said = command(words).output().map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&said.stderr);
    match !said.status.success() && text.contains(REFUSED) {
        true => Ok(()),
        false => Err(format!("{}: {text}", words.join(" "))),
    }
}
