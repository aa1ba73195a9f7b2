use super::*;

#[test]
fn events_by_number_and_by_name() {
    let known = [Name {
        pid: None,
        event: 7,
        name: "a=b".into(),
    }];
    let read = |text: &str| {
        let rate = rate(text, &known).map_err(|failure| failure.text)?;
        Ok::<_, String>((rate.event, rate.one_in))
    };
    assert_eq!(read("16"), Ok((None, 16)));
    assert_eq!(read("3=1"), Ok((Some(3), 1)));
    assert_eq!(read("a=b=65535"), Ok((Some(7), 65_535)));
    for wrong in ["", "0", "65536", "3=", "-1", "x=4", "70000=4", "3=1.5"] {
        let error = read(wrong).unwrap_err();
        assert!(error.starts_with(wrong), "{error}");
    }
}
