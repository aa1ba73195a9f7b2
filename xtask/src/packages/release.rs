//! The files of a release: checked, made from a clean copy of the last commit, with checksums.

use std::path::{Path, PathBuf};

use super::{dir, fresh, lacks, text, tool, write};
use crate::exchange::{Outcome, Step};
use crate::run::{self, command, exists, line, output, root, run};

/// The tool that writes the software bill of materials (SBOM).
const CYCLONEDX: (&str, &str) = ("cargo-cyclonedx", "0.5.9");

/// Makes the files of a release in `target/packages/release`.
///
/// `is_draft`: of whatever is there, without asking whether it is ready to be released. `is_compared`: the
/// static program is built twice, in different directories, and must be the same.
pub fn make(is_draft: bool, is_compared: bool) -> Result<(), String> {
    let version = super::version()?;
    if !is_draft {
        ready(&version)?;
    }
    for program in [
        "npm",
        "musl-gcc",
        "dpkg-shlibdeps",
        "cmake",
        "tar",
        "sha256sum",
    ] {
        if lacks(program).is_some() {
            return Err(format!(
                "no {program} here: `cargo xtask packages` installs what it can"
            ));
        }
    }
    let (cyclonedx, of) = CYCLONEDX;
    let cyclonedx = tool(cyclonedx, of, "", &["cyclonedx", "--version"]).ok_or(format!(
        "cargo install {cyclonedx} --version {of}: not possible here"
    ))?;
    let python = crate::python::interpreter().ok_or("no Python with what the wheel needs")?;
    run::build_workspace()?;
    // These leave the Debian package and the tarballs.
    all_pass(super::all())?;
    all_pass(crate::book::all())?;
    let program = program(is_compared)?;
    let release = fresh("release")?;
    archive(&release, &version, &program)?;
    copy(&super::debian::package()?, &release)?;
    crate::python::portable_wheel(&python, &text(&release))?;
    bill_of_materials(&cyclonedx, &release, &version)?;
    for tarball in super::crates::tarballs()? {
        copy(&tarball, &release)?;
    }
    let mut sums = command(&["sh", "-ec", "sha256sum -- *"]);
    sums.current_dir(&release);
    let sums = output(sums)?;
    write(&release.join("SHA256SUMS"), &sums)?;
    println!(
        "\n{sums}\nundertick {version}: {} files in {}",
        sums.lines().count(),
        release.display()
    );
    println!(
        "To publish them:\n  git tag -s v{version} && git push origin v{version}\n  \
         cargo xtask release --publish   # the crates\n  \
         and upload the files to the tag, the wheel to PyPI, too"
    );
    Ok(())
}

/// Publishes the crates of a version that is ready.
pub fn publish() -> Result<(), String> {
    let version = super::version()?;
    let tag = format!("v{version}");
    let at = |what: &str| output(line("git rev-parse --verify --quiet {}", &[what]));
    if at(&format!("{tag}^{{commit}}")).ok() != Some(at("HEAD")?) {
        return Err(format!(
            "HEAD is not {tag}: tag the commit that was released, and check it out"
        ));
    }
    super::crates::publish()
}

/// Whether all steps passed: what was skipped is not known to be right.
fn all_pass(steps: Vec<Step>) -> Result<(), String> {
    let bad: Vec<String> = (steps.into_iter())
        .filter_map(|step| match step.result {
            Ok(Outcome::Said(_)) => None,
            Ok(Outcome::Skipped(why)) => Some(format!("{}: skipped: {why}", step.what)),
            Err(error) => Some(format!("{}: {error}", step.what)),
        })
        // mdBook only draws what the other steps of the book have checked.
        .filter(|said| !said.contains("no mdbook here"))
        .collect();
    match bad.is_empty() {
        true => Ok(()),
        false => Err(format!("not to be released:\n  {}", bad.join("\n  "))),
    }
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
    let page = "docs/book/installing.md";
    if !read(page)?.contains(&format!("undertick/{version}`")) {
        wanting.push(format!("{page} names another version than {version}"));
    }
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
        .map_err(|e| format!("CARGO_HOME and HOME: {e}"))?;
    let sysroot = output(line("rustc --print sysroot", &[]))?;
    let moved = [
        (text(&source), "/undertick"),
        (cargo, "/cargo"),
        (sysroot.trim().to_owned(), "/rust"),
    ];
    let all = |option: &str, between: &str| {
        let words = moved
            .iter()
            .map(|(from, to)| format!("{option}{from}={to}"));
        words.collect::<Vec<_>>().join(between)
    };
    let mut build = line(
        "cargo build --locked --profile dist -p undertick-cli --target {}",
        &[target],
    );
    build.current_dir(&source);
    build.env("CARGO_TARGET_DIR", source.join("target"));
    build.env(
        "CARGO_ENCODED_RUSTFLAGS",
        all("--remap-path-prefix=", "\x1f"),
    );
    build.env("CFLAGS", all("-ffile-prefix-map=", " "));
    run(build)?;
    let built = source.join("target").join(target).join("dist");
    // Without npm the page has no charts, and the build only warns.
    let script = output(line(
        "find {} -name page.js -size +10k",
        &[&text(&built.join("build"))],
    ))?;
    match script.trim().is_empty() {
        true => Err(
            "the static program was built without the page's script: run npm ci in web".to_owned(),
        ),
        false => Ok(built.join("undertick")),
    }
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
        "tar --sort=name --owner=0 --group=0 --numeric-owner --mode=u+rw,go+r,go-w {} -I {} -cf {} {}",
        &[
            &format!("--mtime=@{}", when.trim()),
            "gzip -n",
            &text(&file),
            &name,
        ],
    );
    tar.current_dir(dir().join("archive"));
    run(tar)
}

/// The SBOM of the program, in CycloneDX's format.
fn bill_of_materials(cyclonedx: &str, release: &Path, version: &str) -> Result<(), String> {
    let source = dir().join("source");
    let manifest = text(&source.join("crates/cli/Cargo.toml"));
    let words = "{} cyclonedx --quiet --format json --manifest-path {}";
    run(line(words, &[cyclonedx, &manifest]))?;
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
