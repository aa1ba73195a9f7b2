//! `undertick merge`: two recordings of this host, and two hosts made of network, time and
//! host-name namespaces, whose clocks differ by a known offset.

mod hosts;
mod namespaces;
use crate::support;

use std::path::Path;
use std::process::Output;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int8Type, Int16Type, Int64Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use support::{compile, document, refused, said, undertick};

/// Returns the rows of a file of a merged trace: mode, host, ts, ts_local.
fn rows(trace: &Path, file: &str) -> Vec<(i8, i16, i64, i64)> {
    let file = std::fs::File::open(trace.join(file)).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let mut rows = Vec::new();
    for batch in reader.build().unwrap() {
        let batch = batch.unwrap();
        let column = |name: &str| batch.column_by_name(name).unwrap().clone();
        let (mode, host) = (column("mode"), column("host"));
        let (ts, local) = (column("ts"), column("ts_local"));
        for i in 0..batch.num_rows() {
            rows.push((
                mode.as_primitive::<Int8Type>().value(i),
                host.as_primitive::<Int16Type>().value(i),
                ts.as_primitive::<Int64Type>().value(i),
                local.as_primitive::<Int64Type>().value(i),
            ));
        }
    }
    rows
}

fn json(name: &str, output: &Output) -> serde_json::Value {
    assert!(output.status.success(), "{}", said(output).1);
    document(name, output)
}

fn manifest(trace: &Path) -> serde_json::Value {
    document(
        "manifest",
        &*std::fs::read(trace.join("manifest.json")).unwrap(),
    )
}

/// Two recordings of one boot have one clock: a message says that no map is needed.
#[test]
fn two_recordings_of_one_boot_need_no_map() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let first = support::trace(dir.path());
    std::fs::rename(&first, at("a.ut")).unwrap();
    let program = compile(
        dir.path(),
        "other",
        "#include \"undertick.h\"\n#include <unistd.h>\nint main(void) { ut_name(1, \"other\");\n\
         for (uint32_t i = 0; i < 300; i++) { ut_begin(1); if (i % 50 == 0) usleep(100); ut_end(1); } return 0; }\n",
        &[],
    );
    let recorded = undertick(&[
        "record",
        "-o",
        at("b.ut").to_str().unwrap(),
        "--",
        program.to_str().unwrap(),
    ]);
    assert_eq!(recorded.status.code(), Some(0), "{}", said(&recorded).1);
    let out = at("both.ut");
    let [a, b, both] = [at("a.ut"), at("b.ut"), out.clone()].map(|p| p.display().to_string());
    let (code, text) = said(&undertick(&["merge", &a, &b, "-o", &both]));
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains("same boot and same clock as host 0: no map is needed"),
        "{text}"
    );
    // No row moved or is missing, and rows of the kernel are in order of time.
    let events = rows(&out, "events.parquet");
    assert!(
        events
            .iter()
            .all(|(mode, _, ts, local)| *mode == 0 && ts == local)
    );
    let told = |trace: &Path| manifest(trace)["events"].as_u64().unwrap() as usize;
    assert_eq!(told(&out), told(&at("a.ut")) + told(&at("b.ut")));
    let of_host = |host: i16| events.iter().filter(|row| row.1 == host).count();
    assert_eq!(
        (of_host(0), of_host(1)),
        (told(&at("a.ut")), told(&at("b.ut")))
    );
    if out.join("kernel.parquet").exists() {
        let kernel = rows(&out, "kernel.parquet");
        assert!(kernel.iter().all(|row| row.0 == 1));
        assert!(kernel.is_sorted_by_key(|row| row.2));
        println!("{} rows of the kernel", kernel.len());
    } else {
        println!("skipped: no kernel events here");
    }
    // The names stay separate: event 1 has a different name in each.
    let report = json("report", &undertick(&["report", &both, "--json"]));
    let count = |name: &str| {
        let intervals = report["intervals"].as_array().unwrap();
        let of = intervals.iter().find(|i| i["name"] == name);
        of.unwrap_or_else(|| panic!("no {name}"))["count"]
            .as_u64()
            .unwrap()
            + of.unwrap()["culled"]["count"].as_u64().unwrap()
    };
    assert_eq!((count("request, \"quoted\""), count("other")), (1000, 300));
    // All commands that read a trace read this one.
    for format in ["csv", "perfetto", "parquet"] {
        let file = at(format).display().to_string();
        let exported = undertick(&["export", &both, "--to", format, &file]);
        assert_eq!(exported.status.code(), Some(0), "{}", said(&exported).1);
    }
    refused(
        &undertick(&["merge", &a, &b, "-o", &both]),
        2,
        &["exists already"],
    );
    refused(
        &undertick(&["merge", &a, "-o", &both]),
        2,
        &["2 values required"],
    );
    let again = undertick(&["merge", &a, &a, "-o", at("x.ut").to_str().unwrap()]);
    refused(&again, 2, &["given twice"]);
    let none = undertick(&[
        "merge",
        &a,
        "nowhere.ut",
        "-o",
        at("x.ut").to_str().unwrap(),
    ]);
    refused(&none, 2, &["nowhere.ut"]);
}
