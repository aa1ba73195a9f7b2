use super::*;

#[test]
fn one_map_after_another_by_hand() {
    // 100 ahead; the second map bends at 150, where the second clock starts to run twice as
    // fast.
    let first = vec![[0, 100, 5], [100, 200, 9]];
    let then = vec![[90, 1090, 2], [150, 1150, 2], [210, 1270, 8]];
    let both = compose(&first, &then);
    // 5 + 2 + 3; 7 + 2 + 3 at the bend; 9 + 7 + 3.
    assert_eq!(both, [[0, 1100, 10], [50, 1150, 12], [100, 1250, 19]]);
    assert_eq!(inverse(&first, 150), Some(50));
    assert_eq!((inverse(&first, 100), inverse(&first, 201)), (None, None));
}

#[test]
fn near_is_within_rounding() {
    let knots = vec![[0, 100, 5], [100, 200, 9]];
    assert_eq!(near(&knots, -4), Some((100, 5)));
    assert_eq!(near(&knots, 104), Some((200, 9)));
    assert_eq!((near(&knots, -5), near(&knots, 105)), (None, None));
    assert_eq!(near(&Vec::new(), 0), None);
}
