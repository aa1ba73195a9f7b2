use super::*;

/// B ahead of A by `offset`; each leg takes what the list says.
fn exchanges(offset: i64, legs: &[(u64, u64)]) -> Vec<Exchange> {
    let mut now = 1_000_u64;
    legs.iter()
        .map(|(out, back)| {
            let before = now;
            now += out;
            let there = now.wrapping_add_signed(offset);
            now += back;
            Exchange {
                before,
                there,
                after: now,
            }
        })
        .collect()
}

#[test]
fn bounds_come_from_the_fastest_leg_each_way() {
    let made = exchanges(500, &[(80, 90), (60, 300), (700, 40)]);
    // 500 - 40 and 500 + 60.
    assert_eq!(bounds(&made, 0.0), Some((460, 560)));
    assert_eq!(bounds(&made, 26.0), Some((434, 586)));
    assert_eq!(bounds(&[], 26.0), None);
}

#[test]
fn the_truth_lies_within_for_every_offset_and_clock_step() {
    for offset in -300..300_i64 {
        for step in [1_u64, 10, 26] {
            let shown = |ticks: u64| ticks / step * step;
            let made: Vec<Exchange> = exchanges(offset, &[(33, 71), (90, 12), (44, 45)])
                .iter()
                .map(|e| Exchange {
                    before: shown(e.before),
                    there: shown(e.there),
                    after: shown(e.after),
                })
                .collect();
            let (lo, hi) = bounds(&made, step as f64).unwrap();
            assert!(lo <= offset && offset <= hi, "{offset} not in {lo}..{hi}");
            assert!(hi - lo <= 33 + 12 + 4 * step as i64);
        }
    }
}

#[test]
fn an_offset_that_moves_is_seen() {
    let mut made = exchanges(0, &[(20, 20)]);
    made.extend(exchanges(1_000, &[(20, 20)]));
    let (lo_ticks, hi_ticks) = bounds(&made, 1.0).unwrap();
    let offset = Offset {
        cpu: 1,
        reference_cpu: 0,
        lo_ticks,
        hi_ticks,
        exchanges: 2,
    };
    assert!(!offset.is_consistent());
}

#[test]
fn a_reading_below_the_published_one_went_back() {
    let source = Source::open(crate::ClockId::MonotonicRaw).unwrap();
    let start = source.read_ticks();
    // A reading from an hour ahead has been published.
    let greatest = AtomicI64::new(3_600_000_000_000);
    let (readings, backward, worst) = look(source, start, &greatest, Duration::ZERO);
    assert_eq!((readings, backward), (128, 128));
    assert!(worst > 3_000_000_000_000 && worst <= 3_600_000_000_000);
}

#[test]
fn cpus_are_spread_over_those_there_are() {
    assert_eq!(spread(&[0, 1], 8), [0, 1]);
    assert_eq!(spread(&[2, 4, 6, 8, 10, 12], 3), [2, 6, 10]);
    assert_eq!(spread(&[7], 8), [7]);
}

#[test]
fn this_machines_cpus() {
    let source = Source::open(crate::best().clock).unwrap();
    let across = measure(source, 26.0, Effort::SHORT);
    println!("{across:?}");
    assert_eq!(across.cpus_allowed, cpus::allowed().len());
    for offset in &across.offsets {
        assert!(offset.exchanges > 0);
    }
    if across.cpus.len() < 2 {
        println!("skipped: one CPU only");
        assert!(across.offsets.is_empty() && across.readings == 0);
    }
}
