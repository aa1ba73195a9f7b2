//! Passes what is recorded on to a watcher.

use std::time::Duration;

use super::RecordingLoop;
use crate::names::merge_names;
use crate::request::{PAUSE, Watch};

impl RecordingLoop {
    /// Passes the records to a watcher while they arrive; returns the pause between two rounds.
    pub(crate) fn watched(&mut self, watch: Option<Watch>) -> Duration {
        let Some(Watch {
            every,
            tap,
            on_manifest,
        }) = watch
        else {
            return PAUSE;
        };
        self.collector.tap = Some(tap);
        self.on_manifest = on_manifest;
        self.pass_manifest();
        every
    }

    /// Passes the manifest to the watcher, with the names that the program has given so far.
    pub(super) fn pass_manifest(&mut self) {
        let Some(on_manifest) = &mut self.on_manifest else {
            return;
        };
        let names = self.session.names();
        self.manifest.names = merge_names(names.events, &self.given);
        self.manifest.threads = names.threads;
        on_manifest(&self.manifest);
    }
}
