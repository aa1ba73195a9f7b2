use super::*;

const LINE: &str = r#"timestamp = 1795336773.504153058, trace = vm/ust/64-bit, , trace:hostname = vm, trace:domain = ust, loglevel = TRACE_DEBUG_LINE (13), name = shop:sold, stream.packet.context = { cpu_id = 1 }, stream.event.context = { vpid = 7, vtid = 8, procname = "tp" }, event.fields = { pieces = -5, what = "a, \"b\" } = {", state = ( "R" : container = 0 ), list = [ [0] = 1, [1] = 2 ] }"#;

#[test]
fn a_line_of_the_reader() {
    let event = Event::parse(LINE).unwrap();
    assert_eq!(
        (event.ns, event.name),
        (1_795_336_773_504_153_058, "shop:sold")
    );
    assert_eq!(event.number("cpu_id"), Some(1));
    assert_eq!(event.number("vtid"), Some(8));
    assert_eq!(event.field("trace:hostname"), Some("vm"));
    let names: Vec<&str> = event.own.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["pieces", "what", "state", "list"]);
    assert_eq!(event.own[1].1, r#""a, \"b\" } = {""#);
    assert_eq!(integer(event.own[0].1), Some(-5));
    assert_eq!(integer(event.own[2].1), Some(0));
    assert_eq!(integer("0xFF"), Some(255));
    assert!(Event::parse("nothing of it").is_none());
}

#[test]
fn what_was_discarded() {
    let said = "05-12 W PLUGIN/X [warning] Tracer discarded 48 events between [1] and [2]\n\
            [warning] Tracer discarded 2 packets between [1] and [2]\n\
            WARNING: Tracer discarded 7 events\n";
    assert_eq!(losses(said), (55, 2));
}

/// The metadata of both versions, and those of version 2 in a packet, in a directory below.
#[test]
fn version_2_is_told_by_its_metadata() {
    let dir = tempfile::tempdir().unwrap();
    let below = dir.path().join("ust/uid/1000/64-bit");
    std::fs::create_dir_all(&below).unwrap();
    for (metadata, is_2) in [
        (
            &b"/* CTF 1.8 */ typealias integer { size = 8; } := uint8_t;"[..],
            false,
        ),
        (b"\x57\x1d\xd1\x75/* CTF 1.8 */", false),
        (b"\x1e{\"type\":\"preamble\",\"version\":2}", true),
        (
            b"\x57\x1d\xd1\x75 the header of a packet \x1e{\"type\":\"preamble\"}",
            true,
        ),
        (b"", false),
    ] {
        std::fs::write(below.join("metadata"), metadata).unwrap();
        assert_eq!(is_version_2(dir.path(), DEEPEST), is_2, "{metadata:?}");
        assert!(!is_version_2(dir.path(), 2));
    }
    let versions = ["2.0.4", "1.5", "nothing", "2.1.0", "2.1", "2.10.3", "3.0"];
    let reads = [false, false, false, true, true, true, true];
    assert_eq!(versions.map(reads_version_2), reads);
    let said = too_old(Path::new("/traces/a"), Some("2.0.4"));
    for word in [
        "/traces/a",
        "from version 2.1",
        "has 2.0.4",
        "--names=all",
        "--from ctf",
        "--trace-format=ctf-1.8",
    ] {
        assert!(said.contains(word), "{said}");
    }
}
