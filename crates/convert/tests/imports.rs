//! Imports of other tools' files. The tests write them by hand, so the results are known; and no
//! bytes stop the importer.

use std::io::Write;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int32Type, Int64Type};
use rand::{RngExt, SeedableRng};
use undertick_convert::import::{MESSAGES_FILE, Source, import};
use undertick_format::manifest::Manifest;
use undertick_format::read::Trace;
use undertick_format::schema;

/// Thread, name, kind, time and payload of a row.
type Row = (i32, String, i8, i64, i64);

const INSTANT: i8 = 0;
const BEGIN: i8 = 1;
const END: i8 = 2;

/// Imports a text, and returns the manifest and all rows.
fn imported(bytes: &[u8], source: Option<Source>) -> (Manifest, Vec<Row>) {
    let dir = tempfile::tempdir().unwrap();
    let (file, out) = (dir.path().join("file"), dir.path().join("t.ut"));
    std::fs::write(&file, bytes).unwrap();
    let manifest = import(&file, source, &out, &mut |_| {}).unwrap();
    let trace = Trace::open(&out).unwrap();
    assert_eq!(trace.manifest, manifest);
    (manifest, rows(&trace))
}

fn rows(trace: &Trace) -> Vec<Row> {
    let name = |event: i32| {
        let found = trace
            .manifest
            .names
            .iter()
            .find(|name| i32::from(name.event) == event);
        found.map_or_else(String::new, |name| name.name.clone())
    };
    let mut rows = Vec::new();
    for batch in trace.batches() {
        let batch = batch.unwrap();
        let i32s = |c: usize| batch.column(c).as_primitive::<Int32Type>().clone();
        let i64s = |c: usize| batch.column(c).as_primitive::<Int64Type>().clone();
        let kind = batch.column(schema::KIND).as_primitive::<Int8Type>();
        let (tid, event) = (i32s(schema::TID), i32s(schema::EVENT));
        let (ts, payload) = (i64s(schema::TS), i64s(schema::PAYLOAD));
        for i in 0..batch.num_rows() {
            let name = match kind.value(i) {
                16.. => String::new(),
                _ => name(event.value(i)),
            };
            rows.push((
                tid.value(i),
                name,
                kind.value(i),
                ts.value(i),
                payload.value(i),
            ));
        }
    }
    rows
}

fn row(tid: i32, name: &str, kind: i8, ns: i64, payload: i64) -> Row {
    (tid, name.to_owned(), kind, ns, payload)
}

#[test]
fn chrome_spans_nest_whatever_the_order_in_the_file() {
    // Inner spans are written when they end, before the outer ones; two begin at the same time.
    let (manifest, rows) = imported(
        br#"[{"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"worker"}},
        {"ph":"X","name":"in","pid":1,"tid":2,"ts":10.5,"dur":2},
        {"ph":"X","name":"out","pid":1,"tid":2,"ts":10.5,"dur":4.001},
        {"ph":"X","name":"last","pid":1,"tid":2,"ts":13.501,"dur":1},
        {"ph":"X","name":"nothing","pid":1,"tid":2,"ts":14.501,"dur":0},
        {"ph":"B","name":"b","pid":1,"tid":3,"ts":"1"},
        {"ph":"i","name":"point","pid":1,"tid":3,"ts":2,"s":"t","args":{"n":-7,"t":"x"}},
        {"ph":"E","pid":1,"tid":3,"ts":3},
        {"ph":"C","name":"level","pid":1,"tid":3,"ts":4,"args":{"value":9000000000}}]"#,
        None,
    );
    assert_eq!(
        rows,
        [
            row(2, "out", BEGIN, 10_500, 0),
            row(2, "in", BEGIN, 10_500, 0),
            row(2, "in", END, 12_500, 0),
            row(2, "last", BEGIN, 13_501, 0),
            row(2, "last", END, 14_501, 0),
            row(2, "out", END, 14_501, 0),
            row(2, "nothing", BEGIN, 14_501, 0),
            row(2, "nothing", END, 14_501, 0),
            row(3, "b", BEGIN, 1_000, 0),
            row(3, "point", INSTANT, 2_000, -7),
            row(3, "b", END, 3_000, 0),
            row(3, "level", INSTANT, 4_000, 9_000_000_000),
        ]
    );
    assert_eq!((manifest.events, manifest.lost), (12, 0));
    assert_eq!(manifest.threads[0].name, "worker");
    assert_eq!(manifest.clock.ns_per_tick(), 1.0);
    assert!(manifest.calibration.is_none());
}

#[test]
fn chrome_spans_of_no_thread_get_lanes_and_messages_a_table() {
    let dir = tempfile::tempdir().unwrap();
    let (file, out) = (dir.path().join("file.json"), dir.path().join("t.ut"));
    // Two requests overlap, the second with an inner span, and a third follows.
    let text = r#"{"displayTimeUnit":"ns","traceEvents":[
        {"ph":"b","cat":"c","id":"0x1","name":"request","pid":1,"tid":2,"ts":1},
        {"ph":"b","cat":"c","id":"0x2","name":"request","pid":1,"tid":2,"ts":2},
        {"ph":"b","cat":"c","id":"0x2","name":"part","pid":1,"tid":3,"ts":3},
        {"ph":"e","cat":"c","id":"0x1","name":"request","pid":1,"tid":3,"ts":4},
        {"ph":"e","cat":"c","id":"0x2","name":"part","pid":1,"tid":3,"ts":5},
        {"ph":"e","cat":"c","id":"0x2","name":"request","pid":1,"tid":3,"ts":6},
        {"ph":"b","cat":"c","id":"0x3","name":"request","pid":1,"tid":3,"ts":7},
        {"ph":"e","cat":"c","id":"0x3","name":"request","pid":1,"tid":3,"ts":9},
        {"ph":"s","id":77,"name":"send","pid":1,"tid":2,"ts":1},
        {"ph":"f","id":77,"name":"send","pid":1,"tid":3,"ts":8,"bp":"e"},
        {"ph":"e","cat":"c","id":"0x9","name":"never begun","pid":1,"tid":3,"ts":9},
        {"ph":"v","pid":1,"tid":3,"ts":9,"name":"dump"}]}"#;
    std::fs::write(&file, text).unwrap();
    let manifest = import(&file, None, &out, &mut |_| {}).unwrap();
    let rows = rows(&Trace::open(&out).unwrap());
    let lane = |wanted: usize| {
        let tid = manifest
            .threads
            .iter()
            .find(|t| t.name == format!("async {wanted}"))
            .unwrap()
            .tid;
        let of = rows.iter().filter(|row| row.0 == tid);
        of.map(|row| (row.1.clone(), row.2, row.3))
            .collect::<Vec<_>>()
    };
    let is = |name: &str, kind, ns| (name.to_owned(), kind, ns);
    assert_eq!(
        lane(1),
        [
            is("request", BEGIN, 1000),
            is("request", END, 4000),
            is("request", BEGIN, 7000),
            is("request", END, 9000)
        ]
    );
    assert_eq!(
        lane(2),
        [
            is("request", BEGIN, 2000),
            is("part", BEGIN, 3000),
            is("part", END, 5000),
            is("request", END, 6000)
        ]
    );
    assert!(rows.contains(&row(2, "send start", INSTANT, 1000, 77)));
    assert!(rows.contains(&row(3, "send end", INSTANT, 8000, 77)));
    let table = std::fs::read_to_string(out.join(MESSAGES_FILE)).unwrap();
    assert!(table.contains("start = \"send start\"\nend = \"send end\"\nmatch = \"message\""));
    let said = manifest.warnings.join("\n");
    for left_out in [
        "1 x end of a span that did not begin",
        "1 x event of phase \"v\"",
    ] {
        assert!(said.contains(left_out), "{said}");
    }
}

#[test]
fn a_cut_file_is_read_as_far_as_it_goes() {
    let text = br#"[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1},
        {"ph":"X","name":"b","pid":1,"tid":1,"ts":5,"#;
    let (manifest, rows) = imported(text, None);
    assert_eq!(rows.len(), 2);
    assert!(
        manifest.warnings.iter().any(|w| w.contains("cut short")),
        "{:?}",
        manifest.warnings
    );
    // The same text, compressed.
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&[&text[..60], b"]"].concat()).unwrap();
    assert_eq!(imported(&gzip.finish().unwrap(), None).1.len(), 2);
}

#[test]
fn perf_script_has_spans_evidence_and_losses() {
    let (manifest, rows) = imported(
        b"# ========\n\
        sh    10/11 [001]  5.000000100: syscalls:sys_enter_write: fd: 0x1\n\
        sh    10/11 [001]  5.000000200: sched:sched_switch: prev_comm=sh prev_pid=11 prev_prio=120 prev_state=R ==> next_comm=ls next_pid=12 next_prio=120\n\
        ls    12/12 [001]  5.000000250:     250000 cycles:u:  7f46 main (/bin/ls)\n\
        \t7f4688 caller+0x3 (/bin/ls)\n\n\
        ls    12/12 [001]  5.000000300: sched:sched_switch: ls:12 [120] S ==> sh:11 [120]\n\
        sh    10/11 [001]  5.000000400: syscalls:sys_exit_write: 0x1\n\
        sh    10/11 [001]  5.000000500: PERF_RECORD_LOST lost 17\n\
        something else\n",
        None,
    );
    let (out, into) = (16, 17);
    assert_eq!(
        rows,
        [
            row(11, "", out, 5_000_000_200, 1),
            row(12, "", into, 5_000_000_200, 0),
            row(12, "", out, 5_000_000_300, 0),
            row(11, "", into, 5_000_000_300, 0),
            row(11, "syscalls:sys_write", BEGIN, 5_000_000_100, 0),
            row(11, "syscalls:sys_write", END, 5_000_000_400, 0),
            row(12, "cycles:u", INSTANT, 5_000_000_250, 0),
        ]
    );
    let kernel = manifest.kernel.as_ref().unwrap();
    assert_eq!((manifest.events, manifest.lost, kernel.rows), (3, 17, 4));
    assert_eq!(kernel.sources[0].records, 2);
    assert!(
        manifest
            .warnings
            .iter()
            .any(|w| w.contains("1 x line that is no event"))
    );
}

/// A protobuf message under construction.
#[derive(Default, Clone)]
struct Message(Vec<u8>);

impl Message {
    fn varint(mut self, mut value: u64) -> Self {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
        self
    }

    fn number(self, field: u64, value: u64) -> Self {
        self.varint(field << 3).varint(value)
    }

    fn bytes(self, field: u64, bytes: &[u8]) -> Self {
        let mut with = self.varint(field << 3 | 2).varint(bytes.len() as u64);
        with.0.extend_from_slice(bytes);
        with
    }

    fn message(self, field: u64, message: &Self) -> Self {
        self.bytes(field, &message.0)
    }
}

/// A thread with a slice, whose sequence has a clock that counts from reading to reading, in
/// compressed packets; a counter; a flow; a switch of the kernel.
fn perfetto() -> Vec<u8> {
    let m = Message::default;
    let packet = |packet: Message| m().message(1, &packet.number(10, 7));
    let thread = m().number(1, 100).number(2, 101).bytes(5, b"main");
    let descriptor = m().number(1, 55).message(4, &thread);
    let counter = m()
        .number(1, 56)
        .number(5, 55)
        .bytes(2, b"level")
        .message(8, &m());
    let clock = |id, ns, step| m().number(1, id).number(2, ns).number(3, step);
    let snapshot = m()
        .message(1, &clock(64, 0, 1))
        .message(1, &clock(6, 5_000_000_000, 0));
    let defaults = m().number(58, 64).message(11, &m().number(11, 55));
    let name = m().number(1, 3).bytes(2, b"slice");
    let event = |time: u64, event: Message| m().number(8, time).message(11, &event);
    let flow = |field: u64| {
        let mut event = m().number(9, 3).bytes(23, b"point").varint(field << 3 | 1);
        event.0.extend_from_slice(&9u64.to_le_bytes());
        event
    };
    let begin = event(100, m().number(9, 1).number(10, 3)).message(12, &m().message(2, &name));
    let inside = [
        packet(begin),
        packet(event(20, flow(47))),
        packet(event(5, m().number(9, 4).number(11, 56).number(30, 12))),
        packet(event(5, flow(48))),
        packet(event(70, m().number(9, 2))),
    ];
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    for packet in &inside {
        zlib.write_all(&packet.0).unwrap();
    }
    let switch = m().number(2, 101).number(4, 1).number(6, 0);
    let ftrace = m()
        .number(1, 5_000_000_150)
        .number(2, 101)
        .message(4, &switch);
    let bundle = m().number(1, 3).message(2, &ftrace);
    [
        packet(
            m().number(13, 1)
                .message(59, &defaults)
                .message(6, &snapshot),
        ),
        packet(m().message(60, &descriptor)),
        packet(m().message(60, &counter)),
        packet(m().bytes(50, &zlib.finish().unwrap())),
        packet(m().message(1, &bundle)),
    ]
    .map(|message| message.0)
    .concat()
}

#[test]
fn perfetto_clocks_names_flows_counters_and_the_kernel() {
    let (manifest, mut rows) = imported(&perfetto(), None);
    let lane = rows.iter().find(|row| row.1 == "level").unwrap().0;
    let second = 5_000_000_000;
    rows.sort_by_key(|row| (row.0, row.3));
    assert_eq!(
        rows,
        [
            row(101, "slice", BEGIN, second + 100, 0),
            row(101, "point", INSTANT, second + 120, 0),
            row(101, "flow start", INSTANT, second + 120, 9),
            row(101, "point", INSTANT, second + 130, 0),
            row(101, "flow end", INSTANT, second + 130, 9),
            row(101, "", 16, second + 150, 0),
            row(101, "slice", END, second + 200, 0),
            row(lane, "level", INSTANT, second + 125, 12),
        ]
    );
    assert_eq!(manifest.threads[0].name, "main");
}

/// Stack samples, in each of the ways that Perfetto has, a heap profile and another machine's slice.
#[test]
fn what_perfetto_has_beside_is_counted() {
    let m = Message::default;
    let packet = |packet: Message| {
        m().message(1, &packet.number(10, 7).number(8, 5_000_000_160))
            .0
    };
    let slice = m().number(9, 1).number(11, 55).bytes(23, b"theirs");
    let beside = [
        packet(m().message(66, &m().number(2, 100).number(3, 101).number(4, 1))),
        packet(m().message(135, &m().number(6, 1))),
        packet(m().message(54, &m().number(1, 1))),
        packet(m().message(37, &m())),
        packet(m().message(11, &slice).number(98, 3)),
    ];
    let bytes = [perfetto(), beside.concat()].concat();
    let (manifest, rows) = imported(&bytes, None);
    assert_eq!(rows.len(), imported(&perfetto(), None).1.len());
    let warnings = manifest.warnings.join("\n");
    for words in [
        "2 x stack sample",
        "1 x packet of stack samples",
        "1 x heap profile",
        "1 x packet of another machine",
    ] {
        assert!(warnings.contains(words), "{warnings}");
    }
}

#[test]
fn what_is_none_of_these_is_refused_with_the_mend() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |bytes: &[u8], source: Option<Source>, words: &[&str]| {
        let (file, out) = (dir.path().join("file"), dir.path().join("t.ut"));
        std::fs::write(&file, bytes).unwrap();
        let error = import(&file, source, &out, &mut |_| {}).unwrap_err();
        assert_eq!(error.exit_status(), 2, "{error}");
        for word in words {
            assert!(
                error.to_string().contains(word),
                "{word:?} is not in: {error}"
            );
        }
        assert!(!out.exists(), "nothing is left behind");
    };
    refused(b"hello", None, &["cannot tell", "--from"]);
    refused(b"PERFILE2xxxx", None, &["perf script"]);
    refused(b"[]", None, &["holds no event"]);
    refused(b"[1,2]", None, &["byte 1"]);
    refused(b"hello", Some(Source::Perfetto), &["Perfetto", "--from"]);
    let out = dir.path().join("t.ut");
    let missing = import(&dir.path().join("nothing"), None, &out, &mut |_| {}).unwrap_err();
    assert_eq!(missing.exit_status(), 2);
    let empty = dir.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let error = import(&empty, None, &out, &mut |_| {})
        .unwrap_err()
        .to_string();
    assert!(error.contains("without a CTF trace"), "{error}");
}

/// A file that was changed, cut or joined at random is imported, or refused with a message; an
/// imported trace can be read.
#[test]
fn no_bytes_stop_it() {
    let chrome = br#"{"traceEvents":[{"ph":"B","name":"a","pid":1,"tid":2,"ts":1.5},{"ph":"b","id":"0x1","cat":"c","name":"r","pid":1,"tid":2,"ts":2,"args":{"n":1}},{"ph":"X","name":"x","pid":"p","tid":-3,"ts":-1e3,"dur":99999999},{"ph":"C","name":"c","pid":1,"tid":2,"ts":3,"args":{"a":1.5,"b":-2}},{"ph":"E","pid":1,"tid":2,"ts":9},{"ph":"s","id":3,"name":"f","pid":1,"tid":2,"ts":9}]}"#;
    let perf = b"sh 10/11 [001] 5.000000100: sched:sched_switch: a:1 [1] R ==> b:2 [1]\nsh 1 [0] 5.2: irq:irq_handler_entry: irq=3 name=x\nsh 1 [0] 5.3: irq:irq_handler_exit: irq=3\n a b 7 6.1: 10 cycles:\n";
    let seeds: [(&[u8], Source); 3] = [
        (chrome, Source::Chrome),
        (perf, Source::PerfScript),
        (&perfetto(), Source::Perfetto),
    ];
    let dir = tempfile::tempdir().unwrap();
    for seed in 0..600 {
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let (whole, source) = seeds[seed as usize % seeds.len()];
        let mut bytes = whole.to_vec();
        for _ in 0..random.random_range(1..6) {
            let at = random.random_range(0..bytes.len());
            match random.random_range(0..4) {
                0 => bytes[at] = random.random(),
                1 => bytes[at] ^= 1 << random.random_range(0..8),
                2 => bytes.truncate(at.max(1)),
                _ => {
                    let piece = whole[random.random_range(0..whole.len())..].to_vec();
                    bytes.splice(at..at, piece);
                }
            }
        }
        let out = dir.path().join(format!("{seed}.ut"));
        check(&dir.path().join("file"), &bytes, source, &out, seed);
    }
}

fn check(file: &Path, bytes: &[u8], source: Source, out: &Path, seed: u64) {
    std::fs::write(file, bytes).unwrap();
    match import(file, Some(source), out, &mut |_| {}) {
        Ok(manifest) => {
            let rows = rows(&Trace::open(out).unwrap());
            let kernel = manifest.kernel.map_or(0, |kernel| kernel.rows);
            assert_eq!(rows.len() as u64, manifest.events + kernel, "seed {seed}");
        }
        Err(error) => assert_eq!(error.exit_status(), 2, "seed {seed}: {error}"),
    }
}
