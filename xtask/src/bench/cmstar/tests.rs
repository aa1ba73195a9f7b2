use super::rates;

#[test]
fn rounds_are_kept_and_results_must_agree() {
    let text =
        "0 mm1 undertick 100 0.5 3.9\n0 mm1 desque 100 1.0 3.9\n1 mm1 undertick 100 0.25 3.9\n";
    let rates = rates(text).unwrap();
    let ours = &rates[&("mm1".to_owned(), "undertick".to_owned())];
    assert_eq!(ours, &[200.0, 400.0]);
    let other = text.replace("1.0 3.9", "1.0 4.0");
    assert!(
        super::rates(&other)
            .unwrap_err()
            .contains("desque found 4.0")
    );
    assert!(super::rates("0 mm1 undertick").is_err());
}
