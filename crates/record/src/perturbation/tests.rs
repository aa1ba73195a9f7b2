use super::*;

#[test]
fn words() {
    let names = [Name {
        pid: None,
        event: 7,
        name: "frame".into(),
    }];
    let of = |text| Wanted::parse(text, &names);
    assert_eq!(of("1").unwrap(), Wanted::Level(1));
    assert_eq!(of("kernel").unwrap(), Wanted::Kernel);
    assert_eq!(of("keep=frame,9").unwrap(), Wanted::Kept(vec![7, 9]));
    for text in [
        "0",
        "-1",
        "x",
        "keep=",
        "keep=door",
        "keep=7,",
        "keep=70000",
    ] {
        let said = of(text).unwrap_err().to_string();
        assert!(said.contains(text) && said.contains("level"), "{said}");
    }
}
