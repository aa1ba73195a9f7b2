use super::{share, words};

#[test]
fn commands_are_split_as_a_shell_does() {
    let of = |text: &str| words(&text.into()).ok();
    let expected = |words: &[&str]| Some(words.iter().map(Into::into).collect());
    assert_eq!(of("./a 1 2"), expected(&["./a", "1", "2"]));
    assert_eq!(
        of("./a 'b c' \"d e\" f\\ g"),
        expected(&["./a", "b c", "d e", "f g"])
    );
    assert_eq!(of("./a $HOME ; ls"), expected(&["./a", "$HOME", ";", "ls"]));
    for wrong in ["", "  ", "./a 'b", "./a \\"] {
        assert_eq!(of(wrong), None, "{wrong}");
    }
}

#[test]
fn shares() {
    assert_eq!(share("0.02"), Ok(0.02));
    assert_eq!(share("0"), Ok(0.0));
    for wrong in ["2%", "-0.1", "nan", "inf", "20", ""] {
        assert!(share(wrong).is_err(), "{wrong}");
    }
}
