use super::*;
use crate::{MonotonicRaw, Tsc};

#[test]
fn a_step_back_is_negative() {
    let earlier = Reading::<Tsc>::from_raw(100);
    let later = Reading::<Tsc>::from_raw(126);
    assert_eq!((later - earlier).raw(), 26);
    assert_eq!((earlier - later).raw(), -26);
}

#[test]
fn the_wrap_of_the_counter_is_no_step_back() {
    let before = Reading::<Tsc>::from_raw(u64::MAX - 9);
    let after = Reading::<Tsc>::from_raw(16);
    // From MAX-9, ten ticks reach 0, sixteen more reach 16.
    assert_eq!((after - before).raw(), 26);
    assert_eq!((before - after).raw(), -26);
}

#[test]
fn the_farthest_differences() {
    let zero = Reading::<Tsc>::from_raw(0);
    let farthest = Reading::<Tsc>::from_raw((1 << 63) - 1);
    assert_eq!((farthest - zero).raw(), i64::MAX);
    assert_eq!((zero - farthest).raw(), -i64::MAX);
}

#[test]
fn adding_a_difference_gives_the_other_reading_back() {
    for (a, b) in [(0, u64::MAX), (5, 3), (u64::MAX, 1 << 63), (7, 7)] {
        let (a, b) = (
            Reading::<MonotonicRaw>::from_raw(a),
            Reading::<MonotonicRaw>::from_raw(b),
        );
        assert_eq!(a + (b - a), b);
    }
}

#[test]
fn readings_and_ticks_cost_what_their_number_costs() {
    assert_eq!(size_of::<Reading<Tsc>>(), 8);
    assert_eq!(size_of::<Option<Ticks<Tsc>>>(), size_of::<Option<i64>>());
}

#[test]
fn debug_names_the_clock() {
    assert_eq!(format!("{:?}", Reading::<Tsc>::from_raw(13)), "13@tsc");
    assert_eq!(
        format!("{:?}", Ticks::<MonotonicRaw>::from_raw(-4)),
        "-4 ticks of monotonic_raw"
    );
}
