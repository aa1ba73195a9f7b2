use super::*;

fn record(what: u16, event: u16, pid: i32, tid: i32, text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for half in [names::MAGIC, what, event, text.len() as u16] {
        bytes.extend_from_slice(&half.to_le_bytes());
    }
    bytes.extend_from_slice(&pid.to_le_bytes());
    bytes.extend_from_slice(&tid.to_le_bytes());
    bytes.extend_from_slice(text);
    bytes
}

/// Covers children that log no names, and processes that disagree.
#[test]
fn a_made_number_holds_for_all_unless_two_disagree() {
    let name = |pid, event, name: &str| Name {
        pid,
        event,
        name: name.to_owned(),
    };
    let given = vec![
        name(Some(1), 16384, "both"),
        name(Some(1), 7, "own"),
        name(Some(1), 20000, "one"),
        name(Some(2), 16384, "both"),
        name(Some(2), 20000, "another"),
        name(Some(2), 32768, "no name's"),
    ];
    let held = hold_for_all(given.clone());
    assert_eq!(held[..given.len()], given);
    assert_eq!(held[given.len()..], [name(None, 16384, "both")]);
}

/// Larger than memory, and with a name for every number: reading ends soon and is bounded.
#[test]
fn a_log_without_end() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(1 << 40).unwrap();
    assert_eq!(bytes_from(&file, 0).len(), MOST_BYTES);
    let many: Vec<u8> = (0..MOST_NAMES as i32 + 10)
        .flat_map(|tid| record(2, 0, 1, tid, b"n"))
        .collect();
    assert_eq!(parse(&many).threads.len(), MOST_NAMES);
    let again: Vec<u8> = (0..100_000)
        .flat_map(|_| record(1, 7, 1, 1, b"n"))
        .collect();
    assert_eq!(parse(&again).events.len(), 1);
}

#[test]
fn the_last_name_counts_and_rubbish_is_skipped() {
    let log = [
        record(1, 7, 10, 11, b"first"),
        vec![1, 2, 3, b'U'],
        record(2, 0, 10, 11, "worker \u{e9}".as_bytes()),
        record(1, 7, 10, 12, b"second"),
        record(1, 7, 99, 99, b"\xff"),
        record(3, 0, 10, 11, b"55e0 40 /a"),
        record(3, 0, 10, 11, b"9000 40 /b"),
        record(3, 0, 10, 11, b"55e0 48 /a b c"),
        record(3, 0, 10, 11, b"55e1 x /a"),
        record(3, 0, 10, 11, b"55e2 7"),
        record(1, 8, 10, 11, b"cut")[..18].to_vec(),
    ]
    .concat();
    let Names {
        events,
        threads,
        locks,
    } = parse(&log);
    let place = |address: u64, offset: u64, path: &str| LockPlace {
        pid: 10,
        address,
        offset,
        path: path.to_owned(),
    };
    // The last one of an address counts; what is no place is skipped.
    let expected = [place(0x9000, 0x40, "/b"), place(0x55_e0, 0x48, "/a b c")];
    assert_eq!(locks, expected);
    let named: Vec<_> = events
        .iter()
        .map(|n| (n.pid, n.event, n.name.as_str()))
        .collect();
    assert_eq!(named, [(Some(10), 7, "second"), (Some(99), 7, "\u{fffd}")]);
    assert_eq!(
        threads,
        [Thread {
            pid: 10,
            tid: 11,
            name: "worker \u{e9}".to_owned()
        }]
    );
}

/// Ten names of events and 100 000 of threads, of which a few remain in use, while a program
/// continues to append.
#[test]
fn a_long_log_is_shortened_and_no_wanted_name_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(NAMES_FILE);
    File::create(&path).unwrap();
    let opened = SessionDir::open(dir.path()).unwrap();
    let log = opened.file(NAMES_FILE, opened.owner().unwrap());
    let log = log.unwrap().unwrap();
    let append = |bytes: &[u8]| {
        use std::io::Write;
        let log = File::options().create(true).append(true).open(&path);
        log.unwrap().write_all(bytes).unwrap();
    };
    let wanted = |pid: i32, tid: Option<i32>| pid == 10 && tid.is_none_or(|tid| tid % 1000 == 7);
    let mut most = 0;
    for round in 0..10 {
        append(&record(
            1,
            round,
            10,
            10,
            format!("event {round}").as_bytes(),
        ));
        append(&record(
            1,
            1,
            11 + i32::from(round),
            1,
            b"of a process that is gone",
        ));
        for tid in 0..10_000 {
            append(&record(
                2,
                0,
                10,
                i32::from(round) * 10_000 + tid,
                b"worker with a name of its own",
            ));
        }
        append(&record(1, 5, 10, 10, format!("five in {round}").as_bytes()));
        append(&record(3, 0, 10, 10, b"9000 40 /b"));
        shorten(&opened, &log, wanted);
        most = most.max(std::fs::metadata(&path).unwrap().blocks() * 512);
    }
    assert!(most < 2 * LONG_BYTES, "{most}");
    let Names {
        events,
        threads,
        locks,
    } = read(&SessionDir::open(dir.path()).unwrap());
    assert_eq!(locks.len(), 1);
    let mut seen: Vec<_> = events
        .iter()
        .map(|name| (name.pid, name.event, name.name.clone()))
        .collect();
    seen.retain(|(pid, _, _)| *pid == Some(10));
    seen.sort();
    let expected: Vec<_> = (0..10)
        .map(|event| {
            let text = if event == 5 {
                "five in 9".to_owned()
            } else {
                format!("event {event}")
            };
            (Some(10), event, text)
        })
        .collect();
    assert_eq!(seen, expected);
    let lasting = threads.iter().filter(|thread| thread.tid % 1000 == 7);
    assert_eq!(lasting.count(), 100);
    assert!(threads.len() < 50_000, "{}", threads.len());
}
