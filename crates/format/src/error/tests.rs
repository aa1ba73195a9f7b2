use super::*;

#[test]
fn what_files_say_steers_no_terminal() {
    let path = Path::new("a\x1b[2J\n.ut");
    let steering = "\x1b]0;x\x07\u{9b}\u{202e}";
    let errors = [
        TraceError::io(path, "cannot open")(std::io::ErrorKind::NotFound.into()),
        TraceError::damaged(path, format!("part {steering}")),
        TraceError::Usage(format!("{}: {steering}", path.display())),
        TraceError::Recording(steering.to_owned()),
    ];
    for error in errors {
        let said = error.to_string();
        assert!(said.contains("u{1b}"), "{said:?}");
        let is_wrong = |c: char| c != '\n' && undertick_text::is_unsafe_to_show(c);
        assert!(!said.contains(is_wrong), "{said:?}");
    }
}
