use super::*;

#[test]
fn the_reason_comes_without_the_name() {
    assert_eq!(why("tsc: the CPU's own counter"), "the CPU's own counter");
    assert_eq!(why("monotonic_raw, because it is"), "because it is");
}

#[test]
fn one_cpu_and_a_shift_are_put_into_words() {
    let machine = Machine {
        cpus: 1,
        monotonic_shift_s: Some(1_000.0),
        ..Machine::default()
    };
    let notes = notes(&[], &machine).join("\n");
    assert!(
        notes.contains("One CPU only") && notes.contains("+1000.000 s"),
        "{notes}"
    );
}
