use super::*;

fn some(i: u64) -> Record {
    Record {
        mapped: i.is_multiple_of(2),
        cpu: (i % 300) as i16 - 1,
        a: -(i as i32),
        tid: i as i32 * 3,
        pid: i as i32 * 5,
        payload: -(i as i64) << 33,
        ..Record::new(RecordKind::ALL[i as usize % 16], i << 35)
    }
}

#[test]
fn codes_are_places() {
    for (place, kind) in RecordKind::ALL.into_iter().enumerate() {
        assert_eq!(kind as usize, place);
    }
}

#[test]
fn what_was_written_comes_back_and_a_cut_keeps_whole_blocks() {
    let dir = tempfile::tempdir().unwrap();
    let trace = TraceDir::open(dir.path()).unwrap();
    let path = trace.join(RAW_KERNEL_FILE);
    let mut writer = Writer::create(&trace).unwrap();
    (0..10_000).for_each(|i| writer.push(&some(i)));
    assert!(writer.finish().is_none());
    let mut reader = Reader::of_trace(&trace).unwrap().unwrap();
    let all: Vec<Record> = reader.by_ref().collect();
    assert_eq!(all, (0..10_000).map(some).collect::<Vec<_>>());
    assert!(!reader.torn);

    let bytes = std::fs::read(&path).unwrap();
    let block = HEADER_BYTES + BLOCK_RECORDS * RECORD_BYTES;
    for (cut, whole) in [(0, 0), (5, 0), (block - 1, 0), (block, 1), (block + 3, 1)] {
        std::fs::write(&path, &bytes[..cut]).unwrap();
        let mut reader = Reader::of_trace(&trace).unwrap().unwrap();
        assert_eq!(reader.by_ref().count(), whole * BLOCK_RECORDS, "{cut}");
        assert_eq!(reader.torn, cut % block != 0, "{cut}");
    }
    for at in [0, 5, 9, 100, block - 1] {
        let mut bad = bytes.clone();
        bad[at] ^= 4;
        std::fs::write(&path, &bad).unwrap();
        let mut reader = Reader::of_trace(&trace).unwrap().unwrap();
        assert_eq!((reader.by_ref().count(), reader.torn), (0, true), "{at}");
    }
    std::fs::remove_file(&path).unwrap();
    assert!(Reader::of_trace(&trace).unwrap().is_none());
}

/// The holes of a sparse file are not blocks, and the copy leaves them out.
#[test]
fn holes_are_no_blocks() {
    let dir = tempfile::tempdir().unwrap();
    let trace = TraceDir::open(dir.path()).unwrap();
    let older = trace.create_new(OLDER_KERNEL_FILE).unwrap();
    older.set_len(1 << 40).unwrap();
    join(&trace).unwrap();
    assert_eq!(trace.length(RAW_KERNEL_FILE), 0);
}

/// Writes 200 000 records of 32 bytes with room for twice 64 KiB: the last ones remain, preceded by
/// the threads and their processes.
#[test]
fn the_last_records_are_kept_and_what_must_be_known_of_those_before() {
    let dir = tempfile::tempdir().unwrap();
    let trace = TraceDir::open(dir.path()).unwrap();
    let most = 64 << 10;
    let mut writer = Writer::create(&trace).unwrap().keep_the_last(most);
    let of = |kind, pid, tid, a, time| Record {
        pid,
        tid,
        a,
        ..Record::new(kind, time)
    };
    let early = [
        of(RecordKind::Exec, 10, 10, 0, 1),
        of(RecordKind::NewTask, 10, 11, 1, 2),
        of(RecordKind::NewTask, 11, 12, 1, 3),
        of(RecordKind::NewTask, 12, 20, 0, 4), // a process of its own
        of(RecordKind::NewTask, 20, 21, 1, 5),
        of(RecordKind::Exit, 10, 11, 0, 6),
        of(RecordKind::NewTask, 99, 98, 1, 7), // nobody's
        of(RecordKind::Anchor, 0, 0, 0, 8),
    ];
    early.iter().for_each(|record| writer.push(record));
    writer.push(&Record::of_name(77, b"hog\0\0\0\0\0\0\0\0\0\0\0\0\0", 9));
    let all = 200_000;
    for i in 0..all {
        if i % 1000 == 0 {
            writer.push(&Record::new(RecordKind::Round, 100 + i));
            writer.flush();
        }
        writer.push(&Record::new(RecordKind::Fault, 100 + i));
    }
    assert!(writer.finish().is_none());
    let bytes = |file| std::fs::metadata(dir.path().join(file)).unwrap().len();
    // Each file may exceed the bound by one block.
    assert!(bytes(RAW_KERNEL_FILE) + bytes(OLDER_KERNEL_FILE) < 2 * (most + 33_000));
    let out = tempfile::tempdir().unwrap();
    let out = TraceDir::open(out.path()).unwrap();
    copy(&trace, &out).unwrap();
    join(&trace).unwrap();
    assert!(!dir.path().join(OLDER_KERNEL_FILE).exists());
    let read = |trace: &TraceDir| -> Vec<Record> {
        let mut reader = Reader::of_trace(trace).unwrap().unwrap();
        let all = reader.by_ref().collect();
        assert!(!reader.torn);
        all
    };
    let records = read(&trace);
    assert_eq!(records, read(&out));
    let named = records.iter().find(|of| of.kind == RecordKind::Name);
    let named = named.map(|of| (of.tid, of.name()));
    assert_eq!(named, Some((77, "hog".to_owned())));
    let faults: Vec<u64> = (records.iter())
        .filter(|record| record.kind == RecordKind::Fault)
        .map(|record| record.time)
        .collect();
    assert!(faults.len() as u64 > most / 32, "{}", faults.len());
    assert!(
        faults
            .iter()
            .copied()
            .eq(100 + all - faults.len() as u64..100 + all)
    );
    let first = faults[0];
    let known: Vec<_> = (records.iter())
        .take_while(|record| record.kind != RecordKind::Fault)
        .filter(|record| record.kind != RecordKind::Name)
        .inspect(|record| assert!(record.time <= first, "{record:?} {first}"))
        .map(|record| (record.kind, record.pid, record.tid, record.a))
        .collect();
    let expected = [
        (RecordKind::Round, 0, 0, 0),
        (RecordKind::Anchor, 0, 0, 0),
        (RecordKind::Exec, 10, 10, 0),
        (RecordKind::Exec, 20, 20, 0),
        (RecordKind::NewTask, 10, 12, 1),
        (RecordKind::NewTask, 20, 21, 1),
    ];
    assert_eq!(known[..6], expected);
}
