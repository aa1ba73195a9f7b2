use super::*;

/// Bursts take from 1 to 4 times the fastest one's time: a slow-down of 3.9e15 was not seen,
/// one of 2 was.
#[test]
fn no_slowdown_beyond_what_was_seen() {
    let slow = [0.5, 0.5 + 4_f64.ln(), 0.7];
    let of = |value: f64, hi: f64| {
        let full = Full(vec![1.0]);
        let slope = Slope {
            value: value.ln(),
            error: (hi / value).ln() / normal_quantile(0.95),
        };
        let found = within_what_was_seen(slowdown(&slope, &full, &[], 0.95), &slow);
        (found.value, found.interval.hi)
    };
    let (value, hi) = of(3.9e15, 1e17);
    close(value, 4.0, 1e-9);
    assert_eq!(hi, None);
    let (value, hi) = of(2.0, 3.0);
    close(value, 2.0, 1e-9);
    close(hi.unwrap(), 3.0, 1e-9);
    assert_eq!(of(2.0, 5.0).1, None);
}

fn close(a: f64, b: f64, within: f64) {
    assert!((a - b).abs() <= within, "{a}, {b}");
}

/// Ten bursts on, of which the ends saw a part; the share for a use of a fifth, at two levels.
#[test]
fn what_is_used_when_active_by_hand() {
    let mut uses = vec![0.0; 40];
    uses[5] = 0.3;
    uses[6..14].fill(0.8);
    uses[8] = 0.76;
    uses[10] = 0.84;
    uses[11] = 0.61;
    uses[14] = 0.7;
    let full = Full::from_uses(&uses);
    // Those between two of at least 0.6: indices 7 to 13.
    assert_eq!(full.0, [0.61, 0.76, 0.8, 0.8, 0.8, 0.8, 0.84]);
    close(full.use_cpus(), 0.8, 1e-12);
    let share = full.share(0.2, 0.01, 0.95);
    close(share.value, 0.25, 1e-12);
    // One whole CPU, and the minimum in 95 of 100 bursts of seven.
    close(share.interval.lo.unwrap(), 0.19, 1e-12);
    close(share.interval.hi.unwrap(), 0.21 / 0.61, 1e-12);
    let share = full.share(0.2, 0.01, 0.8);
    close(share.interval.hi.unwrap(), 0.21 / 0.76, 1e-12);
}

#[test]
fn what_is_used_by_one_that_is_hardly_seen() {
    // Never for a whole burst: it is assumed to get a CPU.
    let full = Full::from_uses(&[0.0, 0.2, 0.3, 0.0, 0.25]);
    assert_eq!((full.use_cpus(), full.0.len()), (1.0, 0));
    let share = full.share(0.3, 0.1, 0.95);
    close(share.value, 0.3, 1e-12);
    close(share.interval.lo.unwrap(), 0.2, 1e-12);
    close(share.interval.hi.unwrap(), 0.4, 1e-12);
    assert_eq!(Full::from_uses(&[]).0.len(), 0);
    // Single bursts are all there is.
    assert_eq!(Full::from_uses(&[0.0, 0.9, 0.0, 0.8, 0.0]).0, [0.8, 0.9]);
    assert_eq!(Full::from_uses(&[0.0, 0.9, 0.0]).0, [0.9]);
    // Four threads at once.
    let full = Full::from_uses(&[0.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 0.0]);
    assert_eq!(full.0, [4.0; 4]);
    close(full.share(2.0, 0.0, 0.95).value, 0.5, 1e-12);
}
