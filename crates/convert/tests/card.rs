//! The event card's stream. The test writes it by hand from docs/format.md, so the results are
//! known; and no bytes stop the reader.

use std::io::Write;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int16Type, Int32Type, Int64Type};
use rand::{RngExt, SeedableRng};
use undertick_convert::import::card::{Card, Device, record_card};
use undertick_convert::import::{Source, import, import_card};
use undertick_format::manifest::{Manifest, Name};
use undertick_format::read::Trace;
use undertick_format::{TraceError, schema};

const USER: u16 = 2;
const SUPERVISOR: u16 = 3;
const GAP: i8 = 7;

/// Returns a record's bytes: time, payload, event, and master, kind and flag in the last two.
fn record(ts: u64, payload: u32, event: u16, master: u16, kind: u16, flag: u16) -> Vec<u8> {
    let mut bytes = ts.to_le_bytes().to_vec();
    bytes.extend(payload.to_le_bytes());
    bytes.extend(event.to_le_bytes());
    bytes.extend((master | kind << 11 | flag << 14).to_le_bytes());
    bytes
}

/// Returns the card's first record: a clock of `hz`, `tick` periods a tick, eight masters.
fn begins(hz: u64, tick: u64) -> Vec<u8> {
    record(tick << 32 | hz, 4, 1, 8, 7, USER)
}

fn event(ts: u64, kind: u16, event: u16, master: u16) -> Vec<u8> {
    record(ts, 0, event, master, kind, USER)
}

fn gap(lost: u64, masters: u16) -> Vec<u8> {
    record(lost, 3, masters, 2047, 7, USER)
}

/// Thread, CPU, kind, time, event and payload of a row.
type Row = (i32, i16, i8, i64, i32, i64);

fn rows(trace: &Trace) -> Vec<Row> {
    let mut rows = Vec::new();
    for batch in trace.batches() {
        let batch = batch.unwrap();
        let i32s = |c: usize| batch.column(c).as_primitive::<Int32Type>().clone();
        let i64s = |c: usize| batch.column(c).as_primitive::<Int64Type>().clone();
        let kind = batch.column(schema::KIND).as_primitive::<Int8Type>();
        let cpu = batch.column(schema::CPU).as_primitive::<Int16Type>();
        let (tid, event) = (i32s(schema::TID), i32s(schema::EVENT));
        let (ts, payload) = (i64s(schema::TS), i64s(schema::PAYLOAD));
        for i in 0..batch.num_rows() {
            rows.push((
                tid.value(i),
                cpu.value(i),
                kind.value(i),
                ts.value(i),
                event.value(i),
                payload.value(i),
            ));
        }
    }
    rows
}

fn imported(stream: &[Vec<u8>], card: Card) -> Result<(Manifest, Vec<Row>), TraceError> {
    let dir = tempfile::tempdir().unwrap();
    let (file, out) = (dir.path().join("stream.bin"), dir.path().join("t.ut"));
    std::fs::write(&file, stream.concat()).unwrap();
    let made = import_card(&file, card, &out, &mut |_| {});
    assert_eq!(made.is_ok(), out.exists(), "what failed leaves nothing");
    let manifest = made?;
    let trace = Trace::open(&out).unwrap();
    assert_eq!(trace.manifest, manifest);
    Ok((manifest, rows(&trace)))
}

fn refused(stream: &[Vec<u8>]) -> String {
    let error = imported(stream, Card::default()).unwrap_err();
    assert_eq!(error.exit_status(), 2, "{error}");
    error.to_string()
}

#[test]
fn masters_are_threads_and_supervisors_others() {
    let stream = [
        begins(100_000_000, 10),
        record(5, 7, 300, 2, 0, USER),
        event(6, 1, 1, 0),
        record(6, 9, 40, 2, 0, SUPERVISOR),
        event(1006, 2, 1, 0),
    ];
    let names = vec![Name {
        pid: None,
        event: 1,
        name: "lock".to_owned(),
    }];
    let card = Card {
        names: names.clone(),
        ..Card::default()
    };
    let (manifest, rows) = imported(&stream, card).unwrap();
    assert_eq!(
        rows,
        [
            (3, 2, 0, 5, 300, 7),
            (1, 0, 1, 6, 1, 0),
            (1, 0, 2, 1006, 1, 0),
            (4099, 2, 0, 6, 40, 9),
        ]
    );
    let threads: Vec<_> = (manifest.threads.iter())
        .map(|thread| (thread.tid, thread.name.as_str()))
        .collect();
    let named = [
        (3, "master 2"),
        (1, "master 0"),
        (4099, "master 2, supervisor"),
    ];
    assert_eq!(threads, named);
    // 1001 ticks of ten periods of 10 ns.
    assert_eq!(manifest.duration_ns, Some(100_100));
    let clock = &manifest.clock;
    let rate = (
        clock.ticks_per_second_numerator,
        clock.ticks_per_second_denominator,
    );
    assert_eq!(rate, (100_000_000, 10));
    assert_eq!((manifest.events, manifest.lost), (4, 0));
    assert_eq!(manifest.names, names);
}

#[test]
fn losses_are_counted_and_stand_where_they_fell() {
    let stream = [
        begins(1_000_000, 1),
        event(1, 1, 5, 0),
        event(2, 1, 5, 3),
        event(3, 1, 5, 4),
        gap(12, 1 << 3),
        event(9, 2, 5, 4),
        event(10, 2, 5, 3),
        gap(3, 1 << 0 | 1 << 4),
        gap(2, 1 << 4),
        event(20, 0, 6, 4),
        event(21, 0, 6, 0),
        // No event follows this loss, so only the account has it.
        gap(1000, 0xffff),
    ];
    let (manifest, rows) = imported(&stream, Card::default()).unwrap();
    assert_eq!((manifest.events, manifest.lost), (7, 12 + 3 + 2 + 1000));
    let gaps: Vec<_> = (rows.iter())
        .filter(|row| row.2 == GAP)
        .map(|&(tid, _, _, ts, _, lost)| (tid, ts, lost))
        .collect();
    // When several masters lose events at once, the first one's row has the count.
    assert_eq!(gaps, [(1, 21, 3), (4, 10, 12), (5, 20, 2)]);
    assert!(
        manifest
            .warnings
            .iter()
            .any(|w| w.contains("lost 1017 events"))
    );
}

#[test]
fn many_records_are_many_blocks() {
    let mut stream = vec![begins(1_000_000, 1)];
    for i in 0..30_000u32 {
        if i % 100 == 99 {
            stream.push(gap(1, 1));
        }
        stream.push(record(u64::from(i), i, 1, 0, 0, USER));
    }
    let (manifest, rows) = imported(&stream, Card::default()).unwrap();
    assert_eq!((manifest.events, manifest.lost), (30_000, 300));
    let mut next = 0;
    for row in rows {
        if row.2 == GAP {
            assert_eq!((row.3, row.5), (next, 1));
            assert_eq!(next % 100, 99);
        } else {
            assert_eq!((row.3, row.5), (next, next));
            next += 1;
        }
    }
    assert_eq!(next, 30_000);
}

#[test]
fn what_is_wrong_is_said_with_its_place_and_its_mend() {
    let first = || begins(1_000_000, 1);
    let has = |stream: &[Vec<u8>], words: &[&str]| {
        let said = refused(stream);
        for word in words.iter().chain(&["stream.bin"]) {
            assert!(said.contains(word), "{word:?} is not in {said:?}");
        }
    };
    has(&[event(1, 0, 1, 0)], &["offset 0", "--ticks-per-second"]);
    has(&[], &["holds no event", "right file"]);
    has(&[first(), gap(4, 1)], &["holds no event"]);
    let (e, unknown) = (event(7, 0, 1, 0), record(1, 9, 0, 0, 7, USER));
    has(
        &[first(), e.clone(), unknown],
        &["offset 32", "continuation 9", "damaged"],
    );
    has(
        &[first(), e.clone(), first(), e.clone()],
        &["offset 32", "reset", "head -c 32"],
    );
    has(
        &[first(), event(1, 0, 1, 8)],
        &["offset 16", "master 8", "card for 8"],
    );
    has(
        &[first(), e.clone(), event(6, 0, 1, 1)],
        &["offset 32", "back from 7 to 6"],
    );
    has(&[first(), event(1 << 63, 0, 1, 1)], &["offset 16", "2^63"]);
    let version = record(1 << 32 | 5, 4, 2, 8, 7, USER);
    has(&[version, e.clone()], &["offset 0", "version 2"]);
    has(
        &[begins(0, 1), e.clone()],
        &["offset 0", "--ticks-per-second"],
    );
    has(
        &[begins(5, 0), e.clone()],
        &["offset 0", "--ticks-per-second"],
    );
    has(
        &[first(), e.clone(), gap(u64::MAX, 1), gap(1, 1)],
        &["offset 48", "more events lost"],
    );
    has(
        &[first(), e.clone(), gap(0, 1), e.clone()],
        &["offset 32", "loss of no events", "damaged"],
    );
}

#[test]
fn a_rate_can_be_given_and_an_end_may_be_missing() {
    let card = || Card {
        ticks_per_second: Some(250),
        ..Card::default()
    };
    let mut cut = event(500, 0, 2, 1);
    cut.truncate(11);
    for stream in [
        vec![event(0, 0, 1, 9), event(500, 0, 1, 1), cut.clone()],
        vec![
            begins(0, 7),
            event(0, 0, 1, 1),
            event(500, 0, 1, 1),
            cut.clone(),
        ],
    ] {
        let (manifest, rows) = imported(&stream, card()).unwrap();
        assert_eq!((manifest.duration_ns, rows.len()), (Some(2_000_000_000), 2));
        assert!(
            manifest
                .warnings
                .iter()
                .any(|w| w.contains("last 11 bytes"))
        );
    }
}

#[test]
fn a_stream_is_known_by_its_first_record() {
    let dir = tempfile::tempdir().unwrap();
    let (file, out) = (dir.path().join("file"), dir.path().join("t.ut"));
    // The lowest byte of the rate is a bracket, which must not make it JSON.
    let hz = u64::from_le_bytes(*b"[\n{\"\0\0\0\0");
    std::fs::write(&file, [begins(hz, 1), event(1, 0, 1, 0)].concat()).unwrap();
    assert_eq!(import(&file, None, &out, &mut |_| {}).unwrap().events, 1);
    std::fs::write(&file, b"[{\"ph\":\"i\",\"ts\":1,\"name\":\"a\"}]").unwrap();
    let error = import(
        &file,
        Some(Source::Card),
        &dir.path().join("u.ut"),
        &mut |_| {},
    );
    assert!(error.unwrap_err().to_string().contains("offset 0"));
}

#[test]
fn a_pipe_is_recorded_until_it_ends() {
    let dir = tempfile::tempdir().unwrap();
    let (fifo, out) = (dir.path().join("card"), dir.path().join("t.ut"));
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    if !made.is_ok_and(|status| status.success()) {
        println!("skipped: no mkfifo here");
        return;
    }
    let mut stream = begins(1_000_000, 1);
    for i in 0..20_000 {
        stream.extend(event(i, 0, 1, (i % 8) as u16));
    }
    // The device is opened before it has a writer, and waits for one.
    let device = Device::open(&fifo).unwrap();
    let writer = std::thread::spawn({
        let fifo = fifo.clone();
        move || {
            let mut pipe = std::fs::OpenOptions::new().write(true).open(fifo).unwrap();
            // Writes pieces that end within records.
            for piece in stream.chunks(1013) {
                pipe.write_all(piece).unwrap();
            }
        }
    });
    let manifest = record_card(&fifo, device, Card::default(), &out, &mut |_| {}).unwrap();
    writer.join().unwrap();
    assert_eq!((manifest.events, manifest.lost), (20_000, 0));
    assert_eq!(manifest.rings.len(), 8);
}

#[test]
fn no_bytes_stop_the_reader() {
    let mut random = rand::rngs::SmallRng::seed_from_u64(19);
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("t.ut");
    let sound = [
        begins(1_000_000, 1),
        event(1, 1, 5, 0),
        gap(12, 9),
        event(9, 2, 5, 0),
        event(10, 2, 5, 3),
        gap(3, 1),
    ]
    .concat();
    let (mut made, mut refused) = (0, 0);
    for _ in 0..400 {
        let mut bytes = sound.clone();
        for _ in 0..random.random_range(1..4) {
            let at = random.random_range(0..bytes.len());
            bytes[at] = match random.random_range(0..3) {
                0 => random.random(),
                1 => bytes[at] ^ 1 << random.random_range(0..8),
                _ => *[0, 0xff, 0x7f, 0x80]
                    .get(random.random_range(0..4))
                    .unwrap(),
            };
        }
        bytes.truncate(random.random_range(0..=bytes.len()));
        match record_card(
            Path::new("f"),
            &bytes[..],
            Card::default(),
            &out,
            &mut |_| {},
        ) {
            Ok(manifest) => {
                let trace = Trace::open(&out).unwrap();
                let events = rows(&trace).iter().filter(|row| row.2 != GAP).count();
                assert_eq!(events as u64, manifest.events);
                std::fs::remove_dir_all(&out).unwrap();
                made += 1;
            }
            Err(error) => {
                assert_eq!(error.exit_status(), 2, "{error}");
                assert!(!out.exists());
                refused += 1;
            }
        }
    }
    assert!(made > 20 && refused > 20, "{made} made, {refused} refused");
}

/// Memory takes the place of a card: each call is one store, at the address in the card's README.
#[test]
fn the_header_stores_once_for_each_event() {
    let dir = tempfile::tempdir().unwrap();
    let (source, program) = (dir.path().join("card.c"), dir.path().join("card"));
    let text = "#include <stdio.h>\n#include <stdlib.h>\nstatic unsigned char *window;\n\
        #define UNDERTICK_CARD window\n#include \"undertick.h\"\n\
        int main(void) { window = malloc(1u << 21);\n\
        for (uint32_t i = 0; i < 1u << 19; i++) ((uint32_t *)window)[i] = 0x55555555;\n\
        ut_event(300, 7); ut_begin(1); ut_end(2); ut_next(3, 4); ut_begin_ordered(5); ut_end_ordered(65535);\n\
        ut_begin_sampled(9); ut_end_sampled(9); ut_event64(11, (uint32_t)12); ut_pair(1); ut_name(1, \"x\");\n\
        for (uint32_t i = 0; i < 1u << 19; i++) if (((uint32_t *)window)[i] != 0x55555555) \
        printf(\"%x %x\\n\", i * 4, ((uint32_t *)window)[i]);\n return !ut_enabled(); }\n";
    std::fs::write(&source, text).unwrap();
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../../include");
    let compiled = std::process::Command::new("cc")
        .args([
            "-std=c11",
            "-O2",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            "-I",
            include,
        ])
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .status();
    match compiled {
        Err(error) => return println!("skipped: no C compiler here ({error})"),
        Ok(status) => assert!(status.success()),
    }
    let said = std::process::Command::new(&program).output().unwrap();
    assert!(said.status.success());
    // Slot kind + 1 has 2^18 bytes, four bytes an event.
    let expected = [
        (0x4_0000 + 4 * 11, 12),
        (0x4_0000 + 4 * 300, 7),
        (0x8_0000 + 4, 0),
        (0x8_0000 + 4 * 9, 1),
        (0xc_0000 + 4 * 2, 0),
        (0xc_0000 + 4 * 9, 1),
        (0x10_0000 + 4 * 3, 4),
        (0x18_0000 + 4 * 5, 0),
        (0x1c_0000 + 4 * 65535, 0),
    ];
    let expected: String = (expected.iter())
        .map(|(at, value)| format!("{at:x} {value:x}\n"))
        .collect();
    assert_eq!(String::from_utf8(said.stdout).unwrap(), expected);
}

/// The points need no system and no library, only the card's address; they compile as C++, too.
#[test]
fn the_header_needs_no_system_for_a_card() {
    let dir = tempfile::tempdir().unwrap();
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../../include");
    for (compiler, standard, name) in [
        ("cc", "-std=c11", "bare.c"),
        ("c++", "-std=c++17", "bare.cpp"),
    ] {
        let (source, object) = (dir.path().join(name), dir.path().join("bare.o"));
        let text = "#include \"undertick.h\"\nvoid bare(void) { ut_begin(3); ut_event(5, 77); ut_end(3); }\n";
        std::fs::write(&source, text).unwrap();
        let compiled = std::process::Command::new(compiler)
            .args([
                standard,
                "-O2",
                "-ffreestanding",
                "-nostdlib",
                "-Wall",
                "-Wextra",
            ])
            .args(["-Wpedantic", "-Wconversion", "-Werror", "-c", "-I", include])
            .arg("-DUNDERTICK_CARD=0x40000000")
            .arg(&source)
            .arg("-o")
            .arg(&object)
            .status();
        match compiled {
            Err(error) => println!("skipped: no {compiler} here ({error})"),
            Ok(status) => assert!(status.success(), "{compiler}"),
        }
        let names = std::process::Command::new("nm")
            .arg("-u")
            .arg(&object)
            .output();
        if let Ok(names) = names {
            assert!(names.stdout.is_empty(), "it wants {names:?}");
        }
    }
}
