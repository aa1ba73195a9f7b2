//! What the manifest says of a recording that has ended.

use std::path::Path;

use undertick_format::manifest;

use super::RecordingLoop;
use crate::description::anchor;
use crate::kernel::Watching;
use crate::lock_names;
use crate::names::{Names, merge_names};
use crate::perturbation;

impl RecordingLoop {
    /// Adds what the session and the sources know at the end to the manifest.
    pub(super) fn account(&mut self, exit: manifest::Exit, pairs: Option<u64>) {
        let (manifest, session) = (&mut self.manifest, &self.session);
        if let (Some(about), Some(levels)) = (&mut manifest.perturbation, &self.collector.levels) {
            about.pairs = pairs.unwrap_or(0);
            (about.kept, about.half_ns) = (levels.kept(), levels.half_ns());
            manifest.warnings.extend(perturbation::remark(about));
        }
        let kernel = self.kernel.take().and_then(Watching::finish);
        manifest.warnings.extend(kernel);
        let Names {
            events: names,
            threads,
            locks,
        } = session.names();
        if let Some(functions) = self.functions.take() {
            manifest.warnings.extend(functions.finish(&names));
        }
        if exit.signal == Some(libc::SIGSYS) {
            manifest.warnings.push(
                "the program ended by SIGSYS: its seccomp filter forbids a system call. Does it end so only when it is recorded? A thread's first event, its end and a growing ring need openat, fallocate, mmap, madvise, munmap and rt_sigprocmask: let each thread record an event before the filter is there, and record with a ring that is large enough".to_owned(),
            );
        }
        if exit.signal == Some(libc::SIGSEGV) && self.collector.progress(session).events > 0 {
            manifest.warnings.push(
                "the program ended by SIGSEGV; what it had recorded is here. Does it end so only when it is recorded? A program that unmaps memory which it did not map itself unmaps its rings: let it leave alone what /proc/self/maps shows as undertick-*".to_owned(),
            );
        }
        manifest.exit = Some(exit);
        match self.ended {
            Some(ended) => manifest.duration_ns = ended.duration_ns,
            None => {
                let length = self.before + self.started.elapsed();
                manifest.duration_ns = i64::try_from(length.as_nanos()).ok();
            }
        }
        if self.ended.is_none_or(|ended| ended.is_same_clock) {
            manifest.clock.anchors.extend(anchor(self.clock));
        }
        manifest.names = merge_names(names, &self.given);
        manifest.threads = threads;
        manifest.locks = lock_names::found(&locks);
        manifest.lost = session.lost_no_ring();
        if manifest.lost > 0 {
            let place = session.dir().parent().unwrap_or(Path::new("/dev/shm"));
            manifest.warnings.push(format!(
                "{} events lost: their thread could get no ring (is {} full, or are there more than 8192 threads?), it had ended, or a signal handler jumped out of them",
                manifest.lost,
                place.display()
            ));
        }
        if session.names_lost() > 0 {
            manifest.warnings.push(format!(
                "{} names that the program gave are not kept: what it says before a recorder comes may take 64 KiB, and the log of names no more than its files may (ulimit -f)",
                session.names_lost()
            ));
        }
    }
}
