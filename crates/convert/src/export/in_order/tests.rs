use std::time::Duration;

use super::*;

#[test]
fn results_come_in_order() {
    let jobs = (0..500u32).map(Ok::<_, ()>);
    let mut taken = Vec::new();
    let slow_at_times = |job: u32| {
        if job.is_multiple_of(7) {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(2 * job)
    };
    in_order(jobs, slow_at_times, |result| {
        taken.push(result);
        Ok(())
    })
    .unwrap();
    assert_eq!(taken, Vec::from_iter((0..500).map(|job| 2 * job)));
}

#[test]
fn the_first_error_stops_all_jobs() {
    let jobs = |bad: u32| (0..1000u32).map(move |job| if job == bad { Err(job) } else { Ok(job) });
    for (bad_job, bad_work, bad_take) in [(20, 9999, 9999), (9999, 30, 9999), (9999, 9999, 40)] {
        let mut taken = 0;
        let failed = in_order(
            jobs(bad_job),
            |job| if job == bad_work { Err(job) } else { Ok(job) },
            |job| {
                if job == bad_take {
                    return Err(job);
                }
                taken += 1;
                Ok(())
            },
        );
        let first = bad_job.min(bad_work).min(bad_take);
        assert_eq!((failed, taken), (Err(first), first));
    }
}

/// The number of jobs that are not taken is bounded, however slow `take` is.
#[test]
fn a_slow_consumer_bounds_the_jobs() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let made = AtomicUsize::new(0);
    let jobs = (0..300).map(|job| {
        made.fetch_add(1, Ordering::Relaxed);
        Ok::<_, ()>(job)
    });
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let mut taken = 0;
    in_order(jobs, Ok, |_| {
        std::thread::sleep(Duration::from_micros(300));
        taken += 1;
        assert!(made.load(Ordering::Relaxed) <= taken + 4 * cpus + 2);
        Ok(())
    })
    .unwrap();
    assert_eq!(taken, 300);
}

/// A panic in every worker ends it, and is passed on.
#[test]
#[should_panic(expected = "scoped thread panicked")]
fn a_panic_is_passed_on() {
    let jobs = (0..1000u32).map(Ok::<_, ()>);
    let _ = in_order(
        jobs,
        |_| -> Result<u32, ()> { panic!("in work") },
        |_| Ok(()),
    );
}
