//! The Debian package, in a system that has nothing but what Debian calls essential.

use std::path::PathBuf;

use super::{dir, lacks, text, tool, version};
use crate::exchange::Outcome;
use crate::run::{Scratch, command, exists, line, output, root, run};

/// The tool that makes the package.
const CARGO_DEB: (&str, &str) = ("cargo-deb", "3.8.0");

/// Makes the package of the program that is built; `None` where its tool cannot be installed.
pub fn made() -> Result<Option<PathBuf>, String> {
    let (name, tool_version) = CARGO_DEB;
    let Some(cargo_deb) = tool(name, tool_version, "--no-default-features") else {
        return Ok(None);
    };
    let package = dir().join(format!("undertick_{}_{}.deb", version()?, architecture()?));
    // Called by its path, it wants the name of the subcommand.
    let mut make = line(
        "{} deb --quiet --offline --no-build --strip -p undertick-cli --output {}",
        &[&cargo_deb, &text(&package)],
    );
    make.env("CARGO_TARGET_DIR", root().join("target"));
    run(make)?;
    Ok(Some(package))
}

fn architecture() -> Result<String, String> {
    Ok(output(line("dpkg --print-architecture", &[]))?
        .trim()
        .to_owned())
}

/// Installs the package in a bare system, and records a program there.
pub fn in_a_bare_system() -> Result<Outcome, String> {
    for program in ["dpkg", "mmdebstrap"] {
        if let Some(skipped) = lacks(program) {
            return Ok(skipped);
        }
    }
    if !exists(&["unshare", "--mount", "true"]) {
        return Ok(Outcome::Skipped(
            "no right to enter another root".to_owned(),
        ));
    }
    let Some(package) = made()? else {
        return Ok(Outcome::Skipped(format!("no {} here", CARGO_DEB.0)));
    };
    let scratch = Scratch::new("bare")?;
    let bare = scratch.path("root");
    let release = output(line(
        "sh -c {}",
        &[". /etc/os-release; echo $VERSION_CODENAME"],
    ))?;
    // From the sources that this system uses; without manuals, as in images of containers.
    let made = run(line(
        "mmdebstrap --quiet --variant=essential --include=adduser {} {}",
        &[release.trim(), &bare],
    ));
    if let Err(why) = made {
        return Ok(Outcome::Skipped(format!("no bare system: {why}")));
    }
    let inside = |words: &str| {
        let all = format!(
            "mount -t proc proc {{}}/proc && mount -t tmpfs shm {{}}/dev/shm && chroot {{}} {words}"
        )
        .replace("{}", &bare);
        output(command(&["unshare", "--mount", "sh", "-ec", &all]))
    };
    std::fs::copy(&package, format!("{bare}/undertick.deb")).map_err(|e| e.to_string())?;
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
    let bytes = std::fs::metadata(&package)
        .map_err(|e| e.to_string())?
        .len();
    let name = package.file_name().unwrap_or_default().to_string_lossy();
    Ok(Outcome::Said(format!(
        "{name}, {:.1} MiB, records in a bare {}",
        bytes as f64 / (1 << 20) as f64,
        release.trim()
    )))
}
