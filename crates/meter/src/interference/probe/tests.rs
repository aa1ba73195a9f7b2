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

#[test]
fn there_is_room() {
    assert!(room_bytes() > 1 << 20);
}
