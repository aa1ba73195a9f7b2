use super::*;

fn boundary(ts: i64, is_start: bool) -> Boundary {
    Boundary {
        ts,
        is_start,
        ordered: is_start,
        host: if is_start { 3 } else { 400 },
    }
}

#[test]
fn the_kth_start_belongs_to_the_kth_end() {
    let mut messages = Messages::default();
    // Key 5: starts at 10, 20, 30, ends at 40, 15; key 6 of another rule.
    for (rule, key, ts, is_start) in [
        (1, 5, 40, false),
        (1, 5, 30, true),
        (0, 6, 7, false),
        (1, 5, 10, true),
        (1, 5, 15, false),
        (0, 6, 9, true),
        (1, 5, 20, true),
        (0, 7, 9, false),
    ] {
        messages.add(rule, key, boundary(ts, is_start));
    }
    let matched = messages.matched();
    assert_eq!(matched.unmatched, [(0, false, 1), (1, true, 1)]);
    let found: Vec<(u32, i64, i64)> = matched
        .messages()
        .inspect(|m| assert_eq!(m.hosts, [3, 400]))
        .map(|m| (m.rule, m.end, m.ticks))
        .collect();
    // A message that ends before it begins stays as it is.
    assert_eq!(found, [(0, 7, -2), (1, 15, 5), (1, 40, 20)]);
}

#[test]
fn what_waits_for_ever_is_counted() {
    let mut messages = Messages::default();
    for ts in 0..MOST_WAITING as i64 + 3 {
        messages.add(2, 0, boundary(ts, true));
    }
    let matched = messages.matched();
    assert_eq!(matched.pushed_out, 3);
    let lost: u64 = matched.unmatched.iter().map(|u| u.2).sum();
    assert_eq!(lost, MOST_WAITING as u64 + 3);
}
