use super::*;

#[test]
fn loads_by_name() {
    assert_eq!("none".parse::<Load>().unwrap(), Load::None);
    assert_eq!("self:3".parse::<Load>().unwrap(), Load::Replicas(3));
    assert_eq!(
        "a/b.toml".parse::<Load>().unwrap(),
        Load::Script("a/b.toml".into())
    );
    for bad in ["self:0", "self:x", "self:5000", "heavy", ""] {
        let error = bad.parse::<Load>().unwrap_err();
        assert!(
            error.usage && error.to_string().contains("self:"),
            "{error}"
        );
    }
}

#[test]
fn a_bad_script_names_its_file_and_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("load.toml");
    for (text, named) in [
        ("[[process]]\ncomand = [\"true\"]\n", "comand"),
        ("[[process]]\ncommand = []\n", "process 1"),
        (
            "[[process]]\ncommand = [\"/no/such/program\"]\n",
            "/no/such/program",
        ),
    ] {
        std::fs::write(&path, text).unwrap();
        let clock = Source::open(undertick_clock::best().clock).unwrap();
        let error = Load::Script(path.clone()).start(clock).unwrap_err();
        let shown = error.to_string();
        assert!(
            shown.contains("load.toml") && shown.contains(named),
            "{shown}"
        );
    }
}

#[test]
fn a_load_that_ends_early_is_no_load() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("load.toml");
    std::fs::write(&path, "[[process]]\ncommand = [\"true\"]\n").unwrap();
    let clock = Source::open(undertick_clock::best().clock).unwrap();
    let error = Load::Script(path).start(clock).unwrap_err();
    assert!(
        !error.usage && error.to_string().contains("ended"),
        "{error}"
    );
}
