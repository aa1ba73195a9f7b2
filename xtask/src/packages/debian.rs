//! The Debian package, in a system that has nothing but what Debian calls essential.

use std::path::{Path, PathBuf};

use super::{dir, fresh, lacks, text, tool, version};
use crate::exchange::Outcome;
use crate::run::{Scratch, command, exists, line, output, root, run};

/// The tool that makes the package.
const CARGO_DEB: (&str, &str) = ("cargo-deb", "3.8.0");

/// Makes the package of the program that is built; `None` where its tool cannot be installed.
pub fn made() -> Result<Option<PathBuf>, String> {
    let (name, tool_version) = CARGO_DEB;
    let Some(cargo_deb) = tool(name, tool_version, "--no-default-features", &["--version"]) else {
        return Ok(None);
    };
    let package = package()?;
    // Called by its path, it wants the name of the subcommand.
    let mut make = line(
        "{} deb --quiet --offline --no-build --strip -p undertick-cli --output {}",
        &[&cargo_deb, &text(&package)],
    );
    make.env("CARGO_TARGET_DIR", root().join("target"));
    run(make)?;
    Ok(Some(package))
}

/// Where the package is made.
pub fn package() -> Result<PathBuf, String> {
    Ok(dir().join(format!("undertick_{}_{}.deb", version()?, architecture()?)))
}

fn architecture() -> Result<String, String> {
    Ok(output(line("dpkg --print-architecture", &[]))?
        .trim()
        .to_owned())
}

/// Installs the package in a bare system, and records a program there.
pub fn in_a_bare_system() -> Result<Outcome, String> {
    for program in ["dpkg", "dpkg-shlibdeps", "mmdebstrap"] {
        if let Some(skipped) = lacks(program) {
            return Ok(skipped);
        }
    }
    if !exists(&["unshare", "--mount", "true"]) {
        return Ok(Outcome::Skipped(
            "a mount namespace of its own needs root".to_owned(),
        ));
    }
    let Some(package) = made()? else {
        return Ok(Outcome::Skipped(format!(
            "{} cannot be installed here",
            CARGO_DEB.0
        )));
    };
    // Not in the temporary directory, whose names others can foresee.
    let bare = text(&fresh("bare")?);
    let release = output(line(
        "sh -c {}",
        &[". /etc/os-release; echo $VERSION_CODENAME"],
    ))?;
    let release = release.trim();
    let made = sources(release).and_then(|sources| {
        let words = "mmdebstrap --quiet --variant=essential {} {} {}";
        run(line(words, &[release, &bare, &sources]))
    });
    if let Err(why) = made {
        return Ok(Outcome::Skipped(format!("no bare system: {why}")));
    }
    let used = used(&bare, &package);
    std::fs::remove_dir_all(&bare).map_err(|e| format!("{bare}: {e}"))?;
    used?;
    let bytes = std::fs::metadata(&package)
        .map_err(|e| e.to_string())?
        .len();
    let name = package.file_name().unwrap_or_default().to_string_lossy();
    Ok(Outcome::Said(format!(
        "{name}, {:.1} MiB, records in a bare {release}",
        bytes as f64 / (1 << 20) as f64,
    )))
}

/// The source of packages of a release that this system uses, as a line of apt's.
fn sources(release: &str) -> Result<String, String> {
    let format = "deb $(REPO_URI) $(RELEASE) $(COMPONENT)";
    let targets = output(line("apt-get indextargets --format {}", &[format]))?;
    (targets.lines())
        .find(|line| line.ends_with(&format!(" {release} main")))
        .map(str::to_owned)
        .ok_or_else(|| format!("apt knows no source of {release}"))
}

/// Installs the package in a system, records a program there, and removes it.
fn used(bare: &str, package: &Path) -> Result<(), String> {
    let scratch = Scratch::new("bare")?;
    let inside = |words: &str| {
        let all = format!(
            "mount -t proc proc \"$0/proc\" && mount -t tmpfs shm \"$0/dev/shm\" && chroot \"$0\" {words}"
        );
        output(command(&["unshare", "--mount", "sh", "-ec", &all, bare]))
    };
    std::fs::copy(package, format!("{bare}/undertick.deb")).map_err(|e| e.to_string())?;
    std::fs::create_dir_all(format!("{bare}/dev/shm")).map_err(|e| e.to_string())?;
    inside("dpkg --install /undertick.deb")?;
    let program = scratch.path("program");
    run(crate::run::c_program(
        &super::header::program(&scratch)?,
        &program,
    ))?;
    std::fs::copy(&program, format!("{bare}/program")).map_err(|e| e.to_string())?;
    inside("undertick record --quiet -o /t.ut -- /program")?;
    let report = inside("undertick report /t.ut --json")?;
    super::header::is_recorded(&report)?;
    inside("undertick doctor")?;
    inside("dpkg --remove undertick")?;
    let left = output(line("find {} -name *undertick*", &[&format!("{bare}/usr")]))?;
    if !left.trim().is_empty() {
        return Err(format!("the removed package leaves {left}"));
    }
    Ok(())
}
