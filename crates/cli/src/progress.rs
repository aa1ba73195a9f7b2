//! Progress on standard error: a line if that is a terminal, otherwise nothing.

use indicatif::{ProgressBar, ProgressStyle};
use undertick_record::record::RecordingProgress;

use crate::output;

/// Draws the progress of a recording.
pub struct Progress {
    bar: ProgressBar,
    finalizing: bool,
}

impl Progress {
    pub fn new() -> Self {
        let bar = match output::is_quiet() {
            true => ProgressBar::hidden(),
            false => ProgressBar::new_spinner(),
        };
        bar.set_style(style("{spinner} {msg}"));
        Self {
            bar,
            finalizing: false,
        }
    }

    /// Draws the state that the recorder reports.
    pub fn update(&mut self, update: RecordingProgress) {
        match update {
            RecordingProgress::Recording(progress, elapsed) => {
                let seconds = elapsed.as_secs_f64().max(1e-3);
                let lost = if progress.lost > 0 {
                    format!(", {} LOST", progress.lost)
                } else {
                    String::new()
                };
                self.bar.set_message(format!(
                    "recording {:.0} s: {} events ({:.2} M/s), {:.1} MB, {} rings{lost}",
                    seconds,
                    progress.events,
                    progress.events as f64 / seconds / 1e6,
                    progress.bytes as f64 / 1e6,
                    progress.rings
                ));
                self.bar.tick();
            }
            RecordingProgress::Finalizing(share) => self.share("finalizing", share),
            RecordingProgress::Snapshot(made) => self.bar.suspend(|| match made {
                Ok(made) => {
                    let why = made.why.map_or_else(String::new, |why| format!(": {why}"));
                    say!("undertick: snapshot in {}{why}", made.trace.display());
                    for removed in made.removed {
                        say!("undertick: removed {} (--keep-total)", removed.display());
                    }
                }
                Err(error) => alert!("undertick: no snapshot: {error}"),
            }),
        }
    }

    /// Draws a bar for work whose end is known.
    pub fn share(&mut self, what: &'static str, share: f64) {
        if !self.finalizing {
            self.finalizing = true;
            self.bar.set_length(1000);
            self.bar
                .set_style(style("{msg} [{bar:40}] {percent} %, {eta} left"));
        }
        self.bar.set_message(what);
        self.bar.set_position((share * 1000.0) as u64);
    }

    /// Draws the progress of work whose end is not known.
    pub fn count(&mut self, what: String) {
        self.bar.set_message(what);
        self.bar.tick();
    }

    /// Removes the line.
    pub fn done(self) {
        self.bar.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
