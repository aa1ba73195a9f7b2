use super::*;

fn histogram_of(values: &[i64]) -> SignedHistogram {
    let mut h = SignedHistogram::new();
    values.iter().for_each(|&v| h.record(v));
    h
}

#[test]
fn small_values_are_exact_and_negative_ones_kept() {
    let d = histogram_of(&[2047, -2, 5, 0, -2, -2047]).distribution();
    let at = |rank| d.at_rank(rank).map(|b| (b.lo, b.hi));
    assert_eq!(at(0), None);
    assert_eq!(at(1), Some((-2047, -2047)));
    assert_eq!(at(2), Some((-2, -2)));
    assert_eq!(at(3), Some((-2, -2)));
    assert_eq!(at(4), Some((0, 0)));
    assert_eq!(at(5), Some((5, 5)));
    assert_eq!(at(6), Some((2047, 2047)));
    assert_eq!(at(7), None);
    assert_eq!((d.n(), d.bins().len(), d.bins()[1].count), (6, 5, 2));
}

#[test]
fn large_values_lie_in_their_bin_within_a_thousandth() {
    for v in [2049_i64, 123_457, -1_000_003, 1 << 40, i64::MAX, i64::MIN] {
        let b = histogram_of(&[v]).bins()[0];
        assert!(b.lo <= v && v <= b.hi, "{v} not in {b:?}");
        let width = b.hi as f64 - b.lo as f64;
        assert!(width <= (v as f64).abs() / 1000.0, "{v}: {b:?}");
    }
}

#[test]
fn merge_and_shift() {
    let mut a = histogram_of(&[1, 2]);
    a.merge(&histogram_of(&[-5, 2]));
    assert_eq!(a.n(), 4);
    let bins = a.shifted(-2).bins();
    let expect = |lo, count| Bin { lo, hi: lo, count };
    assert_eq!(bins, [expect(-7, 1), expect(-1, 1), expect(0, 2)]);
}

/// The single pass finds the same as the ordered bins.
#[test]
fn quantiles_are_those_of_the_bins() {
    let ps = [0.0, 0.001, 0.25, 0.5, 0.9, 0.999, 1.0];
    let mut mix = 1_u64;
    for n in [0, 1, 2, 7, 1000, 20_000] {
        for (shift, off) in [(60, 0), (50, 4000), (40, 1 << 20), (30, 1 << 33)] {
            let mut h = SignedHistogram::new();
            for _ in 0..n {
                mix = mix
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(99_991);
                h.record((mix >> shift) as i64 - off);
            }
            let ordered = h.distribution();
            let expected = ps.map(|p| {
                let rank = (p * ordered.n() as f64).ceil() as u64;
                ordered.at_rank(rank.max(1)).map_or(0, |bin| bin.hi)
            });
            assert_eq!(h.quantiles(ps), expected, "{n} values, {shift}");
        }
    }
}

#[test]
fn cells_tile_the_line() {
    for cell in -60..60 {
        let (lo, next) = (start_of(cell), start_of(cell + 1));
        assert!(lo < next, "{cell}");
        for steps in [lo, next - 1.0] {
            assert_eq!(cell_of(steps), cell, "{steps} steps");
        }
    }
}

/// Steps of 26 from 13: readings 13, 39, 65 (two) and -13.
#[test]
fn drawing_puts_every_step_in_the_middle_of_its_bin() {
    let drawn = histogram_of(&[13, 39, 65, 65, -13])
        .distribution()
        .drawn(26.0, 13.0);
    assert_eq!(drawn.edges, [-26.0, 0.0, 26.0, 52.0, 78.0]);
    assert_eq!(drawn.counts, [1, 1, 1, 2]);
    assert_eq!(
        SignedHistogram::new()
            .distribution()
            .drawn(1.0, 0.0)
            .edges
            .len(),
        0
    );
}

/// 0 and 1 with counts 3 and 1: mean 1/4, m2 3/16, m3 3/32.
#[test]
fn skewness_by_hand() {
    let d = histogram_of(&[0, 0, 0, 1]).distribution();
    let expected = (3.0 / 32.0) / (3.0_f64 / 16.0).powf(1.5);
    assert!((d.shape().skewness - expected).abs() < 1e-12);
    assert_eq!(
        histogram_of(&[4, 4]).distribution().shape(),
        Shape::default()
    );
}

/// Another implementation with the same layout: every bin of 60 000 magnitudes spread over all
/// octaves.
#[test]
fn bins_are_those_of_hdrhistogram() {
    let mut theirs = hdrhistogram::Histogram::<u64>::new(3).unwrap();
    theirs.auto(true);
    let mut ours = SignedHistogram::new();
    for i in 0..60_000_u64 {
        let v = (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (i % 63)) >> 1;
        theirs.record(v).unwrap();
        ours.record(v as i64);
    }
    let theirs: Vec<(u64, u64, u64)> = (theirs.iter_recorded())
        .map(|step| {
            let v = step.value_iterated_to();
            (
                theirs.lowest_equivalent(v),
                theirs.highest_equivalent(v),
                step.count_at_value(),
            )
        })
        .collect();
    let ours: Vec<(u64, u64, u64)> = (ours.bins().iter())
        .map(|b| (b.lo as u64, b.hi as u64, b.count))
        .collect();
    assert_eq!(ours, theirs);
}

/// A coarser histogram has the same values in wider bins, and looking at a series changes nothing in
/// it: in the one below, some values are pending each time.
#[test]
fn coarser_bins_hold_the_same_values() {
    let (mut series, mut undisturbed) = (crate::Series::new(), crate::Series::new());
    let mut own = SignedHistogram::<6>::default();
    let mut value = 1_i64;
    for i in 0..3_000_i64 {
        value = (value * 7_919 + 13) % 1_000_003;
        let value = value - 300_000;
        own.record(value);
        series.push(value);
        undisturbed.push(value);
        if i % 100 == 7 {
            assert_eq!(series.coarse_histogram::<6>().n(), i as u64 + 1);
        }
    }
    // A value keeps its bin: bins of fewer bits are unions of finer ones.
    assert_eq!(series.coarse_histogram(), own);
    let figures = |series: crate::Series| format!("{:?}", series.sample().quantile(0.5, 0.95, 0.0));
    assert_eq!(figures(series), figures(undisturbed));
}
