use super::*;
use std::os::unix::fs::symlink;

fn uid() -> u32 {
    rustix::process::getuid().as_raw()
}

/// Links, FIFOs, directories and files with a second name are not accepted as files of a
/// session, and opening them does not wait.
#[test]
fn only_plain_files_of_its_own() {
    let parent = tempfile::tempdir().unwrap();
    let dir = SessionDir::make(parent.path()).unwrap();
    drop(dir.create("plain").unwrap());
    assert!(dir.file("plain", uid()).unwrap().is_some());
    assert!(dir.file("missing", uid()).unwrap().is_none());
    assert!(dir.file("plain", uid() + 1).is_err());
    assert!(dir.create("plain").is_err());
    let outside = parent.path().join("outside");
    fs::write(&outside, b"o").unwrap();
    symlink(&outside, dir.path().join("link")).unwrap();
    fs::hard_link(&outside, dir.path().join("second")).unwrap();
    fs::create_dir(dir.path().join("directory")).unwrap();
    rustix::fs::mkfifoat(&dir.fd, "fifo", Mode::from_raw_mode(0o600)).unwrap();
    for name in ["link", "second", "directory", "fifo"] {
        assert!(dir.file(name, uid()).is_err(), "{name}");
    }
    dir.remove_all();
    assert_eq!(fs::read(&outside).unwrap(), b"o");
}

/// Its replacement stays; its content is removed, wherever the directory is now.
#[test]
fn a_directory_that_was_moved() {
    let parent = tempfile::tempdir().unwrap();
    let dir = SessionDir::make(parent.path()).unwrap();
    let (away, decoy) = (parent.path().join("away"), parent.path().join("decoy"));
    fs::create_dir(&decoy).unwrap();
    fs::write(decoy.join("pool"), b"mine").unwrap();
    drop(dir.create("pool").unwrap());
    fs::create_dir(dir.path().join("inside")).unwrap();
    symlink(&decoy, dir.path().join("inside/link")).unwrap();
    fs::rename(dir.path(), &away).unwrap();
    symlink(&decoy, dir.path()).unwrap();
    dir.remove_all();
    assert!(!away.exists());
    assert_eq!(fs::read(decoy.join("pool")).unwrap(), b"mine");
    assert_eq!(fs::read_link(dir.path()).unwrap(), decoy);
    assert!(
        SessionDir::open(dir.path()).is_err(),
        "a link is no directory"
    );
}
