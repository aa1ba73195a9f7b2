use super::*;

#[test]
fn only_keys_that_come_once_count() {
    let mut keys = Keys::default();
    keys.note(1, false, 0, 10);
    keys.note(1, true, 1, 20);
    keys.note(2, false, 0, 11);
    keys.note(2, false, 1, 12);
    keys.note(2, true, 1, 21);
    assert_eq!(keys.ends[&1], [End::One(0, 10), End::One(1, 20)]);
    assert_eq!(keys.ends[&2], [End::More, End::One(1, 21)]);
}

#[test]
fn too_many_keys_are_thinned_alike() {
    let mut keys = Keys::default();
    for key in 0..3 * MOST_KEYS as i64 {
        keys.note(key, false, 0, key);
    }
    for key in 0..3 * MOST_KEYS as i64 {
        keys.note(key, true, 1, key);
    }
    assert!(keys.ends.len() <= MOST_KEYS && keys.ends.len() > MOST_KEYS / 4);
    assert_eq!(keys.thinned, 2);
    let whole = |ends: &[End; 2]| !ends.contains(&End::None);
    assert!(keys.ends.values().all(whole));
}
