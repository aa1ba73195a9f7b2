//! Snapshots that are made while the program runs: by a signal, or by a rule.

use undertick_clock::Source;
use undertick_ring::Overflow;

use super::RecordingLoop;
use crate::request::RecordingProgress;
use crate::session::Settings;
use crate::snapshot::{numbered, snapshot};
use crate::triggers::SnapshotMade;

impl RecordingLoop {
    /// The signal that makes a snapshot, where one can be made. Unlike other signals it is never
    /// forwarded to programs.
    pub(crate) fn snapshot_signal(settings: &Settings) -> Option<libc::c_int> {
        (settings.overflow == Overflow::Overwrite).then(|| libc::SIGRTMIN())
    }

    /// Starts a snapshot beside the trace, with the first number that is free. The recording
    /// continues; the result is reported later.
    pub(crate) fn snapshot(&mut self) {
        let (trace, results) = (self.trace.path_now(), self.snapshots.0.clone());
        std::thread::spawn(move || {
            let out = numbered(&trace);
            let made = snapshot(&trace, &out, &mut |_| {});
            let made = made.map(|_| SnapshotMade {
                trace: out,
                why: None,
                removed: Vec::new(),
            });
            let _ = results.send(made.map_err(|error| error.to_string()));
        });
    }

    /// Passes on what the rules have found; with `last`, makes the snapshots that are left.
    pub(super) fn look_at_rules(&mut self, last: bool) {
        let Some(triggered) = &mut self.triggered else {
            return;
        };
        let lost = self.collector.dropped(&self.session);
        let Some(follow) = &mut self.collector.follow else {
            return;
        };
        if let Ok(clock) = Source::open(self.clock) {
            follow.watch.look(clock.read_ticks(), lost);
        }
        let hits = follow.watch.hits();
        triggered.take(&hits, follow.watch.rules());
        let (trace, results) = (self.trace.path_now(), &self.snapshots.0);
        if !last {
            return triggered.begin(&trace, results, false);
        }
        let ignored = triggered.finish(&trace, results);
        let unknown = follow
            .watch
            .without_events()
            .map(|rule| format!("no event has the name in the rule {rule}: it was never met"));
        (self.manifest.warnings).extend(ignored.into_iter().chain(unknown));
    }

    /// Makes the snapshots that are left, while the rings still hold what they are about.
    pub(super) fn finish_rules(&mut self, progress: &mut dyn FnMut(RecordingProgress)) {
        if self.triggered.is_none() {
            return;
        }
        self.collector.round(&self.session, false);
        self.look_at_rules(true);
        for made in self.snapshots.1.try_iter() {
            progress(RecordingProgress::Snapshot(made));
        }
    }
}
