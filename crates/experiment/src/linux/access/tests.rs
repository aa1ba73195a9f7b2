use super::*;

#[test]
fn preparing_writes_each_word_and_no_other() {
    let desk = Desk::new();
    desk.set_own(&[u64::MAX; 4]);
    let mut prepare = desk.prepare(3);
    prepare();
    let first = desk.with_own(<[u64]>::to_vec);
    prepare();
    let second = desk.with_own(<[u64]>::to_vec);
    assert_eq!((first[3], second[3]), (u64::MAX, u64::MAX));
    assert!((0..3).all(|at| first[at] != u64::MAX && second[at] != first[at]));
}

#[test]
fn access_reads_the_message_and_the_rest_of_its_own() {
    // Reading leaves no trace, so the test shows that memory which must not be read is not
    // read.
    let desk = Desk::new();
    desk.access(0)();
    desk.access(100)();
    let words = desk.received(2);
    desk.came(words.message(2));
    desk.access(1)();
    desk.access(100)();
    // SAFETY: words given.
    assert_eq!(unsafe { sum([3, 4, 5].as_ptr(), 2) }, 7);
}
