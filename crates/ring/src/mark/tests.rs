use super::*;

#[test]
fn a_signal_takes_the_mark_and_looking_does_not() {
    extern "C" fn nothing(_: libc::c_int) {}
    std::thread::spawn(|| {
        let Some(mark) = Mark::of_this_thread() else {
            println!("skipped: no rseq in this C library or kernel");
            return;
        };
        // SAFETY: a handler that does nothing, for a signal that this
        // thread sends to itself.
        unsafe {
            libc::signal(libc::SIGUSR2, nothing as *const () as libc::sighandler_t);
            libc::raise(libc::SIGUSR2);
        }
        assert!(mark.is_gone());
        // A busy host may take the thread off its CPU between any two
        // lines, but not a hundred times.
        let stands = (0..100).any(|_| {
            mark.set();
            !mark.is_gone()
        });
        assert!(stands);
        assert!(mark.cpu() < 1 << 16);
    })
    .join()
    .unwrap();
}
