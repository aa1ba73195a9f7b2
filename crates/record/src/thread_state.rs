//! What the kernel says of a thread: whether it runs, and what it waits for.

use std::fs;

use undertick_format::manifest::ThreadState;

/// Longest text that is read of a file in `/proc`, and longest name that is kept of it, bytes.
const MOST_TEXT: usize = 4096;
const MOST_NAME: usize = 64;
/// Most threads that are looked at, and that are named, to find those on a CPU.
const MOST_THREADS: usize = 4096;
const MOST_OTHERS: usize = 4;

/// The state of a thread now; `None` if there is no such thread, or not in our namespace.
pub(crate) fn of_thread(pid: i32, tid: i32) -> Option<ThreadState> {
    let text = |name: &str| {
        let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/{name}")).ok()?;
        (text.len() <= MOST_TEXT).then_some(text)
    };
    let (state, cpu) = state_and_cpu(&text("stat")?)?;
    let schedstat = text("schedstat").unwrap_or_default();
    let mut times = schedstat
        .split_ascii_whitespace()
        .map(|word| word.parse().ok());
    Some(ThreadState {
        state: in_words(state).to_owned(),
        waits_in: text("wchan").and_then(|name| waits_in(&name)),
        system_call: text("syscall").and_then(|text| system_call(&text)),
        on_cpu_ns: times.next().flatten(),
        run_queue_ns: times.next().flatten(),
        cpu,
        others_on_cpu: match (state, cpu) {
            ('R', Some(cpu)) => ready_on(cpu, tid),
            _ => Vec::new(),
        },
    })
}

/// Threads that run or are ready on a CPU, without that one and the one that looks: names and numbers.
fn ready_on(cpu: i32, without: i32) -> Vec<String> {
    let numbers = |dir: &str| {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
    };
    let threads = numbers("/proc").flat_map(|pid| {
        let tasks = format!("/proc/{pid}/task");
        numbers(&tasks)
            .map(move |tid| (pid, tid))
            .collect::<Vec<_>>()
    });
    let this = rustix::thread::gettid().as_raw_nonzero().get();
    let ready = threads.take(MOST_THREADS).filter_map(|(pid, tid)| {
        let stat = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
        let is_other = tid != without && tid != this;
        let is_it = is_other && state_and_cpu(&stat) == Some(('R', Some(cpu)));
        let name = stat.split_once('(')?.1.rsplit_once(')')?.0;
        is_it.then(|| format!("{name} ({tid})"))
    });
    ready.take(MOST_OTHERS).collect()
}

/// The letter of a thread's state, and the CPU on which it ran last.
fn state_and_cpu(stat: &str) -> Option<(char, Option<i32>)> {
    // The name, in parentheses, may contain anything.
    let mut words = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = words.next()?.chars().next()?;
    // The 39th field of the line; the state is the third.
    Some((state, words.nth(35).and_then(|word| word.parse().ok())))
}

const fn in_words(state: char) -> &'static str {
    match state {
        'R' => "running",
        'S' => "sleeping",
        'D' => "waiting for a disk",
        'T' => "stopped",
        't' => "stopped by a debugger",
        'Z' | 'X' => "dead",
        'I' => "idle",
        _ => "in an unknown state",
    }
}

/// The name of a function of the kernel. `0` means that the thread does not wait, or that the
/// reader may not know.
fn waits_in(text: &str) -> Option<String> {
    let name = text.trim();
    let is_name = name
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.'));
    (is_name && !name.is_empty() && name != "0" && name.len() <= MOST_NAME).then(|| name.to_owned())
}

/// The number at the beginning; there is none for a thread that runs, and -1 for one that waits
/// outside of a system call.
fn system_call(text: &str) -> Option<i64> {
    let number: i64 = text.split_ascii_whitespace().next()?.parse().ok()?;
    (number >= 0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_thread_that_waits_for_a_futex() {
        let stat = "41 (a) b) S 1 40 40 0 -1 4194368 10 0 0 0 5 6 0 0 20 0 2 0 100 1 1 1 0 0 0 0 0 0 0 0 0 0 0 0 -1 3 0 0 0";
        assert_eq!(state_and_cpu(stat), Some(('S', Some(3))));
        assert_eq!(state_and_cpu("41 (short) R"), Some(('R', None)));
        assert_eq!(state_and_cpu("no parenthesis"), None);
        assert_eq!(waits_in("futex_do_wait"), Some("futex_do_wait".to_owned()));
        for none in ["0", "", "two words", "\u{1b}[31m"] {
            assert_eq!(waits_in(none), None);
        }
        assert_eq!(system_call("202 0x1 0x2 0x3\n"), Some(202));
        assert_eq!(system_call("running"), None);
        assert_eq!(system_call("-1 0x7ffd 0x7fe0"), None);
    }

    #[test]
    fn the_threads_that_share_a_cpu() {
        use std::sync::Arc;
        use std::sync::atomic::{AtomicBool, Ordering};
        let stop = Arc::new(AtomicBool::new(false));
        let (tell, told) = std::sync::mpsc::channel();
        let of_thread = Arc::clone(&stop);
        // Both on one CPU; a new thread inherits that.
        std::thread::spawn(move || {
            let mut one = rustix::thread::CpuSet::new();
            one.set(rustix::thread::sched_getcpu());
            rustix::thread::sched_setaffinity(None, &one).unwrap();
            let own = rustix::thread::gettid().as_raw_nonzero().get();
            let spinning = std::thread::spawn(move || {
                tell.send(rustix::thread::gettid().as_raw_nonzero().get())
                    .unwrap();
                while !of_thread.load(Ordering::Relaxed) {}
            });
            let tid = told.recv().unwrap();
            let name = format!("({tid})");
            let found = (0..1000).any(|_| {
                let state = super::of_thread(std::process::id() as i32, own).unwrap();
                state
                    .others_on_cpu
                    .iter()
                    .any(|other| other.ends_with(&name))
            });
            stop.store(true, Ordering::Relaxed);
            spinning.join().unwrap();
            assert!(found);
        })
        .join()
        .unwrap();
    }

    /// This thread runs; one that waits for a message sleeps.
    #[test]
    fn threads_of_this_process() {
        let pid = std::process::id() as i32;
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        assert_eq!(of_thread(pid, own).unwrap().state, "running");
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            tell.send(rustix::thread::gettid().as_raw_nonzero().get())
                .unwrap();
            let _ = stopped.recv();
        });
        let tid = told.recv().unwrap();
        let sleeps = (0..1000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            of_thread(pid, tid).unwrap().state == "sleeping"
        });
        assert!(sleeps);
        drop(stop);
        thread.join().unwrap();
        assert_eq!(of_thread(pid, -1), None);
    }
}
