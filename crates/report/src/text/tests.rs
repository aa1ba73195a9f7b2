use super::*;

#[test]
fn long_names_keep_both_ends() {
    assert_eq!(shorten("prepare", 7), "prepare");
    assert_eq!(shorten("prepare_statement", 9), "prep…ment");
    assert_eq!(shorten("abc", 1), "…");
    assert_eq!(shorten("abc", 0), "");
}

#[test]
fn width_is_counted_in_columns_not_characters() {
    // Each of these takes two columns.
    let wide = "測定測定測定測定";
    for room in 0..20 {
        let short = shorten(wide, room);
        assert!(columns(&short) <= room, "{short} in {room}");
    }
    assert_eq!(shorten(wide, 9), "測定…測定");
}

#[test]
fn wrapped_lines_fit_and_lose_no_word() {
    let text = "one two three four_is_a_long_word five";
    for room in 4..45 {
        let wrapped = wrap(text, room, 2);
        assert!(
            wrapped.lines().all(|l| columns(l) <= room),
            "{room}: {wrapped}"
        );
        let words: String = wrapped.split_whitespace().collect();
        assert_eq!(words, text.split_whitespace().collect::<String>());
    }
    assert_eq!(wrap("aa bb cc", 5, 1), "aa bb\n cc");
    assert_eq!(wrap("", 5, 1), "");
}

/// A word of a megabyte is broken and shortened by looking at each character a few times.
/// Looking at all of them for each line took minutes.
#[test]
fn a_name_without_end_takes_no_time_to_speak_of() {
    let long = "x".repeat(1 << 20);
    let begin = std::time::Instant::now();
    assert_eq!(columns(&shorten(&long, 1 << 19)), 1 << 19);
    let wrapped = wrap(&long, 80, 2);
    assert!(wrapped.lines().all(|line| columns(line) <= 80));
    assert_eq!(wrapped.matches('x').count(), long.len());
    let marks = format!("a{}", "\u{301}".repeat(1 << 20));
    assert_eq!(columns(&wrap(&marks, 80, 0)), 1);
    assert!(begin.elapsed() < std::time::Duration::from_secs(20));
}
