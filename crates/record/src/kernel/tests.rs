use super::*;

/// Each reading of the other clock lies between two of the trace clock: the reading it is
/// mapped to lies there too, within the bound.
#[test]
fn mapped_times_are_within_the_bound_that_is_stated() {
    let choice = undertick_clock::best();
    let clock = Source::open(choice.clock).unwrap();
    let facts =
        undertick_clock::facts::gather(clock, undertick_clock::rate::SHORTEST_SPAN).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let trace = TraceDir::open(dir.path()).unwrap();
    let mut writer = Writer::create(&trace).unwrap();
    let mut anchors = Anchors::new(&facts).unwrap();
    let mut readings = Vec::new();
    for _ in 0..6 {
        anchors.take(Instant::now(), true, &mut writer);
        for _ in 0..2000 {
            let before = clock.read_ticks_ordered() as i64;
            let ns = anchors.other.read_ticks_ordered() as i64;
            readings.push((before, ns, clock.read_ticks_ordered() as i64));
        }
        std::thread::sleep(Duration::from_millis(60));
    }
    anchors.take(Instant::now(), true, &mut writer);
    assert!(writer.finish().is_none());
    let taken: Vec<times::Anchor> = (raw::Reader::of_trace(&trace).unwrap().unwrap())
        .map(|record| times::Anchor {
            ticks: record.time as i64,
            ns: record.payload,
            error_ns: i64::from(record.a),
        })
        .collect();
    assert_eq!(taken.len(), 7);
    let ns_per_tick = facts.rate.claim.rate.ns_per_tick();
    let times = times::Times::new(&taken, 1.0 / ns_per_tick);
    let error = (times.error_ns() / ns_per_tick).ceil() as i64;
    for (before, ns, after) in readings {
        let mapped = times.ticks(ns);
        assert!(
            before - error <= mapped && mapped <= after + error,
            "{before} {mapped} {after} {error}"
        );
    }
}

#[test]
fn lists_of_cpus() {
    assert_eq!(list_of_cpus("0-1\n"), [0, 1]);
    assert_eq!(list_of_cpus("0,2-4,9"), [0, 2, 3, 4, 9]);
    assert_eq!(list_of_cpus(""), [] as [u32; 0]);
}
