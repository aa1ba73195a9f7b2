use super::*;

#[test]
fn blocks_are_of_one_length() {
    assert_eq!(place(0, 0, 1999), 0);
    assert_eq!(place(99, 0, 1999), 0);
    assert_eq!(place(100, 0, 1999), 1);
    assert_eq!(place(1999, 0, 1999), BLOCKS - 1);
    assert_eq!(place(5, 5, 5), 0);
    assert_eq!(place(i64::MAX, i64::MIN, i64::MAX), BLOCKS - 1);
}
