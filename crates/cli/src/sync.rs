//! `undertick sync`.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use undertick_clock::Source;
use undertick_hosts::compare::compare;
use undertick_hosts::exchanges::{Side, SyncFile};
use undertick_hosts::probe::{Asking, Listener, ask, here};

use crate::Failure;
use crate::output;
use crate::progress::Progress;
use crate::{recording, sizes};

/// Compare this host's clock with another one's over UDP, for traces of several hosts
#[derive(Args)]
#[command(
    override_usage = "undertick sync --listen [ADDR:PORT]\n       undertick sync [OPTIONS] <HOST[:PORT]>",
    after_help = "Examples:\n  undertick sync --listen                                  (on one host)\n  \
    undertick sync other-host --for 60s --into here.ut       (on the other, while both record)\n  \
    undertick merge here.ut there.ut -o both.ut              (when both traces are there)\n\n\
    Stamps are of the clock that `undertick record` would use (UNDERTICK_CLOCK names another one).\n\
    Ctrl-C keeps the exchanges so far. Any host that reaches the port may ask: the answer\n\
    holds only the host's name, its boot and its clock."
)]
pub struct Sync {
    /// Host to ask
    #[arg(
        value_name = "HOST[:PORT]",
        required_unless_present = "listen",
        conflicts_with = "listen"
    )]
    pub host: Option<String>,
    /// Answer until Ctrl-C, or for the time of --for
    #[arg(long, value_name = "ADDR:PORT", num_args = 0..=1, default_missing_value = "0.0.0.0:7367")]
    pub listen: Option<String>,
    /// How long to ask [default: 10s], or to answer
    #[arg(long = "for", value_name = "TIME", value_parser = sizes::parse_time)]
    pub length: Option<Duration>,
    /// Mean interval between probes (uniform, +-50 %)
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = sizes::parse_time)]
    pub every: Duration,
    /// File to write the exchanges to
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["into", "listen"])]
    pub output: Option<PathBuf>,
    /// Trace to put the exchanges into, also one that is still being recorded
    #[arg(long, value_name = "NAME.ut", conflicts_with = "listen")]
    pub into: Option<PathBuf>,
    /// By how much the difference of the clocks' rates may change, parts per million
    /// [default: 2, or 500 for a clock that is steered]
    #[arg(long, value_name = "PPM", conflicts_with = "listen")]
    pub wander: Option<f64>,
    /// One JSON document on standard output, nothing else
    #[arg(long)]
    pub json: bool,
}

/// The document of the comparison.
#[derive(Serialize, JsonSchema)]
pub struct SyncDocument {
    schema_version: u32,
    /// The host that asked.
    here: Side,
    /// The host that answered.
    there: Side,
    /// Address of the host that answered.
    address: String,
    /// Questions sent.
    sent: u64,
    /// Questions answered.
    answered: u64,
    /// The file with all exchanges; `null` if none was requested.
    file: Option<String>,
    /// Whether both hosts read one clock.
    is_one_clock: bool,
    /// Reading of the clock here at the instant of the last answer, by the exchanges, ticks.
    here_ticks: i64,
    /// Reading of the clock there when it gave the last answer, ticks.
    there_ticks: i64,
    /// The clock there less the one here, nominal ns, which means something where both count from one
    /// zero; `null` beyond 64 bits.
    offset_ns: Option<i64>,
    /// Bound on the error of `here_ticks`, ns.
    half_width_ns: f64,
    /// By how much the clock there is faster, parts per million; `null` after one exchange alone.
    #[schemars(with = "Option<f64>")]
    rate_ppm: f64,
    /// Bound on the error of `rate_ppm`; `null` after one exchange alone.
    #[schemars(with = "Option<f64>")]
    rate_half_width_ppm: f64,
    /// Largest change of the difference between the two rates, from any moment to any other, that the
    /// bounds allow for, parts per million.
    wander_ppm: f64,
    /// Whether the exchanges required a larger one than was assumed.
    is_wander_raised: bool,
    /// Minimum of the time from question to answer less the time of answering, ns.
    round_trip_ns_least: Option<f64>,
    /// Median of the same, ns.
    round_trip_ns_median: Option<f64>,
}

/// The document of `--listen`.
#[derive(Serialize, JsonSchema)]
pub struct Listened {
    schema_version: u32,
    /// The host that answered.
    here: Side,
    /// Questions answered.
    answered: u64,
    /// Packets not of this protocol, or of another length.
    strange: u64,
}

pub fn run(arguments: &Sync) -> Result<u8, Failure> {
    if let Some(trace) = &arguments.into {
        check_trace(trace)?; // before ten seconds are spent
    }
    let (choice, facts) = recording::clock()?;
    let source = Source::open(choice.clock).map_err(Failure::usage)?;
    let side = here(source, facts.rate.claim.rate);
    let stop = output::stop_on_signals();
    match (&arguments.listen, &arguments.host) {
        (Some(address), _) => listen(arguments, address, source, &side, &stop),
        (None, Some(host)) => exchange(arguments, host, (source, side), &stop),
        (None, None) => Err(Failure::usage("give a host to ask, or --listen")),
    }
}

fn listen(
    arguments: &Sync,
    address: &str,
    source: Source,
    side: &Side,
    stop: &AtomicBool,
) -> Result<u8, Failure> {
    let mut listener = Listener::bind(address, source, side)?;
    say!(
        "undertick: {} answers at {} with {}; Ctrl-C ends it",
        side.name,
        listener.address()?,
        side.clock.clock
    );
    let begin = Instant::now();
    let is_over = || {
        arguments
            .length
            .is_some_and(|length| begin.elapsed() >= length)
    };
    listener.answer(|| stop.load(Ordering::Relaxed) || is_over())?;
    let (answered, strange) = (listener.answered, listener.strange);
    let document = Listened {
        schema_version: 1,
        here: side.clone(),
        answered,
        strange,
    };
    output::document(arguments.json, &document, || {
        format!("{answered} questions answered; {strange} packets that were none\n")
    })
}

fn exchange(
    arguments: &Sync,
    host: &str,
    (source, side): (Source, Side),
    stop: &AtomicBool,
) -> Result<u8, Failure> {
    let asking = Asking {
        length: arguments.length.unwrap_or(Duration::from_secs(10)),
        every: arguments.every,
    };
    let mut progress = Progress::new();
    let asked = ask(
        host,
        (source, side),
        asking,
        || stop.load(Ordering::Relaxed),
        &mut |share| progress.share("asking", share),
    );
    progress.done();
    let file = asked?;
    // The exchanges are stored before anything else can fail.
    let path = keep(arguments, &file)?;
    let compared = compare(&file, arguments.wander)?;
    let round_trips = file.round_trips_ns();
    let found = SyncDocument {
        schema_version: 1,
        is_one_clock: file.here.clock.is_same(&file.there.clock),
        sent: file.sent,
        answered: file.exchanges.len() as u64,
        file: path.map(|path| path.display().to_string()),
        here_ticks: compared.here_ticks,
        there_ticks: compared.there_ticks,
        offset_ns: compared.offset_ns,
        half_width_ns: compared.half_width_ns,
        rate_ppm: compared.rate_ppm,
        rate_half_width_ppm: compared.rate_half_width_ppm,
        wander_ppm: compared.map.wander_ppm,
        is_wander_raised: compared.map.is_wander_raised,
        round_trip_ns_least: round_trips.map(|(least, _)| least),
        round_trip_ns_median: round_trips.map(|(_, median)| median),
        here: file.here,
        there: file.there,
        address: file.address,
    };
    output::document(arguments.json, &found, || text(&found))
}

fn check_trace(trace: &Path) -> Result<(), Failure> {
    if trace.join(undertick_format::files::MANIFEST_FILE).exists() {
        return Ok(());
    }
    let mend = "no trace; give one that `undertick record` made or is making, or a file with -o";
    Err(Failure::usage(format!("{}: {mend}", trace.display())))
}

fn keep(arguments: &Sync, file: &SyncFile) -> Result<Option<PathBuf>, Failure> {
    if let Some(trace) = &arguments.into {
        return Ok(Some(file.write_into(trace)?));
    }
    if let Some(path) = &arguments.output {
        file.write(path)?;
        return Ok(Some(path.clone()));
    }
    say!("undertick: note: the exchanges are not kept: give -o FILE or --into NAME.ut");
    Ok(None)
}

fn text(found: &SyncDocument) -> String {
    let us = |ns: f64| format!("{:.1} us", ns / 1e3);
    let mut out = format!(
        "{} ({}) asked {} ({}) at {}: {} of {} questions answered\n",
        found.here.name,
        found.here.clock.clock,
        found.there.name,
        found.there.clock.clock,
        found.address,
        found.answered,
        found.sent
    );
    out += &format!(
        "at the end     {} ticks there are {} here, within {}\n",
        found.there_ticks,
        found.here_ticks,
        us(found.half_width_ns)
    );
    if let Some(offset) = found.offset_ns {
        out += &format!("offset         {offset} ns, there less here\n");
    }
    out += &format!(
        "rate           there {:+.3} ppm, within {:.3} ppm\n",
        found.rate_ppm, found.rate_half_width_ppm
    );
    if let (Some(least), Some(median)) = (found.round_trip_ns_least, found.round_trip_ns_median) {
        out += &format!(
            "round trip     least {}, median {}\n",
            us(least),
            us(median)
        );
    }
    out += &format!(
        "allowed for    a wander of the rates of {} ppm{}\n",
        found.wander_ppm,
        if found.is_wander_raised {
            ": raised, for less contradicts the messages"
        } else {
            ""
        }
    );
    if found.is_one_clock {
        out += "both are one clock: same boot, no map is needed between them\n";
    }
    if let Some(file) = &found.file {
        out += &format!("kept           {file}\n");
    }
    out
}
