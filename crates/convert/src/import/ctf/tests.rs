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
