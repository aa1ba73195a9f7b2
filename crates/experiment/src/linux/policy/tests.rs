use super::*;

/// Runs in its own thread, because the test's thread keeps its policy.
fn in_a_thread(run: impl FnOnce() + Send + 'static) {
    std::thread::spawn(run)
        .join()
        .expect("the thread's own checks hold");
}

#[test]
fn a_policy_is_tried_and_left() {
    in_a_thread(|| {
        let before = current().unwrap();
        let (policy, refused) = permitted(&[Policy::Batch, Policy::Fifo]).unwrap();
        assert_eq!((policy, refused), (Policy::Batch, None));
        assert_eq!(current().unwrap(), before);
        set(Policy::Batch).unwrap();
        assert_eq!(current().unwrap().number, libc::SCHED_BATCH);
        set(Policy::Other).unwrap();
        assert_eq!(
            current().unwrap().number,
            libc::SCHED_BATCH,
            "what is inherited stays"
        );
    });
}

/// Without the right to a real-time policy, the next one is taken, and the reason says what it
/// needs. With the right, the first one is taken.
#[test]
fn what_is_refused_is_named_with_what_it_needs() {
    in_a_thread(|| {
        // Without it, root has no right to a real-time policy either.
        const CAP_SYS_NICE: u32 = 23;
        let before = (permitted(&[Policy::Fifo]), permitted(&[Policy::Rr]));
        if let (Ok((fifo, None)), Ok((rr, None))) = &before {
            assert_eq!((*fifo, *rr), (Policy::Fifo, Policy::Rr));
            set(Policy::Rr).unwrap();
            let is = current().unwrap();
            assert_eq!((is.number, is.priority), (libc::SCHED_RR, 1));
            change(Scheduling {
                number: libc::SCHED_OTHER,
                priority: 0,
            })
            .unwrap();
        } else {
            println!("skipped: no right to real-time policies here");
        }
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        drop_capability(CAP_SYS_NICE);
        // SAFETY: the value lives through the call. The limit is that of this test program.
        let limited = unsafe { libc::setrlimit(libc::RLIMIT_RTPRIO, &raw const none) };
        assert_eq!(limited, 0);
        let (policy, why) = permitted(&[Policy::Fifo, Policy::Batch]).unwrap();
        assert_eq!(policy, Policy::Batch);
        let why = why.expect("a reason");
        assert!(
            why.contains("fifo is refused") && why.contains("CAP_SYS_NICE"),
            "{why}"
        );
        let lacking = permitted(&[Policy::Rr]).unwrap_err();
        assert!(
            lacking.contains("rr is refused") && lacking.contains("ulimit -r"),
            "{lacking}"
        );
    });
}

/// Drops a capability of the calling thread for good.
fn drop_capability(number: u32) {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    let mut header = Header {
        version: 0x2008_0522,
        pid: 0,
    };
    // Effective, permitted, inheritable, twice: for the numbers below 32 and above.
    let mut sets = [0_u32; 6];
    // SAFETY: version 3 has two sets of three words; both live through the calls.
    unsafe {
        let read = libc::syscall(libc::SYS_capget, &raw mut header, sets.as_mut_ptr());
        assert_eq!(read, 0);
        for set in &mut sets[..3] {
            *set &= !(1 << number);
        }
        assert_eq!(
            libc::syscall(libc::SYS_capset, &raw mut header, sets.as_ptr()),
            0
        );
    }
}
