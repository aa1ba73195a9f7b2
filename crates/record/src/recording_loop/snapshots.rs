//! Snapshots that are made while the program runs: by a signal, or by a rule.

use undertick_format::TraceError;
use undertick_ring::Overflow;

use super::triggered::Triggered;
use super::{LAST_POINTS, RecordingLoop};
use crate::request::RecordingProgress;
use crate::session::Settings;
use crate::snapshot::{numbered, snapshot};
use crate::triggers::{SnapshotMade, Triggers};

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

    /// Applies the rules of a recorder that was killed from here on.
    ///
    /// # Errors
    /// The clock cannot be read.
    pub(crate) fn resume_rules(&mut self) -> Result<(), TraceError> {
        let settings = self.manifest.recorder.triggers.as_ref();
        let Some(triggers) = settings.map(Triggers::from_settings) else {
            return Ok(());
        };
        let (clock, given) = (&self.manifest.clock, &self.given);
        let (clock_id, ns_per_tick) = (self.clock, clock.ns_per_tick());
        let collector = &mut self.collector;
        let triggered = Triggered::start(triggers, collector, clock_id, ns_per_tick, given, true)?;
        self.triggered = Some(triggered);
        Ok(())
    }

    /// Passes on what the rules have found.
    pub(super) fn look_at_rules(&mut self) {
        self.take_hits();
        if let Some(triggered) = &mut self.triggered {
            triggered.begin(&self.trace, &self.snapshots.0, false);
        }
    }

    fn take_hits(&mut self) {
        let lost = self.collector.dropped(&self.session);
        let (Some(triggered), Some(follow)) = (&mut self.triggered, &mut self.collector.follow)
        else {
            return;
        };
        triggered.look(&mut follow.watch, lost, self.session.dir());
    }

    /// Makes the snapshots that are left, while the rings still hold what they are about. Points are
    /// switched off already, so that nothing overwrites the last seconds of the recording itself.
    pub(super) fn finish_rules(&mut self, progress: &mut dyn FnMut(RecordingProgress)) {
        if self.triggered.is_none() {
            return;
        }
        self.session.switch(false);
        if self.session.is_attached() {
            std::thread::sleep(LAST_POINTS);
        }
        if let Some(follow) = &mut self.collector.follow {
            follow.is_last_round = true;
        }
        self.collector.round(&self.session, false);
        self.take_hits();
        if let (Some(triggered), Some(follow)) = (&mut self.triggered, &self.collector.follow) {
            let ignored = triggered.finish(&self.trace, &self.snapshots.0);
            let unknown = follow
                .watch
                .without_events()
                .map(|rule| format!("no event has the name in the rule {rule}: it was never met"));
            (self.manifest.warnings).extend(ignored.into_iter().chain(unknown));
        }
        for made in self.snapshots.1.try_iter() {
            progress(RecordingProgress::Snapshot(made));
        }
    }
}
