use super::*;

#[test]
fn lists_by_hand() {
    assert_eq!(cpus("0"), Some(vec![0]));
    assert_eq!(cpus("0,2-3"), Some(vec![0, 2, 3]));
    assert_eq!(cpus("3, 1-2,2"), Some(vec![1, 2, 3]));
    for bad in [
        "",
        "a",
        "1-",
        "3-1",
        "1,,2",
        "8192",
        "-1",
        "0-99999999999999999999",
    ] {
        assert_eq!(cpus(bad), None, "{bad}");
    }
}
