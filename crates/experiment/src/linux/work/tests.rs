use super::*;
use crate::linux::test_harness;
use crate::script::Words;

fn took_ns(act: &mut Act) -> u64 {
    let begin = now_ns();
    act();
    now_ns() - begin
}

#[test]
fn work_takes_about_as_long_as_said() {
    // The quickest of many, as in the calibration. A disturbance can only lengthen the time.
    let quickest = |ns| {
        let mut act = work(ns);
        (0..50).map(|_| took_ns(&mut act)).min().unwrap() as f64
    };
    for ns in [20e3, 200e3] {
        let found = quickest(ns);
        assert!((0.5 * ns..3.0 * ns).contains(&found), "{found} for {ns} ns");
    }
}

#[test]
fn sleep_is_not_shorter_than_said() {
    assert!(took_ns(&mut sleep(3e6)) >= 3_000_000);
}

#[test]
fn every_call_returns() {
    null()();
    offer()();
    for (_, kind) in Call::WORDS {
        let mut act = call(*kind);
        (0..100).for_each(|_| act());
    }
}

#[test]
fn running_out_ends_when_another_has_had_the_cpu() {
    // The kernel reports it in its own words. (The CPU may sometimes have gone to a third
    // thread, but not each time.)
    let times_taken = || -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"));
        line.unwrap().trim().parse().unwrap()
    };
    let on = undertick_clock::cpus::allowed()[0];
    let memory = crate::linux::shared_memory::SharedMemory::new(4096).unwrap();
    let count = memory.place_apart(std::sync::atomic::AtomicU64::new(0));
    let over = memory.place_apart(std::sync::atomic::AtomicU64::new(0));
    use std::sync::atomic::Ordering::Relaxed;
    test_harness::processes(2, &[on], |me| {
        if me == 1 {
            while over.load(Relaxed) == 0 {
                count.fetch_add(1, Relaxed);
            }
            return;
        }
        while count.load(Relaxed) == 0 {
            std::thread::yield_now();
        }
        let mut act = run_out();
        let counted = count.load(Relaxed);
        for _ in 0..20 {
            let before = times_taken();
            let took = took_ns(&mut act);
            assert!(took < 900_000_000, "{took} ns: it has not noticed");
            assert!(times_taken() > before, "it kept its CPU");
        }
        assert!(count.load(Relaxed) > counted, "the other one has not run");
        over.store(1, Relaxed);
    });
}
