use arrow_array::Int8Array;

use undertick_format::schema::{TS_LOCAL, event_schema};

use super::*;

#[test]
fn rows_change_by_hand() {
    let knots = vec![[100, 1000, 5], [200, 1200, 5]];
    let map = HostMap {
        is_same_clock: false,
        compared_with: 0,
        messages: [0; 2],
        sources: Vec::new(),
        wander_ppm: 0.0,
        is_wander_raised: false,
        half_width_ns_median: 0.0,
        half_width_ns_max: 0.0,
        knots,
    };
    let i32s = |values: [i32; 4]| -> ArrayRef { Arc::new(Int32Array::from(values.to_vec())) };
    let i64s = |values: [i64; 4]| -> ArrayRef { Arc::new(Int64Array::from(values.to_vec())) };
    let i16s = || -> ArrayRef { Arc::new(Int16Array::from(vec![3; 4])) };
    let i8s = |values: [i8; 4]| -> ArrayRef { Arc::new(Int8Array::from(values.to_vec())) };
    let kinds = [Kind::Waking, Kind::Interrupt, Kind::Instant, Kind::Fault];
    let batch = RecordBatch::try_new(
        event_schema(),
        vec![
            i64s([100, 150, 150, 200]),
            i32s([-1, -1, 2, -1]),
            i32s([7, 0, 7, -1]),
            i32s([8, 0, 8, 9]),
            i16s(),
            i8s([1, 1, 0, 1]),
            i8s(kinds.map(|k| k as i8)),
            i8s([0; 4]),
            i32s([1; 4]),
            i64s([8, 10, 10, -1]),
            i16s(),
        ],
    )
    .unwrap();
    let mut change = Change::new(2, (40, 2 * PIDS), 2.0, Some(&map));
    let changed = change.rows(&batch).unwrap();
    let is = |column: usize, wanted: &ArrayRef| assert_eq!(changed.column(column), wanted);
    is(schema::TS, &i64s([1000, 1100, 1100, 1200]));
    is(schema::RING, &i32s([-1, -1, 42, -1]));
    is(schema::PID, &i32s([8_388_615, 0, 8_388_615, -1]));
    is(schema::TID, &i32s([8_388_616, 0, 8_388_616, 8_388_617]));
    // A thread; ticks, doubled; the program's own value; an unknown one.
    is(schema::PAYLOAD, &i64s([8_388_616, 20, 10, -1]));
    is(
        schema::HOST,
        &(Arc::new(Int16Array::from(vec![2; 4])) as ArrayRef),
    );
    is(schema::HOST + 1, &i64s([100, 150, 150, 200]));
    assert_eq!(changed.schema().field(11).name(), TS_LOCAL);
    let late = batch.slice(0, 1);
    let mut short = map.clone();
    short.knots = vec![[101, 0, 0], [200, 100, 0]];
    assert!(
        Change::new(1, (0, 0), 1.0, Some(&short))
            .rows(&late)
            .is_none()
    );
}

#[test]
fn every_host_has_room() {
    let last = (MOST_HOSTS as i32 - 1) * PIDS;
    assert_eq!(shifted(PIDS - 1, last), i32::MAX);
    assert_eq!((shifted(0, PIDS), shifted(-1, PIDS)), (0, -1));
}
