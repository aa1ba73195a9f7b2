use super::*;
use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;

/// For a link, a second name, a FIFO and a directory: reading, changing and replacing them
/// does not affect what they lead to.
#[test]
fn nothing_outside_is_touched() {
    let parent = tempfile::tempdir().unwrap();
    let outside = parent.path().join("outside");
    fs::write(&outside, b"mine").unwrap();
    let dir = TraceDir::make(&parent.path().join("a.ut")).unwrap();
    symlink(&outside, dir.join("link")).unwrap();
    fs::hard_link(&outside, dir.join("second")).unwrap();
    fs::create_dir(dir.join("directory")).unwrap();
    rustix::fs::mkfifoat(&*dir.fd, "fifo", Mode::from_raw_mode(0o600)).unwrap();
    for name in ["link", "second", "directory", "fifo"] {
        assert!(dir.read(name).is_err(), "{name}");
        assert!(dir.change(name).is_err(), "{name}");
        assert!(dir.append(name).is_err(), "{name}");
        assert!(dir.create_new(name).is_err(), "{name}");
    }
    for name in ["link", "second", "fifo"] {
        dir.replace(name, b"new").unwrap();
        assert_eq!(fs::read(dir.join(name)).unwrap(), b"new");
    }
    symlink(&outside, dir.join("a.new")).unwrap();
    dir.replace("a", b"new").unwrap();
    assert_eq!(fs::read(&outside).unwrap(), b"mine");
}

#[test]
fn a_directory_that_was_moved_is_written_on() {
    let parent = tempfile::tempdir().unwrap();
    let (path, away) = (parent.path().join("a.ut"), parent.path().join("b.ut"));
    let dir = TraceDir::make(&path).unwrap();
    fs::rename(&path, &away).unwrap();
    dir.replace("file", b"x").unwrap();
    assert_eq!(fs::read(away.join("file")).unwrap(), b"x");
    assert_eq!(dir.path_now(), away.canonicalize().unwrap());
    let mut text = String::new();
    dir.read("file").unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "x");
}
