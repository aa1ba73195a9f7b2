//! A disturber that is active for a known share of the time: another probe, not recorded.

use std::ffi::OsString;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::NamedTempFile;

use super::mix::Mix;
use super::probe::Schedule;
use undertick_experiment::ExperimentError;

/// A disturber that runs as long as this value lives.
#[derive(Debug)]
pub struct Disturbance {
    child: Child,
    /// File from which it reads its schedule.
    _file: NamedTempFile,
}

impl Disturbance {
    /// Starts a disturber that executes `mix` on that CPU for 90 ms in each 300 ms, at random
    /// moments. `probe_command` is as in a [`Request`](super::Request). It ends by itself after
    /// `total`, because a recording of this process ends only when all its children have.
    ///
    /// # Errors
    /// No process could be started, or no temporary file could be created.
    pub fn start(
        probe_command: &[OsString],
        mix: Mix,
        cpu: usize,
        total: Duration,
    ) -> Result<Self, ExperimentError> {
        let schedule = Schedule {
            cpu: Some(cpu),
            burst: Duration::from_millis(90),
            every: Duration::from_millis(300),
            total: Some(total),
            ..Schedule::new(mix)
        };
        let file = NamedTempFile::new()
            .and_then(|file| {
                serde_json::to_writer(&file, &schedule)?;
                Ok(file)
            })
            .map_err(|e| ExperimentError::machine(format!("no temporary file: {e}")))?;
        let (program, arguments) = probe_command
            .split_first()
            .ok_or_else(|| ExperimentError::machine("no command for the disturber"))?;
        let child = Command::new(program)
            .args(arguments)
            .arg(file.path())
            .env_remove(undertick_ring::layout::SESSION_ENV)
            .stdin(Stdio::null())
            .spawn()
            .map_err(|e| {
                ExperimentError::machine(format!("the disturber cannot be started: {e}"))
            })?;
        Ok(Self { child, _file: file })
    }

    /// The share of the time in which it is active.
    pub const SHARE: f64 = 0.3;
}

impl Drop for Disturbance {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
