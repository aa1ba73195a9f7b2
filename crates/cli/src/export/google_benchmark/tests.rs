use super::*;

#[test]
fn aggregates_by_hand() {
    let block = |count, sum_ns| Block { count, sum_ns };
    // The means are 1, 2 and 6: mean 3, median 2, variance (4 + 1 + 9) / 2.
    let blocks = [block(1, 1.0), block(4, 8.0), block(1, 6.0)];
    let found = aggregates("f", &blocks, &json!({}));
    let value = |i: usize| found[i]["real_time"].as_f64().unwrap();
    assert_eq!((value(0), value(1)), (3.0, 2.0));
    assert!((value(2) - 7f64.sqrt()).abs() < 1e-12);
    assert_eq!(found[2]["name"], "f_stddev");
}
