//! `undertick snapshot`.

use std::path::{Path, PathBuf};

use clap::Args;
use undertick_record::snapshot::{recording_of, snapshot};

use crate::progress::Progress;
use crate::{Failure, recording};

/// Make a trace of the last seconds of a recording with --overflow overwrite, which goes on
#[derive(Args)]
#[command(
    after_help = "Examples:\n  undertick record --overflow overwrite -o flight.ut -- ./server\n  \
    undertick snapshot flight.ut -o now.ut && undertick report now.ut\n  \
    undertick snapshot $(pgrep -n server) -o now.ut\n\n\
    The program is not stopped, and what is in its rings stays there: make as many as you like. `kill -RTMIN` to the\n\
    recorder makes one, too, in flight-1.ut, flight-2.ut, ..."
)]
pub struct Snapshot {
    /// Trace directory of the recording, or process id of its recorder or of its program, or
    /// session directory
    #[arg(value_name = "NAME.ut|PID|SESSION")]
    pub of: String,
    /// Trace directory to make [default: that of the recording, with a number]
    #[arg(short, long, value_name = "NAME.ut")]
    pub output: Option<PathBuf>,
}

pub fn run(arguments: &Snapshot) -> Result<u8, Failure> {
    let trace = recording_of(&arguments.of)?;
    let out = match &arguments.output {
        Some(given) => given.clone(),
        None => undertick_record::snapshot::numbered(&trace),
    };
    let mut progress = Progress::new();
    let made = snapshot(&trace, &out, &mut |share| {
        progress.share("finalizing", share)
    });
    progress.done();
    recording::summary(Path::new(&out), &made?);
    Ok(0)
}
