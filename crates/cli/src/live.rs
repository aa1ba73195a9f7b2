//! `undertick live`: a recording that can be watched.

mod figures;
mod terminal;
mod view;

use std::fs::File;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use clap::Args;
use undertick_record::record::With;

use crate::Failure;
use crate::options::{Overflow, Recording};
use crate::progress::Progress;
use crate::recording::{self, Ended, Prepared};
use view::View;

/// Record a program and watch it: rates, losses and the durations of its spans, twice a second
#[derive(Args)]
#[command(
    override_usage = "undertick live [OPTIONS] [--] <PROGRAM>...\n       undertick live [OPTIONS] --pid <PID>",
    after_help = "Examples:\n  undertick live -o run.ut -- ./server --port 8080\n  \
    undertick live --pid $(pgrep server) --for 60s -o now.ut\n\n\
    Keys: q leaves the view (recording goes on until the program ends; with --pid it ends, and the\n\
    program runs on), s changes the order of the spans, space pauses the figures, ? shows all keys.\n\
    Ctrl-C interrupts the program, as under `undertick record`.\n\n\
    The figures are those of the last five seconds, from as many events as one hundredth of a CPU can\n\
    analyse. The trace holds the whole recording: `undertick report` reports more of it.\n\
    A started program reads nothing, and prints to a file, because the view takes the screen."
)]
pub struct Live {
    #[command(flatten)]
    pub recording: Recording,
    /// File for the program's output; it must not exist [default: NAME.ut.log]
    #[arg(long, value_name = "FILE", conflicts_with = "pid")]
    pub log: Option<PathBuf>,
}

pub fn run(arguments: Live) -> Result<u8, Failure> {
    if !std::io::stdout().is_terminal() {
        return Err(Failure::usage(
            "live needs a terminal to draw on, and standard output is none; `undertick record` needs none",
        ));
    }
    if matches!(arguments.recording.overflow, Overflow::Overwrite) {
        return Err(Failure::usage(
            "live with --overflow overwrite: such rings are read when the recording ends, so that there is \
             nothing to see; use grow, drop or block",
        ));
    }
    let prepared = recording::prepare(arguments.recording)?;
    let printed = match prepared.attach {
        Some(_) => None,
        None => Some(Printed::new(arguments.log, &prepared.request.trace)?),
    };
    let ended = match watched(prepared, printed.as_ref()) {
        Ok(ended) => ended,
        Err(failure) => {
            printed.map(Printed::remove_if_empty);
            return Err(failure);
        }
    };
    let status = ended.say();
    if let Some(path) = printed.and_then(Printed::remove_if_empty) {
        say!(
            "undertick: what the program printed is in {}",
            path.display()
        );
    }
    Ok(status)
}

/// Records with a view.
fn watched(prepared: Prepared, printed: Option<&Printed>) -> Result<Ended, Failure> {
    let output = printed.map(|printed| printed.file.try_clone()).transpose();
    let output = output.map_err(Failure::usage)?;
    let log = printed.map(|printed| printed.path.as_path());
    let (view, watch) = View::start(&prepared, log)?;
    let with = With {
        watch: Some(watch),
        output,
        ..With::default()
    };
    // Once the view was left, progress is drawn as by any recording.
    let mut progress: Option<Progress> = None;
    let result = recording::perform(prepared, with, &mut |update| {
        if !view.update(&update) {
            progress.get_or_insert_with(Progress::new).update(update);
        }
    });
    let took = view.finish();
    if let Some(progress) = progress {
        progress.done();
    }
    if let Some(took) = took.filter(|_| result.is_ok()) {
        let took = undertick_document::figures::per_cent(took).replace('\u{a0}', " ");
        say!("undertick: the view took {took} of a CPU");
    }
    result
}

/// Returns the data even if a thread panicked while it held the lock.
fn locked<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The output of a program that was started.
struct Printed {
    path: PathBuf,
    file: File,
}

impl Printed {
    fn new(asked: Option<PathBuf>, trace: &Path) -> Result<Self, Failure> {
        let path = asked.unwrap_or_else(|| {
            let mut name = trace.as_os_str().to_owned();
            name.push(".log");
            name.into()
        });
        let file = (File::options().append(true).create_new(true).open(&path)).map_err(|e| {
            Failure::usage(format!(
                "{}: cannot be made for what the program prints ({e}); give another with --log",
                path.display()
            ))
        })?;
        Ok(Self { path, file })
    }

    /// Removes the file of a program that printed nothing; otherwise returns its path.
    fn remove_if_empty(self) -> Option<PathBuf> {
        let is_empty = self.file.metadata().is_ok_and(|about| about.len() == 0);
        if is_empty {
            let _ = std::fs::remove_file(&self.path);
            return None;
        }
        Some(self.path)
    }
}
