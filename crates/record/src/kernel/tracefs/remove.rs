//! Removes an instance without waiting for the kernel, which takes 0.1 s and more: it waits until no
//! CPU can be using the instance. Neither the end of a recording nor the user's shell should.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

/// The threads that wait for removals.
fn removals() -> MutexGuard<'static, Vec<JoinHandle<()>>> {
    static REMOVALS: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());
    let mut removals = REMOVALS.lock().unwrap_or_else(PoisonError::into_inner);
    removals.retain(|removal| !removal.is_finished());
    removals
}

/// Waits until all removals that this process began are over. Each disables events, which interrupts
/// all CPUs: nothing should be measured at that time.
pub(super) fn wait() {
    let all = std::mem::take(&mut *removals());
    for removal in all {
        let _ = removal.join();
    }
}

/// Removes a directory in another process; false if there is none. If that process is killed, the
/// next recording removes what is left.
///
/// It must be another program: a copy of this one would hold its mappings, and with them the locks
/// on their files, until the kernel is done.
pub(super) fn in_another_process(dir: &Path) -> bool {
    let remover = Command::new("rmdir")
        .arg("--")
        .arg(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Ctrl-C is not for it.
        .process_group(0)
        .spawn();
    let Ok(mut remover) = remover else {
        return false;
    };
    // A process that records repeatedly would collect zombies, and must be able to wait.
    let thread = Builder::new().name("undertick rmdir".to_owned());
    let dir = dir.to_owned();
    let wait = move || {
        let _ = remover.wait();
        // It may lack a right that this process has.
        let _ = std::fs::remove_dir(dir);
    };
    removals().extend(thread.spawn(wait));
    true
}
