use super::*;

#[test]
fn the_step_is_what_all_times_have_in_common() {
    let step = |times: &[i64]| {
        let mut step = Step::default();
        for _ in 0..ENOUGH_TIMES {
            times.iter().for_each(|&ns| step.note(ns));
        }
        step.ns()
    };
    assert_eq!(step(&[13, 39, 65, 26013]), 26);
    assert_eq!(step(&[1000, 5000, 2000]), 1000);
    assert_eq!(step(&[-1, 0]), 1);
    assert_eq!(step(&[7]), 1);
    assert_eq!(Step::default().ns(), 1);
}

#[test]
fn names_are_cut_at_letters_and_end_at_65535() {
    let mut intake = Intake::new(Path::new("/nowhere"));
    let long = "é".repeat(200);
    intake.event(&long);
    assert_eq!(intake.names[0].name.len(), 254);
    for i in 0..70_000 {
        intake.event(&i.to_string());
    }
    assert_eq!(intake.names.len(), 65_535);
    assert_eq!(intake.event("new"), 65_534);
    assert_eq!(intake.event("7"), 8);
}

#[test]
fn strange_numbers_get_others() {
    let mut intake = Intake::new(Path::new("/nowhere"));
    assert_eq!(intake.number(&Id::Number(77)), 77);
    let far = Id::Number(1 << 40);
    let text = Id::Text("main".into());
    assert_eq!(intake.number(&far), OTHER_NUMBERS);
    assert_eq!(intake.number(&text), OTHER_NUMBERS + 1);
    assert_eq!(intake.number(&far), OTHER_NUMBERS);
    assert_eq!(intake.number(&Id::Number(-1)), OTHER_NUMBERS + 2);
    intake.thread(&Id::Number(1), &text).unwrap();
    assert_eq!(intake.threads()[0].name, "main");
}
