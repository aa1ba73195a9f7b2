//! Debian's source packages of programs from other projects, for tests and benchmarks.

use std::path::Path;

use crate::run::{command, output, root};

/// The part of a source package that upstream made.
pub struct Package {
    /// Address of the tarball on Debian's mirrors.
    pub tarball: &'static str,
    pub sha256: &'static str,
    /// Directory that it unpacks to.
    pub dir: &'static str,
}

pub const ZLIB: Package = Package {
    tarball: "pool/main/z/zlib/zlib_1.2.13.dfsg.orig.tar.bz2",
    sha256: "71feb7947e3c00ef125f83b79a4e529bde31171e5babe48b391f06758d1ab0a1",
    dir: "zlib-1.2.13.dfsg",
};
pub const LZ4: Package = Package {
    tarball: "pool/main/l/lz4/lz4_1.9.4.orig.tar.gz",
    sha256: "0b0e3aa07c8c063ddf40b082bdf7e37a1562bda40a0ff5272957f3e987e0e54b",
    dir: "lz4-1.9.4",
};
pub const ZSTD: Package = Package {
    tarball: "pool/main/libz/libzstd/libzstd_1.5.4+dfsg2.orig.tar.xz",
    sha256: "8cf4bbb65e77ec348d052c8d6230eba66d435bddf64c8b5be2fcb16880c19953",
    dir: "zstd-1.5.4",
};
pub const REDIS: Package = Package {
    tarball: "pool/main/r/redis/redis_7.0.15.orig.tar.gz",
    sha256: "4b1dc4ee6d622a09fff9c6777191209750fb5e5a725ef78ea012d6eef4c22982",
    dir: "redis-7.0.15",
};

pub const SQLITE: Package = Package {
    tarball: "pool/main/s/sqlite3/sqlite3_3.40.1.orig.tar.xz",
    sha256: "aaa776260ab4dc976db34aa7891819484c8676b5b2783123ebc6301e2ca5d655",
    dir: "sqlite3-3.40.1",
};

/// Path of the unpacked source, kept in `target`. The error says why there is none.
pub fn unpacked(package: &Package) -> Result<String, String> {
    let dir = root().join("target/sources");
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let unpacked = dir.join(package.dir);
    // This file is written once the source is complete.
    let mark = dir.join(format!("{}.unpacked", package.dir));
    if mark.exists() {
        return Ok(text(&unpacked));
    }
    std::fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let hosts = output(command(&[
        "apt-get",
        "indextargets",
        "--format",
        "$(REPO_URI)",
    ]))
    .map_err(|_| "no apt here, which knows where Debian's sources are".to_owned())?;
    let mut hosts: Vec<&str> = hosts
        .lines()
        .map(|line| line.trim_end_matches('/'))
        .collect();
    hosts.dedup();
    let tarball = package.tarball;
    let path = text(&dir.join(tarball.rsplit('/').next().unwrap_or(tarball)));
    let found = hosts.iter().any(|host| {
        let address = format!("{host}/{tarball}");
        let words = ["curl", "-sSfL", "--max-time", "60", "-o", &path, &address];
        output(command(&words)).is_ok()
    });
    if !found {
        return Err(format!(
            "no source offers {tarball}, or there is no network, or no curl"
        ));
    }
    let sum = output(command(&["sha256sum", &path]))?;
    if !sum.starts_with(package.sha256) {
        let _ = std::fs::remove_file(&path);
        return Err(format!("{tarball} is another file than expected: {sum}"));
    }
    output(command(&["tar", "-xf", &path, "-C", &text(&dir)]))?;
    std::fs::write(&mark, tarball).map_err(|e| format!("{}: {e}", mark.display()))?;
    Ok(text(&unpacked))
}
