use super::*;

fn refused(text: &str) -> String {
    Table::parse(text, "t.toml").unwrap_err().to_string()
}

#[test]
fn distances_by_hand() {
    assert_eq!(edits("kitten", "sitting"), 3);
    assert_eq!(edits("Commit", "commit"), 0);
    assert_eq!(edits("", "abc"), 3);
    assert_eq!(edits("strat", "start"), 1);
    assert_eq!(nearest("strat", KEYS), Some("start"));
    assert_eq!(nearest("xyzzy", KEYS), None);
}

#[test]
fn reads_a_whole_table() {
    let table = Table::parse(
            "[[interval]]\nname='t'\nstart=1\nend='x'\n[[interval]]\nname='i'\nstart=2\nend=2\nmatch='key'\nwithin='t'\n[[frequency]]\nname='f'\nevent='y'\n[[name]]\nevent=3\nname='three'\n",
            "t.toml",
        )
        .unwrap();
    assert_eq!(table.intervals[0].end.event, NameOrNumber::Name("x".into()));
    assert_eq!(table.intervals[0].end.line, 4);
    assert_eq!(table.intervals[1].matching, Matching::Key);
    assert_eq!(table.intervals[1].within, Some(0));
    assert_eq!(table.frequencies[0].event.line, 13);
    assert_eq!(table.names, [(3, "three".to_owned())]);
    assert!(!table.only_renames());
    assert!(Table::parse("", "t.toml").unwrap().only_renames());
}

#[test]
fn errors_name_file_line_and_mend() {
    let e = refused("[[interval]]\nname='a'\nstrat=1\nend=2\n");
    assert!(
        e.starts_with("t.toml:3: ") && e.contains("did you mean `start`?"),
        "{e}"
    );
    let e = refused("[[interval]]\nname='a'\nstart=1\nend=2\nmatch='nestled'\n");
    assert!(
        e.starts_with("t.toml:5: ") && e.contains("did you mean \"nested\"?"),
        "{e}"
    );
    let e = refused("[[interval]]\nname='lop'\nstart=1\nend=2\nwithin='loop'\n");
    assert!(
        e.starts_with("t.toml:5: ") && e.contains("did you mean \"lop\"?"),
        "{e}"
    );
    let e = refused("[[interval]]\nname='a'\nstart=70000\nend=2\n");
    assert!(
        e.starts_with("t.toml:3: ") && e.contains("0 to 65535"),
        "{e}"
    );
    let e = refused("[[interval]]\nname='a'\nstart=1\n");
    assert!(
        e.starts_with("t.toml:1: ") && e.contains("missing field `end`"),
        "{e}"
    );
    let e = refused("\n\n[[interval\n");
    assert!(e.starts_with("t.toml:3: "), "{e}");
    let two = "[[interval]]\nname='a'\nstart=1\nend=2\n[[interval]]\nname='a'\nstart=3\nend=4\n";
    assert!(refused(two).starts_with("t.toml:6: a second interval"));
}

#[test]
fn enclosing_must_make_sense() {
    let of = |m: &str, w: &str| {
        format!(
            "[[interval]]\nname='a'\nstart=1\nend=2\nmatch='{m}'\nwithin='{w}'\n[[interval]]\nname='b'\nstart=3\nend=4\nwithin='a'\n"
        )
    };
    assert!(refused(&of("nested", "b")).contains("within itself"));
    assert!(refused(&of("nested", "a")).contains("within itself"));
    let key = "[[interval]]\nname='a'\nstart=1\nend=2\nmatch='key'\n[[frequency]]\nname='f'\nevent=1\nwithin='a'\n";
    assert!(refused(key).starts_with("t.toml:9: only an interval"));
    assert!(refused(&of("message", "b")).contains("between threads"));
}
