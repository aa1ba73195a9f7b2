//! Exports, read by independent readers.

use crate::support;

use std::fs;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use support::{said, trace, undertick};

fn export(format: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let trace = trace(dir.path());
    let file = dir.path().join("out");
    let output = undertick(&["export", &trace, "--to", format, file.to_str().unwrap()]);
    assert_eq!(said(&output).0, 0, "{}", said(&output).1);
    (dir, file)
}

#[test]
fn csv_has_a_line_for_each_event() {
    let (_dir, file) = export("csv");
    let text = fs::read_to_string(file).unwrap();
    assert_eq!(text.lines().count(), 7001);
    let first = text.lines().nth(1).unwrap();
    // The ninth field, whether the thread was descheduled, depends on the machine.
    let fields: Vec<&str> = first.splitn(10, ',').collect();
    assert_eq!(fields[6..8], ["user", "begin"]);
    assert_eq!(fields[9], "1,\"request, \"\"quoted\"\"\",0");
    let wide = format!(",5,event 5,{}", 999u64 << 33);
    assert!(
        text.lines()
            .any(|line| line.contains(",instant,") && line.ends_with(&wide))
    );
}

#[test]
fn chrome_json_nests() {
    let (_dir, file) = export("chrome");
    let json: serde_json::Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let phase = |p: &str| events.iter().filter(|e| e["ph"] == p).count();
    assert_eq!(
        (phase("B"), phase("E"), phase("i"), phase("M")),
        (3000, 3000, 2000, 1)
    );
    let mut depth = 0i32;
    for event in events {
        depth += match event["ph"].as_str() {
            Some("B") => 1,
            Some("E") => -1,
            _ => 0,
        };
        assert!((0..=2).contains(&depth));
    }
    assert_eq!(depth, 0);
}

#[test]
fn parquet_has_names_and_nanoseconds() {
    let (_dir, file) = export("parquet");
    let reader = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(file).unwrap())
        .unwrap()
        .build()
        .unwrap();
    let (mut rows, mut named) = (0, 0);
    for batch in reader {
        let batch = batch.unwrap();
        rows += batch.num_rows();
        let names = batch.column_by_name("name").unwrap().as_string::<i32>();
        named += names.iter().filter(|name| *name == Some("parse")).count();
        let ns = batch
            .column_by_name("unix_ns")
            .unwrap()
            .as_primitive::<Int64Type>();
        // After 2020 and before 2100.
        assert!(
            ns.values()
                .iter()
                .all(|ns| (1_577_836_800_000_000_000..4_102_444_800_000_000_000).contains(ns))
        );
    }
    assert_eq!((rows, named), (7000, 2000));
}

/// A small reader of protobuf: (field, value or bytes).
pub fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, Vec<u8>)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return value;
            }
            shift += 7;
        }
    }
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        match key & 7 {
            0 => all.push((key >> 3, varint(&mut bytes), Vec::new())),
            1 => {
                let value = u64::from_le_bytes(bytes[..8].try_into().unwrap());
                all.push((key >> 3, value, Vec::new()));
                bytes = &bytes[8..];
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                all.push((key >> 3, 0, bytes[..length].to_vec()));
                bytes = &bytes[length..];
            }
            wire => panic!("wire type {wire}"),
        }
    }
    all
}

#[test]
fn perfetto_packets_follow_the_protocol() {
    let (_dir, file) = export("perfetto");
    let (mut kinds, mut names, mut tracks) = ([0; 5], Vec::new(), Vec::new());
    for (field, _, packet) in fields(&fs::read(file).unwrap()) {
        assert_eq!(field, 1, "Trace.packet");
        let packet = fields(&packet);
        assert!(
            packet.iter().any(|f| f.0 == 10),
            "every packet has its sequence"
        );
        for (field, _, bytes) in &packet {
            match field {
                11 => {
                    assert!(
                        packet
                            .iter()
                            .any(|f| f.0 == 8 && f.1 > 1_577_836_800_000_000_000),
                        "a timestamp"
                    );
                    let event = fields(bytes);
                    let of = |number: u64| event.iter().find(|f| f.0 == number).map(|f| f.1);
                    kinds[of(9).unwrap() as usize] += 1;
                    assert!(
                        tracks.contains(&of(11).unwrap()),
                        "a track described before"
                    );
                }
                12 => {
                    let entry = fields(&fields(bytes)[0].2);
                    names.push(String::from_utf8(entry[1].2.clone()).unwrap());
                }
                60 => tracks.push(fields(bytes)[0].1),
                _ => {}
            }
        }
    }
    // Begins, ends, instants, and their values: for both kinds of instants all but the first, a 0.
    assert_eq!(kinds, [0, 3000, 3000, 2000, 1998]);
    assert_eq!(tracks.len(), 4);
    names.sort();
    assert!(
        names.contains(&"parse".to_owned()) && names.len() == 5,
        "{names:?}"
    );
}
