//! Tests of declared and measured rates, with invented numbers.

use super::*;

const TRUE_HZ: u64 = 2_596_130_000;

fn claim(hz: u64, source: RateSource, error_ppb: f64) -> Claim {
    Claim {
        rate: TickRate::new(hz, 1).unwrap(),
        source,
        error_ppb,
    }
}

fn pair_at(ticks: u64, reference_ns: u64, error_ns: u64) -> Pair {
    Pair {
        ticks,
        reference_ns,
        error_ns,
    }
}

#[test]
fn a_rate_between_two_pairs_is_exact_and_its_bound_counts_both_brackets() {
    // 100 ms at 2.6 GHz; brackets of 25 and 30 ns, a step of 26 ticks = 10 ns:
    // 65 ns in 1e8 ns are 650 ppb.
    let begin = pair_at(1_000, 5_000, 25);
    let end = pair_at(1_000 + 260_000_000, 5_000 + 100_000_000, 30);
    let found = from_pairs(begin, end, 26.0).unwrap();
    assert_eq!(found.rate, TickRate::new(2_600_000_000, 1).unwrap());
    assert!((found.error_ppb - (650.0 + RAW_ROUNDING_PPB)).abs() < 1e-6);
}

#[test]
fn clocks_that_stood_still_or_went_back_give_no_rate() {
    let begin = pair_at(1_000, 5_000, 25);
    assert_eq!(from_pairs(begin, begin, 1.0), None);
    assert_eq!(from_pairs(begin, pair_at(999, 9_000, 1), 1.0), None);
    assert_eq!(from_pairs(begin, pair_at(2_000, 4_999, 1), 1.0), None);
}

#[test]
fn the_bound_holds_the_truth_for_simulated_brackets() {
    // The clock is read at any point of its bracket; both clocks show their last step.
    let (clock_step, raw_step) = (26_u64, 10_u64);
    let shown_ticks = |true_ns: f64| (true_ns * 2.59613) as u64 / clock_step * clock_step;
    let shown_ns = |true_ns: f64| true_ns as u64 / raw_step * raw_step;
    let mut widest_ppb = 0.0_f64;
    for case in 0..2_000_u64 {
        let bracket_ns = 20.0 + (case % 7) as f64 * 9.0;
        let read = |at_ns: f64, share: f64| {
            let before_ns = shown_ns(at_ns);
            let ticks = shown_ticks(at_ns + bracket_ns * share);
            let after_ns = shown_ns(at_ns + bracket_ns);
            let tries = [crate::bracket::Try {
                before_ns,
                ticks,
                after_ns,
            }];
            crate::bracket::tightest(&tries, raw_step).unwrap()
        };
        let begin = read(1e6 + case as f64 * 1.37, (case % 11) as f64 / 10.0);
        let end = read(1e6 + 5e7 + case as f64 * 2.11, (case % 13) as f64 / 12.0);
        let found = from_pairs(begin, end, clock_step as f64).unwrap();
        let off_ppb = (found.rate.ticks_per_s() / 2.59613e9 - 1.0).abs() * 1e9;
        assert!(
            off_ppb <= found.error_ppb - RAW_ROUNDING_PPB,
            "case {case}: {off_ppb} ppb off, {} allowed",
            found.error_ppb
        );
        widest_ppb = widest_ppb.max(off_ppb);
    }
    assert!(
        widest_ppb > 500.0,
        "the simulated brackets are too kind: {widest_ppb}"
    );
}

#[test]
fn the_declared_rate_with_the_smallest_bound_is_taken() {
    let measured = claim(TRUE_HZ + 900, RateSource::Measured, 1_500.0);
    let hypervisor = claim(TRUE_HZ, RateSource::HypervisorLeaf, 385.0);
    let base = claim(2_596_000_000, RateSource::CpuidBase, 385_000.0);
    let found = decide(&[base, hypervisor], Some(measured)).unwrap();
    assert_eq!(found.claim, hypervisor);
    assert_eq!(found.measured, Some(measured));
    assert!(found.refused.is_empty());
}

#[test]
fn a_measured_rate_beats_a_coarse_declared_one() {
    let measured = claim(TRUE_HZ + 900, RateSource::Measured, 1_500.0);
    let base = claim(2_596_000_000, RateSource::CpuidBase, 385_000.0);
    let found = decide(&[base], Some(measured)).unwrap();
    assert_eq!(found.claim, measured);
    assert!(found.refused.is_empty());
}

#[test]
fn a_declared_rate_that_disagrees_is_refused_and_named() {
    let measured = claim(TRUE_HZ, RateSource::Measured, 1_500.0);
    // 10 ppm too fast, where 385 + 1500 ppb are allowed.
    let hypervisor = claim(TRUE_HZ + 25_961, RateSource::HypervisorLeaf, 385.0);
    let found = decide(&[hypervisor], Some(measured)).unwrap();
    assert_eq!(found.claim, measured);
    let [refused] = found.refused[..] else {
        panic!("{:?}", found.refused)
    };
    assert_eq!(refused.claim, hypervisor);
    assert!((refused.off_ppb - 10_000.0).abs() < 1.0);
    assert!((refused.allowed_ppb - 1_885.0).abs() < 1e-9);
    let text = refused.to_string();
    assert!(
        text.contains("hypervisor_leaf") && text.contains("+10.0 ppm"),
        "{text}"
    );
    // A rate that is too slow by as much is refused as well.
    let slow = claim(TRUE_HZ - 25_961, RateSource::Kernel, 385.0);
    assert_eq!(decide(&[slow], Some(measured)).unwrap().refused.len(), 1);
}

#[test]
fn without_a_measurement_the_declared_rate_stands_unchecked() {
    let kernel = claim(TRUE_HZ, RateSource::Kernel, 386.0);
    let found = decide(&[kernel], None).unwrap();
    assert_eq!((found.claim, found.measured), (kernel, None));
    assert_eq!(decide(&[], None), Err(NoRate));
}

#[test]
#[cfg(target_arch = "x86_64")]
fn declared_numbers_become_rates_with_their_bounds() {
    let cpuid = DeclaredByCpuid {
        hypervisor_khz: Some(2_500_000),
        crystal: Some(crate::tsc::Crystal {
            crystal_hz: 25_000_000,
            numerator: 201,
            denominator: 2,
        }),
        base_mhz: Some(2_500),
    };
    // 2.5 GHz: 0.4 ns = 2^32 / 2.5 / 2^32.
    let kernel = crate::perf_page::TimeConversion {
        mult: 1_717_986_918,
        shift: 32,
    };
    let claims = claims_of_tsc(cpuid, Some(kernel));
    let by = |source| *claims.iter().find(|c| c.source == source).unwrap();
    assert_eq!(claims.len(), 4);
    // 1 kHz in 2.5 GHz are 400 ppb.
    let hypervisor = by(RateSource::HypervisorLeaf);
    assert_eq!(hypervisor.rate, TickRate::new(2_500_000_000, 1).unwrap());
    assert!((hypervisor.error_ppb - 400.0).abs() < 1e-6);
    // 25 MHz * 201 / 2.
    let crystal = by(RateSource::CpuidCrystal);
    assert_eq!(crystal.rate, TickRate::new(2_512_500_000, 1).unwrap());
    assert!((by(RateSource::CpuidBase).error_ppb - 400_000.0).abs() < 1e-3);
    let kernel = by(RateSource::Kernel);
    assert!((kernel.rate.ticks_per_s() - 2.5e9).abs() < 2.0);
    assert!(
        (400.0..402.0).contains(&kernel.error_ppb),
        "{}",
        kernel.error_ppb
    );
    assert_eq!(claims_of_tsc(DeclaredByCpuid::default(), None), []);
}

#[test]
fn kernel_clocks_count_nanoseconds_by_definition() {
    let source = Source::open(ClockId::Monotonic).unwrap();
    let found = find(source, Duration::ZERO).unwrap();
    assert_eq!(found.claim.source, RateSource::Definition);
    assert_eq!(found.claim.rate, TickRate::NANOSECONDS);
}

#[test]
fn the_counter_here_has_a_rate() {
    let best = crate::best();
    let source = Source::open(best.clock).unwrap();
    let found = find(source, SHORTEST_SPAN).unwrap();
    println!("{best}: {found:?}");
    // No timing is asserted: any counter runs between 1 MHz and 100 GHz.
    assert!((1e6..1e11).contains(&found.claim.rate.ticks_per_s()));
    assert!(found.claim.error_ppb >= 0.0);
}
