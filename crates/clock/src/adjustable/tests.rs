use super::*;

#[test]
fn the_count_is_right_for_the_time_however_late() {
    // 1 ms ticks: on time, late by 300 us, late by three ticks, woken early.
    assert_eq!(due(1_000_000, 1_000_000, 0), (1, 0));
    assert_eq!(due(2_300_000, 1_000_000, 1), (2, 0));
    assert_eq!(due(6_100_000, 1_000_000, 2), (6, 3));
    assert_eq!(due(6_900_000, 1_000_000, 6), (6, 0));
}

#[test]
fn a_tick_outside_the_range_is_refused() {
    for tick_ns in [0, 49_999, 100_000_001] {
        let error = AdjustableClock::start(tick_ns, None).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert!(error.to_string().contains("50 us"), "{error}");
    }
}

#[test]
fn it_counts_what_the_kernels_clock_says_and_never_ahead() {
    for tick_ns in [50_000, 1_000_000, 7_300_000] {
        let before_ns = now_ns().unwrap();
        let clock = AdjustableClock::start(tick_ns, None).unwrap();
        let mut last = 0;
        while now_ns().unwrap() - before_ns < 60_000_000 {
            let ticks = clock.read_ticks();
            let most = (now_ns().unwrap() - before_ns) / tick_ns;
            assert!(last <= ticks && ticks <= most, "{last} {ticks} {most}");
            last = ticks;
        }
        let cost = clock.cost();
        println!("{tick_ns} ns: {cost:?}, {:.4} of a CPU", cost.share());
        assert!(cost.ticks > 0 && cost.wakeups > 0, "{cost:?}");
        // Each tick shown needed a wake-up; the others are counted as missed.
        assert!(cost.missed + cost.wakeups + 2 >= cost.ticks, "{cost:?}");
    }
}

#[test]
fn another_process_reads_the_page_through_the_descriptor() {
    let clock = AdjustableClock::start(1_000_000, None).unwrap();
    let fd = clock.page_fd().try_clone_to_owned().unwrap();
    let path = format!(
        "/proc/{}/fd/{}",
        std::process::id(),
        std::os::fd::AsRawFd::as_raw_fd(&fd)
    );
    // As another process does: opened anew, for reading.
    let opened = std::fs::File::open(path).unwrap();
    let page = Page::map(opened.into()).unwrap();
    assert_eq!(page.tick_ns(), 1_000_000);
    loop {
        let before = clock.read_ticks();
        let there = page.try_read_ticks().unwrap();
        assert!(before <= there && there <= clock.read_ticks());
        if there >= 3 {
            break;
        }
    }
}

#[test]
fn what_is_no_clock_page_is_refused() {
    for content in [&b""[..], &[0; 4096]] {
        let mut file = unnamed();
        io::Write::write_all(&mut file, content).unwrap();
        let error = Page::map(file.into()).unwrap_err();
        assert!(error.to_string().contains("not a clock page"), "{error}");
    }
}

fn unnamed() -> std::fs::File {
    // SAFETY: the name is a static C string; the descriptor is fresh and ours.
    unsafe {
        let fd = libc::memfd_create(c"test".as_ptr(), 0);
        std::os::fd::FromRawFd::from_raw_fd(fd)
    }
}

#[test]
fn a_long_wait_ends_when_the_clock_is_dropped() {
    let clock = AdjustableClock::start(100_000_000, None).unwrap();
    let shared = Arc::downgrade(&clock.shared);
    drop(clock);
    // The ticker held the other reference: it has ended.
    assert!(shared.upgrade().is_none());
}

#[test]
fn a_cpu_that_is_not_there_is_refused() {
    assert!(AdjustableClock::start(1_000_000, Some(1_000_000)).is_err());
    assert!(on_same_cpu(1_000_000, 1_000_000).is_err());
}

#[test]
fn the_overhead_on_the_same_cpu_is_a_share() {
    let cpu = crate::cpus::allowed()[0];
    let overhead = on_same_cpu(100_000, cpu).unwrap();
    println!("100 us: {overhead:?}");
    assert!(overhead.share < 1.0 && overhead.thread_share < 1.0);
    assert!(overhead.thread_share > 0.0);
}

#[test]
fn a_late_wake_up_shows_the_count_for_its_time() {
    let page = Page::create(1_000_000).unwrap();
    let shared = Shared::default();
    // Three ticks late, then woken too early, then on time.
    assert_eq!(show(&page, &shared, 4_200_000, 0), 4);
    assert_eq!(page.read_ticks(), 4);
    assert_eq!(show(&page, &shared, 4_999_999, 4), 4);
    assert_eq!(show(&page, &shared, 5_000_000, 4), 5);
    assert_eq!(page.read_ticks(), 5);
    assert_eq!(shared.missed.load(Ordering::Relaxed), 3);
}

#[test]
fn a_wait_for_an_hour_ends_when_told() {
    let stop = Arc::new(AtomicU32::new(0));
    let (ended, told) = std::sync::mpsc::channel();
    let waiter = Arc::clone(&stop);
    let in_an_hour = now_ns().unwrap() + 3_600_000_000_000;
    std::thread::spawn(move || {
        while waiter.load(Ordering::Acquire) == 0 {
            wait_until(&waiter, in_an_hour);
        }
        ended.send(()).unwrap();
    });
    // Long enough that it normally waits; it ends either way.
    std::thread::sleep(std::time::Duration::from_millis(50));
    end(&stop);
    told.recv_timeout(std::time::Duration::from_secs(60))
        .expect("it was woken");
}
