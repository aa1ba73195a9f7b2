use std::os::unix::net::UnixListener;

use super::*;

const SMALL: Kind = Kind {
    what: "a small file",
    action: "cannot read",
    most_bytes: 4,
};

fn refused(path: &Path, words: &[&str]) {
    for error in [bytes(path, SMALL).unwrap_err(), open(path).unwrap_err()] {
        let (said, status) = (error.to_string(), error.exit_status());
        assert!(
            status == 2 && words.iter().all(|w| said.contains(w)),
            "{said}"
        );
        assert!(said.contains(&path.display().to_string()), "{said}");
    }
}

#[test]
fn what_is_no_regular_file_is_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let fifo = at("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::from(0o600)).unwrap();
    refused(&fifo, &["a fifo", "regular"]);
    let _listener = UnixListener::bind(at("socket")).unwrap();
    refused(&at("socket"), &["a socket"]);
    refused(dir.path(), &["a directory"]);
    refused(Path::new("/dev/zero"), &["a device"]);
    refused(&at("missing"), &["missing"]);
    assert!(only_regular_in(dir.path(), 1).is_err());
}

#[test]
fn a_file_is_as_long_as_its_kind_allows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    std::fs::write(&path, "1234").unwrap();
    assert_eq!(text(&path, SMALL).unwrap(), "1234");
    std::fs::write(&path, [b'1', 0xff]).unwrap();
    assert!(
        text(&path, SMALL)
            .unwrap_err()
            .to_string()
            .contains("byte 1")
    );
    File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    let said = bytes(&path, SMALL).unwrap_err().to_string();
    assert!(
        said.contains("1099511627776") && said.contains("at most 4"),
        "{said}"
    );
    assert!(open(&path).is_ok());
}
