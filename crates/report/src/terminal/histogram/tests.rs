use super::*;

fn histogram(edges: &[f64], counts: &[u64]) -> Histogram {
    Histogram {
        unit: "ns".to_owned(),
        edges: edges.to_vec(),
        counts: counts.to_vec(),
    }
}

#[test]
fn rows_hold_every_sample() {
    for bins in [1_usize, 5, 16, 17, 100, 999] {
        let edges: Vec<f64> = (0..=bins).map(|i| 10.0 * 1.09_f64.powi(i as i32)).collect();
        let counts: Vec<u64> = (0..bins as u64).map(|i| (i * 7_919) % 503).collect();
        let Some(rows) = rows(&histogram(&edges, &counts)) else {
            assert_eq!(counts.iter().sum::<u64>(), 0);
            continue;
        };
        let sum: u64 = rows.iter().map(|r| r.count).sum();
        assert_eq!(sum, counts.iter().sum::<u64>(), "{bins} bins");
        assert!(rows.len() <= MOST_ROWS + 2);
        for pair in rows.windows(2) {
            assert_eq!(pair[0].to, pair[1].from);
        }
    }
}

#[test]
fn rare_values_go_into_a_tail_row_and_are_still_counted() {
    let h = histogram(&[1.0, 2.0, 3.0, 4.0, 9e9], &[1, 5_000, 4_998, 1]);
    let rows = rows(&h).unwrap();
    assert_eq!(
        rows[0],
        Row {
            from: None,
            to: Some(2.0),
            count: 1
        }
    );
    assert_eq!(
        rows[3],
        Row {
            from: Some(4.0),
            to: None,
            count: 1
        }
    );
    assert_eq!(rows.len(), 4);
}

#[test]
fn no_samples_no_histogram() {
    assert_eq!(rows(&Histogram::default()), None);
    assert_eq!(rows(&histogram(&[0.0, 1.0], &[0])), None);
    // Mismatched edges give no result instead of a guess.
    assert_eq!(rows(&histogram(&[0.0], &[5])), None);
}

#[test]
fn bars_are_as_long_as_their_counts() {
    assert_eq!(bar(0, 100, 10), "");
    assert_eq!(bar(100, 100, 10), "█".repeat(10));
    assert_eq!(bar(50, 100, 10), "█".repeat(5));
    assert_eq!(bar(1, 1_000_000, 10), "▏");
    assert_eq!(bar(13, 100, 10), "█▎");
}
