use super::*;

fn record(ts: u64, kind: Kind, event: u16, payload: u32) -> Record {
    Record {
        ts,
        payload,
        event,
        cpu: 3,
        kind,
        descheduled: DeschedFlag::No,
    }
}

#[test]
fn bursts_by_hand() {
    let mut decoder = Decoder::new(0.5);
    let (mix, reference) = (event::MIX, event::REFERENCE);
    let off = |r: Record| Record {
        descheduled: DeschedFlag::Yes,
        ..r
    };
    let (begin, end) = (Kind::BeginOrdered, Kind::EndOrdered);
    let records = [
        record(1, Kind::Instant, event::MIX_UNITS, 7),
        record(1 << 33, Kind::Continuation, 0, Record::WIDE),
        record(2, Kind::Instant, event::REFERENCE_TURNS, 9),
        record(3, Kind::Instant, event::FOOTPRINT, 4096),
        record(90, Kind::Instant, event::LATE, 250),
        off(record(100, begin, mix, 0)), // it slept
        record(120, end, mix, 0),
        record(122, begin, reference, 0),
        record(132, end, reference, 0),
        record(140, begin, mix, 0),
        off(record(340, end, mix, 0)),
        record(350, begin, reference, 0),
        record(362, end, reference, 0),
        record(370, Kind::Instant, event::OVER, 0),
        // Torn: the record of its begin was lost.
        record(400, Kind::Instant, event::LATE, 1),
        record(410, end, mix, 0),
        record(420, begin, reference, 0),
        record(430, end, reference, 0),
        record(440, Kind::Instant, event::OVER, 0),
        // The burst was not announced.
        record(500, begin, mix, 0),
        record(510, end, mix, 0),
        record(520, begin, reference, 0),
        record(530, end, reference, 0),
        record(540, Kind::Instant, event::OVER, 0),
    ];
    let bursts: Vec<Burst> = records.iter().filter_map(|r| decoder.take(r)).collect();
    let sample = |mix_ns, reference_ns, taken_off| Sample {
        mix_ns,
        reference_ns,
        taken_off,
    };
    assert_eq!(
        bursts,
        [Burst {
            begun_ns: 50.0,
            late_ns: 250.0,
            cpu: Some(3),
            samples: vec![
                sample(10.0, 5.0, TakenOff::No),
                sample(100.0, 6.0, TakenOff::Yes)
            ],
        }]
    );
    assert_eq!(bursts[0].wall_ns(), 121.0);
    let probe_info = decoder.probe_info();
    assert_eq!(
        (
            probe_info.mix_units,
            probe_info.reference_turns,
            probe_info.footprint_bytes
        ),
        (1 << 33, 9, 4096)
    );
}

#[test]
fn any_order_of_records_is_survived() {
    use rand::{RngExt as _, SeedableRng as _};
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(5);
    let kinds = [
        Kind::Instant,
        Kind::BeginOrdered,
        Kind::EndOrdered,
        Kind::Next,
        Kind::Continuation,
    ];
    let mut decoder = Decoder::new(1.0);
    for _ in 0..100_000 {
        let r = record(
            random.random(),
            kinds[random.random_range(0..kinds.len())],
            random.random_range(0..8),
            random.random_range(0..4),
        );
        if let Some(burst) = decoder.take(&r) {
            assert!(burst.samples.iter().all(|s| s.mix_ns.is_finite()));
        }
    }
}
