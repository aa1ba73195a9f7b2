use super::*;

#[test]
fn only_what_moved_is_told() {
    let first = "cpu  9 9 9 9 9 9 9 12 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu12 1 2 3 4 5 6 7 4 9 10\nintr 5\n";
    let second = "cpu  9 9 9 9 9 9 9 15 0 0\ncpu0 9 9 9 9 9 9 9 8 9 10\ncpu12 1 2 3 4 5 6 7 7 9 10\ncpu13 1 1 1 1 1 1 1 99 1 1\n";
    assert_eq!(counters(first), [(0, 8), (12, 4)]);
    let mut steal = Steal {
        last: counters(first),
        unit_ns: 10_000_000,
    };
    let mut records = Vec::new();
    steal.compare(second, 77, |record| records.push(record));
    assert_eq!(records.len(), 1);
    assert_eq!(
        (records[0].cpu, records[0].payload, records[0].time),
        (12, 30_000_000, 77)
    );
    // A CPU that came online later, and a counter that went back.
    steal.compare(
        &second.replace(" 99 ", " 101 ").replace("7 7 9", "7 6 9"),
        78,
        |record| {
            records.push(record);
        },
    );
    assert_eq!(
        (records.len(), records[1].cpu, records[1].payload),
        (2, 13, 20_000_000)
    );
}
