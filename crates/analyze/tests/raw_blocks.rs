//! Traces whose events are raw blocks.

use std::path::Path;

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use undertick_analyze::{Cull, Options, analyze_on, find_spans};
use undertick_format::block::{BlockHeader, encode};
use undertick_format::read::Trace;
use undertick_ring::{Kind, Record};

use crate::parallel::{Program, exact, kept, program, with_messages, written};
use crate::support;

/// Writes the records as a collector does: blocks of a few hundred, the rings mixed.
fn raw(path: &Path, program: &Program) {
    let mut bytes = Vec::new();
    let mut left: Vec<&[Record]> = (program.rings.iter())
        .map(|ring| ring.records.as_slice())
        .collect();
    while left.iter().any(|records| !records.is_empty()) {
        for (i, records) in left.iter_mut().enumerate() {
            let (mut n, most) = (records.len().min(700 + 100 * i), records.len());
            // An event and its continuation stay in one block.
            while n < most && records[n - 1].kind == Kind::Continuation {
                n += 1;
            }
            let (now, later) = records.split_at(n);
            *records = later;
            let words: Vec<[u64; 2]> = now.iter().map(|record| record.to_words()).collect();
            if !words.is_empty() {
                let header = BlockHeader {
                    ring: i as u32,
                    pid: program.rings[i].pid,
                    tid: program.rings[i].tid,
                    position: 0,
                    records: n as u32,
                };
                encode(header, &words, &mut bytes);
            }
        }
    }
    std::fs::write(path, bytes).unwrap();
}

/// The same trace with its events in raw blocks.
fn of_blocks(trace: &Trace, program: &Program, dir: &Path) -> Trace {
    std::fs::create_dir(dir).unwrap();
    let file = dir.join("raw.utb");
    raw(&file, program);
    let bytes = std::fs::read(file).unwrap();
    let mut manifest = trace.manifest.clone();
    let [part] = &mut manifest.parts[..] else {
        panic!("one part");
    };
    part.file = "raw.utb".to_owned();
    part.bytes = bytes.len() as u64;
    part.crc32 = crc32fast::hash(&bytes);
    let manifest = serde_json::to_vec(&manifest).unwrap();
    std::fs::write(dir.join("manifest.json"), manifest).unwrap();
    Trace::open(dir).unwrap()
}

/// All rows of a trace, ring by ring.
fn all_rows(trace: &Trace) -> RecordBatch {
    let batches: Vec<RecordBatch> = trace.batches().map(Result::unwrap).collect();
    concat_batches(&batches[0].schema(), &batches).unwrap()
}

/// A trace of raw blocks has the rows of one of Parquet and gives the same report, on any number of
/// CPUs, whether its blocks are analysed as they are or as rows.
#[test]
fn raw_blocks_are_analysed_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let program = program(5, 90_000);
    let trace = written(dir.path(), "five.ut", &program);
    let blocks = of_blocks(&trace, &program, &dir.path().join("blocks.ut"));
    assert!(trace.groups().unwrap().len() > 1);
    assert!(blocks.groups().unwrap().len() > 1);
    assert_eq!(all_rows(&blocks), all_rows(&trace));
    let ratio = Options {
        cull: Cull::Ratio(4.0),
        ..Options::default()
    };
    for (options, cpus) in [
        (Options::default(), 1),
        (Options::default(), 3),
        (with_messages(), 2),
        (ratio, 1),
    ] {
        let found = analyze_on(&blocks, options.clone(), cpus, &mut |_| {}).unwrap();
        let expected = analyze_on(&trace, options, 1, &mut |_| {}).unwrap();
        assert_eq!(found.trace, expected.trace);
        assert_eq!(found.intervals.len(), expected.intervals.len());
        for interval in &expected.intervals {
            let ours = support::interval(&found, &interval.name);
            assert_eq!(
                exact(&found, &interval.name),
                exact(&expected, &interval.name)
            );
            assert_eq!(ours.histogram, interval.histogram, "{}", interval.name);
        }
        assert_eq!(found.frequencies.len(), expected.frequencies.len());
    }
    let found = analyze_on(&blocks, with_messages(), 2, &mut |_| {}).unwrap();
    for (name, truth) in &program.truth {
        assert_eq!(exact(&found, name), *truth, "{name}");
    }
    let of = |trace: &Trace| {
        let spans = find_spans(trace, Options::default(), &mut |_| {}).unwrap();
        kept(spans.dir())
    };
    let (found, expected) = (of(&blocks), of(&trace));
    assert!(found.len() > 100_000 && found == expected);
}
