use super::*;

/// Events at every 100 ticks, with the stretches in any order: none is lost, and each whole slice
/// holds its share within one.
#[test]
fn keeps_every_count_while_growing_both_ways() {
    for order in [[0_i64, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]] {
        let mut s = Slices::default();
        let row = s.count_row();
        let longs = s.duration_row();
        for part in order {
            let stretch = (part * 50_000..(part + 1) * 50_000).map(|i| (i - 120_000) * 100);
            for ts in stretch {
                s.reach(ts, ts);
                s.count(row, ts);
                s.keep(longs, ts, 3);
            }
        }
        assert_eq!(s.total(row), 200_000);
        let per_slice = f64::from(1 << s.shift) / 100.0;
        let whole = s.whole_counts(row);
        assert!((256..=512).contains(&(whole.len() + 2)), "{}", whole.len());
        assert!(whole.iter().all(|c| (c - per_slice).abs() <= 1.0));
        assert_eq!(s.durations(longs).iter().sum::<f64>(), 600_000.0);
    }
}

/// Two that saw different times, in slices of different lengths: merged in either order they
/// equal one that saw everything.
#[test]
fn merged_is_as_if_one_had_seen_all() {
    let times = |range: std::ops::Range<i64>, every: i64| range.map(move |i| i * every);
    let seen = |times: &[i64]| {
        let mut s = Slices::default();
        let (row, longs) = (s.count_row(), s.duration_row());
        for &ts in times {
            s.reach(ts, ts);
            s.count(row, ts);
            s.add_other(longs, ts, ts % 7);
            s.keep(longs, ts, 5);
        }
        s
    };
    let long: Vec<i64> = times(-3_000..9_000, 1000).collect();
    let short: Vec<i64> = times(400_000..400_700, 3).collect();
    let both: Vec<i64> = long.iter().chain(&short).copied().collect();
    let whole = seen(&both);
    for (a, b) in [(&long, &short), (&short, &long)] {
        let mut merged = seen(a);
        merged.merge(&seen(b), &[Some(0)], &[Some(0)]);
        assert_eq!(merged.shift, whole.shift);
        assert_eq!(merged.total(0), 12_700);
        assert_eq!(merged.whole_counts(0), whole.whole_counts(0));
        assert_eq!(merged.durations(0), whole.durations(0));
        assert_eq!(merged.kept(0), whole.kept(0));
    }
    let mut nothing = seen(&[]);
    nothing.merge(&seen(&[]), &[Some(0)], &[Some(0)]);
    assert_eq!(nothing.total(0), 0);
    nothing.merge(&whole, &[Some(0)], &[Some(0)]);
    assert_eq!(nothing.durations(0), whole.durations(0));
}

#[test]
fn survives_the_ends_of_time() {
    let mut s = Slices::default();
    let row = s.count_row();
    for ts in [0, i64::MAX, i64::MIN, -1, 5] {
        s.reach(ts, ts);
        s.count(row, ts);
    }
    assert_eq!(s.total(row), 5);
    s.clear();
    assert_eq!(s.total(row), 0);
}
