use super::run;

#[test]
fn results_are_in_order_and_a_stop_is_a_stop() {
    let all: Vec<u64> = (0..500).collect();
    let squares = run(&all, |n| n * n, &mut |_| true).unwrap();
    assert!(squares.iter().zip(&all).all(|(s, n)| *s == n * n));
    let mut heard = 0;
    let slowly = |n: &u64| std::thread::sleep(std::time::Duration::from_millis(*n / 400));
    let stopped = run(&all, slowly, &mut |_| {
        heard += 1;
        heard < 10
    });
    assert!(stopped.is_err());
    assert!(
        run(&[] as &[u64], |n| *n, &mut |_| true)
            .unwrap()
            .is_empty()
    );
}
