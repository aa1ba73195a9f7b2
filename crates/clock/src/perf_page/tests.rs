use super::*;

#[test]
fn mult_and_shift_become_a_rate() {
    // 2 GHz: a tick is half a nanosecond, 2^30 / 2^31.
    let conversion = TimeConversion {
        mult: 1 << 30,
        shift: 31,
    };
    assert_eq!(conversion.rate(), TickRate::new(2_000_000_000, 1).ok());
    let nonsense = TimeConversion { mult: 1, shift: 63 };
    assert_eq!(nonsense.rate(), None);
    let zero = TimeConversion { mult: 0, shift: 31 };
    assert_eq!(zero.rate(), None);
}

#[test]
fn the_attributes_have_the_size_of_the_first_version() {
    assert_eq!(size_of::<EventAttributes>(), 64);
}

#[test]
fn the_page_answers_or_is_absent() {
    match time_conversion() {
        Some(conversion) => {
            let rate = conversion.rate().expect("the kernel's numbers are a rate");
            assert!((1e6..1e11).contains(&rate.ticks_per_s()), "{rate}");
        }
        None => println!("skipped: no user time in a perf page here"),
    }
}
