//! What is published for a version: checked, made from a clean copy of the last commit, and listed with sums.

use std::path::{Path, PathBuf};

use super::{dir, fresh, text, tool, write};
use crate::run::{self, command, exists, line, output, root, run};

/// The tool that writes the list of components.
const CYCLONEDX: (&str, &str) = ("cargo-cyclonedx", "0.5.9");

/// Checks that the last commit can be released, and makes what users download in
/// `target/packages/release`. `is_compared`: the program is built twice, in different directories, and must
/// be the same.
pub fn make(is_compared: bool) -> Result<(), String> {
    let version = super::version()?;
    ready(&version)?;
    let program = program(is_compared)?;
    super::crates::made()?;
    run::build_workspace()?;
    super::installed()?;
    let release = fresh("release")?;
    archive(&release, &version, &program)?;
    let wheel = crate::python::wheel_for_others(&text(&release))?;
    if let Some(package) = super::debian::made()? {
        copy(&package, &release)?;
    }
    bill_of_materials(&release, &version)?;
    for tarball in super::crates::entries(&dir().join("package"))? {
        if tarball.extension().is_some_and(|of| of == "crate") {
            copy(&tarball, &release)?;
        }
    }
    let mut sums = command(&["sh", "-ec", "sha256sum *"]);
    sums.current_dir(&release);
    let sums = output(sums)?;
    write(&release.join("SHA256SUMS"), &sums)?;
    println!(
        "\n{sums}\nundertick {version} is in {}: {} files, {wheel}",
        release.display(),
        sums.lines().count()
    );
    println!(
        "Now, as cargo, git and twine ask for your secrets:\n  git tag -s v{version} && git push origin v{version}\n  \
         cargo publish --workspace --exclude xtask --exclude undertick-python\n  \
         and upload what lies there with the tag; the wheel goes to PyPI, too"
    );
    Ok(())
}

/// Checks everything about a version that is written by hand.
fn ready(version: &str) -> Result<(), String> {
    let read =
        |file: &str| std::fs::read_to_string(root().join(file)).map_err(|e| format!("{file}: {e}"));
    let mut wanting = Vec::new();
    if !output(line("git status --porcelain", &[]))?.is_empty() {
        wanting.push("the working tree has changes: commit them".to_owned());
    }
    if exists(&[
        "git",
        "rev-parse",
        "--verify",
        "--quiet",
        &format!("refs/tags/v{version}"),
    ]) {
        wanting.push(format!(
            "v{version} is released: raise the version in Cargo.toml"
        ));
    }
    wanting.extend(of_changelog(&read("CHANGELOG.md")?, version));
    wanting.extend(of_manifest(&read("Cargo.toml")?, version));
    match wanting.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "not ready to be released:\n  {}",
            wanting.join("\n  ")
        )),
    }
}

/// What a changelog lacks for a version.
fn of_changelog(text: &str, version: &str) -> Option<String> {
    let heading = |line: &&str| line.starts_with("## ");
    let first = text.lines().find(heading).unwrap_or_default();
    let is_dated = first
        .strip_prefix(&format!("## {version} - "))
        .is_some_and(|date| {
            let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
            let parts: Vec<&str> = date.split('-').collect();
            parts.iter().map(|part| part.len()).eq([4, 2, 2]) && parts.into_iter().all(digits)
        });
    (!is_dated).then(|| {
        format!("CHANGELOG.md begins with {first:?}: name the version and the day, \"## {version} - YYYY-MM-DD\"")
    })
}

/// Crates of ours that are asked for in another version.
fn of_manifest(text: &str, version: &str) -> Vec<String> {
    let asked = |line: &str| {
        let (name, rest) = line.split_once(" = { path = ")?;
        let (_, of) = rest.split_once("version = \"")?;
        Some((
            name.to_owned(),
            of.split('"').next().unwrap_or_default().to_owned(),
        ))
    };
    (text.lines().filter_map(asked))
        .filter(|(_, of)| of != version)
        .map(|(name, of)| format!("Cargo.toml asks for {name} {of}, not {version}"))
        .collect()
}

/// The program as it is handed out: static, without what only a debugger reads, and without the
/// directories of this machine.
fn program(is_compared: bool) -> Result<PathBuf, String> {
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    run(line("rustup target add {}", &[&target]))?;
    let one = built(&target, "source")?;
    if is_compared {
        let other = built(&target, "source-in-another-directory")?;
        run(line("cmp {} {}", &[&text(&one), &text(&other)]))?;
        println!("built twice, and equal");
    }
    Ok(one)
}

/// Builds the program from a clean copy of the last commit.
fn built(target: &str, name: &str) -> Result<PathBuf, String> {
    let source = fresh(name)?;
    run(line("git clone --quiet . {}", &[&text(&source)]))?;
    let cargo = std::env::var("CARGO_HOME")
        .or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")))
        .map_err(|e| format!("HOME: {e}"))?;
    let sysroot = output(line("rustc --print sysroot", &[]))?;
    let moved = [
        (text(&source), "/undertick"),
        (cargo, "/cargo"),
        (sysroot.trim().to_owned(), "/rust"),
    ];
    let all = |option: &str| {
        let words = moved
            .iter()
            .map(|(from, to)| format!("{option}{from}={to}"));
        words.collect::<Vec<_>>().join(" ")
    };
    let mut build = line(
        "cargo build --locked --profile dist -p undertick-cli --target {}",
        &[target],
    );
    build.current_dir(&source);
    build.env("CARGO_TARGET_DIR", source.join("target"));
    build.env("RUSTFLAGS", all("--remap-path-prefix="));
    build.env("CFLAGS", all("-ffile-prefix-map="));
    run(build)?;
    Ok(source.join("target").join(target).join("dist/undertick"))
}

/// The archive that `cargo binstall` takes: program, header, manual pages, completions, licences.
fn archive(release: &Path, version: &str, program: &Path) -> Result<(), String> {
    let name = format!("undertick-{version}");
    let within = fresh("archive")?.join(&name);
    run(line(
        "cp -r {} {}",
        &[&text(&dir().join("installed")), &text(&within)],
    ))?;
    copy(program, &within)?;
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&root().join(licence), &within)?;
    }
    let file = release.join(format!("{name}-{}-linux.tar.gz", std::env::consts::ARCH));
    let when = output(line("git log -1 --format=%ct", &[]))?;
    // Equal files make an equal archive.
    let mut tar = line(
        "tar --sort=name --owner=0 --group=0 --numeric-owner --mode=u+rw,go+r,go-w {} -czf {} {}",
        &[&format!("--mtime=@{}", when.trim()), &text(&file), &name],
    );
    tar.env("GZIP", "-n");
    tar.current_dir(dir().join("archive"));
    run(tar)
}

/// The list of everything that the program is made of, in CycloneDX's format.
fn bill_of_materials(release: &Path, version: &str) -> Result<(), String> {
    let (name, of) = CYCLONEDX;
    let Some(cyclonedx) = tool(name, of, "") else {
        return Err(format!("{name} {of} cannot be installed here"));
    };
    let source = dir().join("source");
    let manifest = text(&source.join("crates/cli/Cargo.toml"));
    run(line(
        "{} cyclonedx --quiet --format json --manifest-path {}",
        &[&cyclonedx, &manifest],
    ))?;
    let made = source.join("crates/cli/undertick-cli.cdx.json");
    let list = release.join(format!("undertick-{version}.cdx.json"));
    std::fs::copy(&made, &list).map_err(|e| format!("{}: {e}", made.display()))?;
    Ok(())
}

/// Copies a file into a directory.
fn copy(file: &Path, to: &Path) -> Result<(), String> {
    let name = file.file_name().unwrap_or_default();
    std::fs::copy(file, to.join(name)).map_err(|e| format!("{}: {e}", file.display()))?;
    Ok(())
}

#[cfg(test)]
mod tests;
