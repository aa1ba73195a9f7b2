//! Recording with LTTng, by a separate session daemon.

use std::process::Command;

use crate::run::{Scratch, command, output};

const SESSION: &str = "undertick";
const CHANNEL: &str = "points";

/// A separate session daemon, which is ended when this is dropped.
pub struct Daemon {
    home: String,
    daemon: std::process::Child,
}

impl Daemon {
    pub fn start(scratch: &Scratch) -> Result<Self, String> {
        let home = scratch.path("lttng-home");
        std::fs::create_dir_all(&home).map_err(|e| format!("{home}: {e}"))?;
        let daemon = Command::new("lttng-sessiond")
            .arg("--no-kernel")
            .env("LTTNG_HOME", &home)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .map_err(|e| format!("lttng-sessiond: {e}"))?;
        Ok(Self { home, daemon })
    }

    fn words(&self, words: &[&str]) -> Result<String, String> {
        let mut command = command(words);
        command.env("LTTNG_HOME", &self.home);
        output(command)
    }

    /// Records a program in a session that stores its trace in `to`; returns the program's output.
    /// `channel` holds options of the channel, if not the usual ones.
    pub fn record(
        &self,
        to: &str,
        events: &str,
        channel: &[&str],
        program: &[&str],
    ) -> Result<String, String> {
        let output = format!("--output={to}");
        let started = std::time::Instant::now();
        let create = ["lttng", "--no-sessiond", "create", SESSION, &output];
        while let Err(error) = self.words(&create) {
            if started.elapsed().as_secs() > 20 {
                return Err(error);
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        let of_channel = ["lttng", "enable-channel", "-u", CHANNEL];
        self.words(&[&of_channel[..], channel].concat())?;
        self.words(&["lttng", "enable-event", "-u", "-c", CHANNEL, events])?;
        self.words(&["lttng", "add-context", "-u", "-t", "vpid", "-t", "vtid"])?;
        self.words(&["lttng", "start"])?;
        let ran = self.words(program);
        self.words(&["lttng", "destroy", SESSION])?;
        ran
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // A request instead of a kill: the daemon has its own daemons to end.
        let _ = Command::new("kill")
            .arg(self.daemon.id().to_string())
            .status();
        let _ = self.daemon.wait();
    }
}
