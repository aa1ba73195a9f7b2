//! `undertick history`: benchmark figures over the versions of a program.

use std::path::PathBuf;
use std::process::Command;
use std::time::SystemTime;

use clap::{Args, Subcommand};
use undertick_history::HistoryError;
use undertick_history::analysis::{Options, analyze};
use undertick_history::import::{Measured, read};
use undertick_history::store::{self, Row};
use undertick_meter::only;
use undertick_report::history::{self, History as Document};
use undertick_report::html;

use crate::Failure;
use crate::output;

/// Number of columns of the table on a terminal.
const COLUMNS: usize = 110;
/// Exit status if the newest version is slower, as that of `undertick compare --gate`.
const SLOWER: u8 = 3;
/// Longest name of a version, bytes.
const MOST_VERSION: usize = 200;

/// Keep benchmark figures over the versions of a program, and find where they changed
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    undertick bench -o figures ./build/bench && undertick history add history figures\n  \
    undertick history show history --html history.html\n  \
    undertick history check history      # in CI: exit status 3 if the newest version is slower\n\n\
    A history is a directory of small files, of which each measurement adds one. It may lie in a separate branch:\n  \
    git worktree add history benchmarks")]
pub struct History {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Add(Add),
    Show(Show),
    Check(Check),
}

/// Add what a benchmark tool has measured
#[derive(Args)]
#[command(
    after_help = "Examples:\n  undertick history add history figures                 # undertick bench -o figures ./bench\n  \
    undertick history add history google.json             # ./bench --benchmark_out=google.json\n  \
    undertick history add history --commit v1.2 target/criterion\n\n\
    It reads the JSON of undertick bench --json, the directory of undertick bench -o, the JSON of Google Benchmark,\n\
    pytest-benchmark (--benchmark-json) and hyperfine (--export-json), and Criterion.rs's directory target/criterion."
)]
struct Add {
    /// Directory of the history; made if there is none
    #[arg(value_name = "HISTORY")]
    history: PathBuf,
    /// Files or directories of one measurement
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The version that was measured [default: that which the file states, or the commit of the current
    /// directory's repository]
    #[arg(long, value_name = "NAME")]
    commit: Option<String>,
    /// Time of that version, Unix time in seconds [default: that of the commit, or now]
    #[arg(long, value_name = "SECONDS")]
    time: Option<f64>,
    /// The machine [default: as the file says, or the name of this one]
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
    /// The set of benchmarks [default: the program, as the file says]
    #[arg(long, value_name = "NAME")]
    suite: Option<String>,
}

/// Show each benchmark: its time now, and its last change with its place and size
#[derive(Args)]
#[command(
    after_help = "Examples:\n  undertick history show history\n  undertick history show history --only 'sort*' --html history.html"
)]
struct Show {
    #[command(flatten)]
    what: What,
    /// Write a page with a plot of each benchmark
    #[arg(long, value_name = "FILE.html")]
    html: Option<PathBuf>,
}

/// Judge the newest version by those since the last change
#[derive(Args)]
#[command(
    after_help = "Example:\n  undertick history check history --allow 0.03\n\n\
    A benchmark needs five versions before the newest one and since its last change, measured on the same machines.\n\
    Benchmarks that cannot be judged are listed and do not change the exit status.\n\n\
    Exit status: 0; 3 if a benchmark is surely slower than --allow permits; 2 wrong usage or input."
)]
struct Check {
    #[command(flatten)]
    what: What,
    /// Share by which a benchmark may become slower
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    allow: f64,
}

#[derive(Args)]
struct What {
    /// Directory of the history
    #[arg(value_name = "HISTORY")]
    history: PathBuf,
    /// Only benchmarks of this name; * is any text, ? any character; may be given more than once
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Level of the confidence intervals
    #[arg(long, value_name = "LEVEL", default_value_t = 0.95)]
    confidence: f64,
    /// One JSON document on standard output, nothing else
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &History) -> Result<u8, Failure> {
    match &arguments.action {
        Action::Add(add) => self::add(add),
        Action::Show(show) => self::show(show),
        Action::Check(check) => self::check(check),
    }
}

fn add(arguments: &Add) -> Result<u8, Failure> {
    let measured = (arguments.files.iter())
        .map(|file| read(file).map_err(failure))
        .collect::<Result<Vec<_>, _>>()?;
    let mut stated = measured.iter().filter_map(|of| of.version.as_deref());
    let first = stated.next();
    let differ = stated.any(|other| Some(other) != first);
    if arguments.commit.is_none() && (differ || measured.iter().any(|of| of.has_versions)) {
        return Err(Failure::usage(
            "the files are of several versions: add those of each version by themselves",
        ));
    }
    if arguments.machine.is_none() && measured.iter().any(|of| of.has_machines) {
        return Err(Failure::usage(
            "the files are of several machines: add those of each machine by themselves, or give --machine",
        ));
    }
    let given = arguments.commit.as_deref().or(first);
    let (version, of_commit) = version(given)?;
    let unix_s = match arguments.time.or(of_commit) {
        Some(unix_s) if unix_s.is_finite() => unix_s,
        Some(_) => {
            return Err(Failure::usage(
                "--time: Unix time in seconds, for example $(date +%s)",
            ));
        }
        None => {
            say!(
                "undertick: note: {version} is no commit here, so its time is now; --time gives another"
            );
            now()
        }
    };
    let added_unix_s = now();
    let rows: Vec<Row> = (measured.into_iter())
        .flat_map(|of| rows(of, arguments, &version, [unix_s, added_unix_s]))
        .collect();
    let path = store::add(&arguments.history, &rows).map_err(failure)?;
    say!(
        "undertick: {} of {version} in {}",
        match rows.len() {
            1 => "1 figure".to_owned(),
            n => format!("{n} figures"),
        },
        path.display()
    );
    Ok(0)
}

fn rows(of: Measured, arguments: &Add, version: &str, times: [f64; 2]) -> Vec<Row> {
    let machine = (arguments.machine.clone().or(of.machine)).unwrap_or_else(this_machine);
    let suite = (arguments.suite.clone().or(of.suite)).unwrap_or_else(|| "benchmarks".to_owned());
    (of.figures.into_iter())
        .map(|(benchmark, process, time_ns)| Row {
            unix_s: times[0],
            added_unix_s: times[1],
            version: version.to_owned(),
            machine: machine.clone(),
            suite: suite.clone(),
            benchmark,
            process,
            time_ns,
        })
        .collect()
}

fn show(arguments: &Show) -> Result<u8, Failure> {
    let found = analyzed(&arguments.what, 0.0)?;
    output::page(arguments.html.as_deref(), || html::history::render(&found))?;
    output::document(arguments.what.json, &found, || {
        history::render(&found, COLUMNS)
    })?;
    Ok(0)
}

fn check(arguments: &Check) -> Result<u8, Failure> {
    if !(0.0..10.0).contains(&arguments.allow) {
        return Err(Failure::usage("--allow: a share, for example 0.03 for 3 %"));
    }
    let found = analyzed(&arguments.what, arguments.allow)?;
    output::document(arguments.what.json, &found, || {
        history::render(&found, COLUMNS)
    })?;
    let newest = found.benchmarks.iter().filter_map(|of| of.newest.as_ref());
    let too_slow = newest.filter(|of| of.is_too_slow).count();
    Ok(if too_slow > 0 { SLOWER } else { 0 })
}

fn analyzed(what: &What, allow: f64) -> Result<Document, Failure> {
    let rows = store::read(&what.history).map_err(failure)?;
    let is_wanted = |name: &str| what.only.iter().any(|form| only::matches(form, name));
    let is_wanted = |name: &str| what.only.is_empty() || is_wanted(name);
    let options = Options {
        level: output::level(what.confidence)?,
        allow,
        ..Options::default()
    };
    let found = analyze(&what.history, &rows, is_wanted, &options);
    match found.benchmarks.is_empty() {
        true => Err(Failure::usage("--only: no benchmark has such a name")),
        false => Ok(found),
    }
}

fn failure(error: HistoryError) -> Failure {
    Failure::usage(error)
}

/// The name under which a version is stored, and its time: of a commit of the repository here its
/// abbreviated hash, whatever name was given for it.
fn version(given: Option<&str>) -> Result<(String, Option<f64>), Failure> {
    let name = given.unwrap_or("HEAD");
    let is_option = name.starts_with('-');
    if name.is_empty()
        || is_option
        || name.chars().any(char::is_control)
        || name.len() > MOST_VERSION
    {
        return Err(Failure::usage(format!("{name:?}: no name of a version")));
    }
    let commit = format!("{name}^{{commit}}");
    let hash = git(&["rev-parse", "--verify", "--quiet", "--short=12", &commit]);
    match (hash, given) {
        (Some(hash), _) => {
            let time = git(&["show", "-s", "--no-show-signature", "--format=%ct", &hash]);
            Ok((hash, time.and_then(|time| time.parse().ok())))
        }
        (None, Some(name)) => Ok((name.to_owned(), None)),
        (None, None) => Err(Failure::usage(
            "which version was measured? give --commit (here is no git repository with a commit)",
        )),
    }
}

/// What git says of the current directory; `None` if it is not there or says nothing.
fn git(words: &[&str]) -> Option<String> {
    let said = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8(said.stdout).ok()?;
    let line = text.lines().next()?.trim().to_owned();
    (said.status.success() && !line.is_empty()).then_some(line)
}

fn now() -> f64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0.0, |now| now.as_secs_f64())
}

/// The name by which this machine's other documents call it.
fn this_machine() -> String {
    let uname = rustix::system::uname();
    uname.nodename().to_string_lossy().into_owned()
}
