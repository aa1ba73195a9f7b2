use super::*;

#[test]
fn units_are_found_for_a_known_pace() {
    // Work that takes 1 us per unit, as read from the clock itself.
    let spin = |units: u64| {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_micros(units) {}
    };
    let units = units_for(Duration::from_micros(200), spin);
    assert!((150..=201).contains(&units), "{units}");
}

/// By hand from the memo: 50 runs in a row, 100 times, with 10 s of sleep.
#[test]
fn the_published_schedule() {
    let schedule = Schedule::published();
    let sample = schedule.blocks.0 + schedule.blocks.1;
    assert_eq!(schedule.burst.as_micros() / sample.as_micros(), 50);
    let total = schedule.total.expect("it ends");
    assert_eq!(total.as_secs() / schedule.every.as_secs(), 100);
    assert_eq!(
        (schedule.blocks.0.as_micros(), schedule.mix),
        (290, Mix::Page)
    );
}

#[test]
fn there_is_room() {
    assert!(room_bytes() > 1 << 20);
}
