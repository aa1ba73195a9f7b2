use undertick_format::manifest::{Clock, Host};
use undertick_record::synthetic::{self, SyntheticRing, SyntheticTrace};
use undertick_ring::{DeschedFlag, Kind, Record};

use super::*;

/// What an ordered span costs in the trace below, ticks.
const COST: i64 = 30;
/// How much longer its first execution takes: for the code of the point, and for each pair of the
/// dose.
const FETCH: i64 = 4;
const FETCH_OF_A_PAIR: f64 = 0.1;

/// Writes the workload's ordered spans, a tick of a nanosecond.
#[derive(Default)]
struct Workload {
    records: Vec<Record>,
    now: i64,
}

impl Workload {
    fn span(&mut self, event: u32, kinds: [Kind; 2], ticks: i64) {
        for (kind, after) in kinds.into_iter().zip([ticks, 300]) {
            self.records.push(Record {
                ts: self.now as u64,
                payload: 0,
                event: event as u16,
                cpu: 0,
                kind,
                descheduled: DeschedFlag::No,
            });
            self.now += after;
        }
    }

    /// A span twice, around so many pairs of 2 ticks.
    fn twice(&mut self, event: u32, pairs: f64) {
        let takes = 2 * pairs as i64 + COST;
        let fetch = FETCH + (pairs * FETCH_OF_A_PAIR) as i64;
        for fetch in [fetch, 0] {
            self.span(event, [Kind::BeginOrdered, Kind::EndOrdered], takes + fetch);
        }
    }

    fn read(self) -> Samples {
        let dir = tempfile::tempdir().unwrap();
        let trace = dir.path().join("workload.ut");
        let description = SyntheticTrace {
            host: Host {
                name: "made".into(),
                kernel: "none".into(),
                arch: "none".into(),
                cpus: 1,
                cpu_model: "none".into(),
            },
            command: vec!["made".into()],
            clock: Clock {
                name: "made".into(),
                ticks_per_second_numerator: 1_000_000_000,
                ticks_per_second_denominator: 1,
                rate_source: "made".into(),
                rate_error_ppb: 0.0,
                granularity_ticks: 1.0,
                read_cost_ns_median: 0.0,
                anchors: Vec::new(),
                across_cpus: None,
            },
            names: Vec::new(),
            started_unix_ns: 0,
            duration_ns: self.now,
            warnings: Vec::new(),
        };
        let ring = SyntheticRing {
            pid: 1,
            tid: 1,
            records: self.records,
            ..SyntheticRing::default()
        };
        synthetic::write(&trace, description, &[ring], &mut |_| {}).unwrap();
        Samples::read(&undertick_format::read::Trace::open(&trace).unwrap()).unwrap()
    }
}

/// The code of a dose that has to be fetched makes the first of two spans longer, the more the longer
/// the dose. The cost is what the second shows. The first around the shortest dose widens its
/// interval, because the code of a program's points may have to be fetched.
#[test]
fn fetching_the_code_of_a_dose_is_no_cost_of_recording() {
    let mut workload = Workload::default();
    for pass in 0..1600 {
        for _ in 0..2 {
            workload.span(REGULAR_PLAIN, [Kind::Begin, Kind::End], 20);
        }
        for first in [ORDERED.regular, ORDERED.random] {
            workload.twice(first, 0.0);
            DOSES
                .iter()
                .for_each(|&(offset, pairs)| workload.twice(first + offset, pairs));
        }
        let cold = 2 * COLD_PAIRS as i64 + COST + FETCH / 2;
        let ordered = [Kind::BeginOrdered, Kind::EndOrdered];
        workload.span(ORDERED.cold.unwrap(), ordered, cold);
        if pass % 16 == 0 {
            workload.span(1, ordered, 2 * 20_000 + COST);
        }
    }
    let samples = workload.read();
    let chains = Chains::measure(&samples).unwrap();
    let found = span_cost(&samples, ORDERED, &chains).unwrap();
    let near = |figure: f64, truth: f64, by: f64| {
        assert!(
            (figure - truth).abs() < by,
            "{figure} for {truth}: {found:#?}"
        );
    };
    let cycle = SURROUNDINGS_CYCLES * 2.0 / PAIR_CYCLES;
    near(found.dosed_ns.value, 30.0, 0.3);
    near(found.dosed_ns.interval.lo.unwrap(), 30.0 - cycle, 0.6);
    near(found.dosed_ns.interval.hi.unwrap(), 34.0 + cycle, 0.6);
    near(found.empty_ns.value, 30.0, 0.01);
    // Both spans of the event that begins a pass lie in one pass.
    let next = REGULAR_PLAIN + AGAIN;
    let more = samples.mean_added((next, 0), (REGULAR_PLAIN, 0)).unwrap();
    assert_eq!((more.value, more.n), (0.0, 1600));
}
