//! The packages that are published as crates, built from their own tarballs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{dir, fresh, text, version, write};
use crate::exchange::Outcome;
use crate::run::{exists, line, output, root, run};

/// What programs link.
const LINKED: [&str; 5] = [
    "undertick-ring",
    "undertick",
    "undertick-opentelemetry",
    "undertick-tokio",
    "undertick-tracing",
];
/// The page's script, in the package of `undertick-report` alone.
const SCRIPT: &str = "crates/report/assets/page.js";

/// The page's script in the package of `undertick-report`, as long as this lives: git ignores it.
pub struct Script(PathBuf);

impl Script {
    /// Takes the one that the last build bundled.
    pub fn of_the_build() -> Result<Option<Self>, String> {
        let builds = root().join("target/release/build");
        let when = |script: &PathBuf| std::fs::metadata(script).and_then(|of| of.modified()).ok();
        let bundled = (entries(&builds)?.into_iter())
            .filter(|build| text(build).contains("undertick-report-"))
            .map(|build| build.join("out/page.js"))
            .filter(|script| script.is_file())
            .max_by_key(when);
        let bundled =
            bundled.ok_or("undertick-report was not built: cargo build --release --workspace")?;
        let script = Self(root().join(SCRIPT));
        let bytes = std::fs::copy(&bundled, &script.0)
            .map_err(|e| format!("{}: {e}", bundled.display()))?;
        // Without npm it is empty.
        Ok((bytes > 0).then_some(script))
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Makes the tarballs of all crates, in `target/packages/package`, and unpacks them in
/// `target/packages/crates`.
pub fn made() -> Result<Outcome, String> {
    fresh("package")?;
    let Some(_script) = Script::of_the_build()? else {
        let why =
            "the program was built without the page's script: it needs npm and Node.js 18 or later";
        return Ok(Outcome::Skipped(why.to_owned()));
    };
    let package = "cargo package --quiet --workspace --exclude xtask --exclude undertick-python --no-verify \
                   --allow-dirty --target-dir {}";
    or_online(package, &[&text(&dir())], &root())?;
    let unpacked = text(&fresh("crates")?);
    for tarball in tarballs()? {
        // With today's date: Cargo's tarballs have one of 2006, by which nothing has changed.
        run(line("tar -xmzf {} -C {}", &[&text(&tarball), &unpacked]))?;
    }
    Ok(Outcome::Said(unpacked))
}

/// The tarballs that were made.
pub fn tarballs() -> Result<Vec<PathBuf>, String> {
    let mut made = entries(&dir().join("package"))?;
    made.retain(|path| path.extension().is_some_and(|of| of == "crate"));
    Ok(made)
}

/// Publishes the crates, for which cargo must be logged in.
pub fn publish() -> Result<(), String> {
    let Some(_script) = Script::of_the_build()? else {
        return Err(
            "no page's script: install npm and Node.js 18 or later, and build again".to_owned(),
        );
    };
    let publish = "cargo publish --locked --workspace --exclude xtask --exclude undertick-python";
    run(line(publish, &[]))
}

/// Runs a command of cargo without a network, and with it if that fails.
fn or_online(words: &str, values: &[&str], dir: &Path) -> Result<(), String> {
    let within = |words: &str| {
        let mut command = line(words, values);
        command.current_dir(dir);
        run(command)
    };
    within(&format!("{words} --offline")).or_else(|_| within(words))
}

/// Builds the program from the tarballs alone, without npm.
pub fn build() -> Result<Outcome, String> {
    let unpacked = dir().join("crates");
    let packages = entries(&unpacked)?;
    let names: Vec<&str> = (packages.iter())
        .filter(|path| path.join("Cargo.toml").is_file())
        .filter_map(|path| path.file_name()?.to_str())
        .collect();
    let own = std::fs::read_to_string(root().join("Cargo.toml")).map_err(|e| e.to_string())?;
    let (_, profiles) = own
        .split_once("[profile.release]")
        .ok_or("Cargo.toml: no [profile.release]")?;
    let members = workspace(&names)?.replacen("members = [", "members = [\"same-features\", ", 1);
    let manifest = format!("{members}\n[profile.release]{profiles}");
    write(&unpacked.join("Cargo.toml"), &manifest)?;
    std::fs::copy(root().join("Cargo.lock"), unpacked.join("Cargo.lock"))
        .map_err(|e| e.to_string())?;
    same_features(&unpacked)?;
    let mut build = line(
        "cargo build --release --offline -p undertick-cli -p same-features",
        &[],
    );
    build.current_dir(&unpacked);
    // The program only has to run. The crates of others stay as the tests have compiled them.
    for name in crate_names(&names)? {
        build.args([
            "--config",
            &format!("profile.release.package.{name}.opt-level=0"),
        ]);
    }
    // The crates of others are compiled once for these and for the repository's.
    build.env("CARGO_BUILD_BUILD_DIR", root().join("target"));
    build.env("CARGO_TARGET_DIR", dir().join("built"));
    run(build)?;
    let program = text(&dir().join("built/release/undertick"));
    let header = fresh("header")?;
    output(line("{} header --dir {}", &[&program, &text(&header)]))?;
    let ours = std::fs::read(root().join("include/undertick.h")).map_err(|e| e.to_string())?;
    if std::fs::read(header.join("undertick.h")).map_err(|e| e.to_string())? != ours {
        return Err("the packaged program writes another undertick.h".to_owned());
    }
    Ok(Outcome::Said(format!(
        "{} packages; {}",
        names.len(),
        output(line("{} --version", &[&program]))?.trim()
    )))
}

/// Makes a crate that asks for the features of others' crates that the repository's tests have, so that those
/// crates are not compiled again.
fn same_features(unpacked: &Path) -> Result<(), String> {
    let tree = |of: &str| -> Result<BTreeSet<String>, String> {
        let words = format!("cargo tree --locked --prefix none --format {{}} {of}");
        let tree = output(line(&words, &["{p} {f}"]))?;
        Ok(tree
            .lines()
            .map(|line| line.trim_end_matches(" (*)").to_owned())
            .collect())
    };
    let (tests, ours) = (
        tree("--workspace -e all")?,
        tree("-p undertick-cli -e normal,build")?,
    );
    let package = |line: &str| line.splitn(3, ' ').take(2).collect::<Vec<_>>().join(" ");
    let others: BTreeSet<String> = ours.difference(&tests).map(|line| package(line)).collect();
    let wanted = tests.iter().filter_map(|line| {
        let mut words = line.split(' ');
        let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
        let features = words.next_back().unwrap_or_default().split(',');
        let features: Vec<&str> = features.filter(|one| !one.is_empty()).collect();
        let wanted = format!("{name} = {{ version = \"={version}\", default-features = false, features = {features:?} }}\n");
        others.contains(&package(line)).then_some(wanted)
    });
    let wanted: String = wanted.collect();
    let member = unpacked.join("same-features");
    std::fs::create_dir_all(member.join("src"))
        .map_err(|e| format!("{}: {e}", member.display()))?;
    write(&member.join("src/lib.rs"), "")?;
    // Macros and build scripts have features of their own.
    let manifest = format!(
        "[package]\nname = \"same-features\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n\
         [dependencies]\n{wanted}\n[build-dependencies]\n{wanted}"
    );
    write(&member.join("Cargo.toml"), &manifest)?;
    write(&member.join("build.rs"), "fn main() {}\n")
}

/// Compiles what programs link by the oldest compiler that their manifests allow.
pub fn by_the_msrv() -> Result<Outcome, String> {
    let place = fresh("msrv")?;
    let names = LINKED.map(|name| Ok::<_, String>(format!("{name}-{}", version()?)));
    let names: Vec<String> = names.into_iter().collect::<Result<_, _>>()?;
    let mut versions = Vec::new();
    for name in &names {
        run(line(
            "cp -r {} {}",
            &[&text(&dir().join("crates").join(name)), &text(&place)],
        ))?;
        versions.push(compiler_of(&place.join(name).join("Cargo.toml"))?);
    }
    versions.dedup();
    let [version] = versions.as_slice() else {
        return Err(format!("{LINKED:?} have different MSRVs: {versions:?}"));
    };
    let toolchain = format!("{version}.0");
    let is_there = ["rustup", "run", &toolchain, "rustc", "--version"];
    let install = "rustup toolchain install --profile minimal {}";
    if !exists(&is_there) && run(line(install, &[&toolchain])).is_err() {
        let why = format!("no Rust {toolchain}: rustup toolchain install {toolchain}");
        return Ok(Outcome::Skipped(why));
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    write(&place.join("Cargo.toml"), &workspace(&names)?)?;
    or_online("cargo generate-lockfile --quiet", &[], &place)?;
    let check = "rustup run {} cargo check --quiet --locked --workspace --target-dir target";
    for features in ["", " --all-features"] {
        let mut check = line(&format!("{check}{features}"), &[&toolchain]);
        check.current_dir(&place);
        run(check)?;
    }
    Ok(Outcome::Said(format!(
        "{} by Rust {toolchain}",
        LINKED.join(", ")
    )))
}

/// The manifest of a workspace in which packages use each other instead of what is published.
fn workspace(names: &[&str]) -> Result<String, String> {
    let mut manifest =
        format!("[workspace]\nresolver = \"2\"\nmembers = {names:?}\n\n[patch.crates-io]\n");
    for (package, name) in names.iter().zip(crate_names(names)?) {
        manifest += &format!("{name} = {{ path = \"{package}\" }}\n");
    }
    Ok(manifest)
}

/// The names of crates, from those of their packages, which end with the version.
fn crate_names<'a>(packages: &[&'a str]) -> Result<Vec<&'a str>, String> {
    let ending = format!("-{}", version()?);
    let name = |package: &&'a str| {
        package
            .strip_suffix(&ending)
            .ok_or_else(|| format!("{package}: not of version {ending}"))
    };
    packages.iter().map(name).collect()
}

/// The compiler that a manifest names.
fn compiler_of(manifest: &Path) -> Result<String, String> {
    let text =
        std::fs::read_to_string(manifest).map_err(|e| format!("{}: {e}", manifest.display()))?;
    (text
        .lines()
        .find_map(|line| line.strip_prefix("rust-version = ")))
    .map(|version| version.trim_matches('"').to_owned())
    .ok_or_else(|| format!("{}: no rust-version", manifest.display()))
}

fn entries(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let all = std::fs::read_dir(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let mut paths: Vec<PathBuf> = all.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}
