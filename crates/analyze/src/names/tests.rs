use super::*;

#[test]
fn the_table_wins_then_the_process_then_all() {
    let name = |pid, event, name: &str| Name {
        pid,
        event,
        name: name.into(),
    };
    let names = Names::new(
        &[
            name(None, 1, "one"),
            name(None, 2, "two"),
            name(Some(9), 1, "own"),
        ],
        &[(2, "zwei".into())],
    );
    let renamed = Names::new(&[name(Some(9), 1, "own")], &[(1, "eins".into())]);
    assert_eq!(renamed.shown(renamed.set_of(9), 1), "eins");
    let own = names.set_of(9);
    assert_eq!(names.set_of(8), 0);
    assert_eq!(names.shown(0, 1), "one");
    assert_eq!(names.shown(own, 1), "own");
    assert_eq!(names.shown(own, 2), "zwei");
    assert_eq!(names.shown(own, 3), "event 3");
    assert_eq!(names.all().count(), 4);
}
