use super::*;

pub(crate) fn side(name: &str) -> Side {
    Side {
        name: name.to_owned(),
        clock: ClockIdentity {
            clock: "tsc".to_owned(),
            boot_id: Some(format!("boot of {name}")),
            time_namespace: None,
        },
        ticks_per_second_numerator: 2_000_000_000,
        ticks_per_second_denominator: 1,
    }
}

#[test]
fn a_file_reads_back_and_others_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut file = SyncFile::new(side("a"), side("b"), "127.0.0.1:1".to_owned());
    file.exchanges = vec![[10, i64::MIN, i64::MAX, 90], [100, 7, 27, 180]];
    let first = file.write_into(dir.path()).unwrap();
    let second = file.write_into(dir.path()).unwrap();
    assert_ne!(first, second);
    let found = SyncFile::of_trace(dir.path()).unwrap();
    assert_eq!(
        found,
        [(first.clone(), file.clone()), (second, file.clone())]
    );
    // 80 ticks of 0.5 ns there and back, less 20 for the answer.
    file.exchanges.remove(0);
    assert_eq!(file.round_trips_ns(), Some((30.0, 30.0)));
    for (text, word) in [
        ("{}", "not a file of `undertick sync`"),
        (r#"{"kind": 3}"#, "not a file of `undertick sync`"),
        ("", "not a file of `undertick sync`"),
    ] {
        std::fs::write(&first, text).unwrap();
        let error = SyncFile::read(&first).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
    file.schema_version = 2;
    file.write(&first).unwrap();
    let error = SyncFile::read(&first).unwrap_err().to_string();
    assert!(error.contains("version 2, expected"), "{error}");
    assert!(SyncFile::of_trace(dir.path()).is_err());
    assert!(
        SyncFile::of_trace(Path::new("/nowhere"))
            .unwrap()
            .is_empty()
    );
}
