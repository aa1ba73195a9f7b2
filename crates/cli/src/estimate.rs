//! `undertick estimate`.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use undertick_estimate::Numbers;
use undertick_units::Estimate as Figure;

use crate::Failure;
use crate::output;

/// Numbers of any other tool to an honest estimate: value, interval, what it rests on
#[derive(Args)]
#[command(
    after_help = "Examples:\n  awk '{print $3}' latencies.log | undertick estimate --of p99\n  \
    undertick estimate runs.txt --json\n  undertick estimate --sets samples.txt | jq .interval\n\n\
    One number per line, in the order in which they were measured: neighbours that resemble each\n\
    other are noticed, and widen the interval. With --sets each line is a sample of its own, its\n\
    numbers apart by spaces; each is answered by one line of JSON."
)]
pub struct Estimate {
    /// File of numbers; - or nothing: standard input
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// What to estimate: mean, median, or a quantile as p90, p99, p99.9
    #[arg(long, value_name = "WHAT", default_value = "mean")]
    pub of: String,
    /// Level of the interval
    #[arg(long, value_name = "LEVEL", default_value_t = 0.95)]
    pub confidence: f64,
    /// One sample per line; one JSON line out for each line in
    #[arg(long)]
    pub sets: bool,
    /// One JSON document on standard output, nothing else
    #[arg(long)]
    pub json: bool,
}

/// An estimate as a document of its own.
#[derive(Serialize)]
struct Document {
    schema_version: u32,
    of: String,
    #[serde(flatten)]
    figure: Figure,
}

#[derive(Clone, Copy)]
enum What {
    Mean,
    Quantile(f64),
}

pub fn run(arguments: &Estimate) -> Result<u8, Failure> {
    let level = output::level(arguments.confidence)?;
    let what = what(&arguments.of)?;
    let (name, input) = open(arguments.file.as_deref())?;
    let estimate = |numbers: Vec<f64>| {
        let numbers = Numbers::new(numbers);
        let figure = match what {
            What::Mean => numbers.mean(level),
            What::Quantile(p) => numbers.quantile(p, level),
        };
        figure.map(|figure| Document {
            schema_version: 1,
            of: arguments.of.clone(),
            figure,
        })
    };
    if arguments.sets {
        return sets(&name, input, estimate);
    }
    let mut numbers = Vec::new();
    for (number, line) in input.lines().enumerate() {
        let line = line.map_err(|error| unreadable(&name, &error))?;
        match line.trim() {
            "" => {}
            text => numbers.push(parse(&name, number + 1, text)?),
        }
    }
    let document = estimate(numbers)
        .ok_or_else(|| Failure::usage(format!("{name}: no numbers; give one per line")))?;
    output::document(arguments.json, &document, || shown(&document))
}

fn sets(
    name: &str,
    input: Box<dyn BufRead>,
    estimate: impl Fn(Vec<f64>) -> Option<Document>,
) -> Result<u8, Failure> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    for (number, line) in input.lines().enumerate() {
        let line = line.map_err(|error| unreadable(name, &error))?;
        let numbers = (line.split_whitespace())
            .map(|text| parse(name, number + 1, text))
            .collect::<Result<Vec<f64>, Failure>>()?;
        let document = estimate(numbers).ok_or_else(|| {
            Failure::usage(format!(
                "{name}:{}: an empty line; each line is a sample, at least one number",
                number + 1
            ))
        })?;
        let text = serde_json::to_string(&document).map_err(Failure::usage)?;
        match writeln!(out, "{text}") {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(0),
            other => other.map_err(|error| Failure {
                status: 1,
                text: format!("standard output: {error}"),
            })?,
        }
    }
    match out.flush() {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure {
            status: 1,
            text: format!("standard output: {error}"),
        }),
        _ => Ok(0),
    }
}

fn what(text: &str) -> Result<What, Failure> {
    match text {
        "mean" => return Ok(What::Mean),
        "median" => return Ok(What::Quantile(0.5)),
        _ => {}
    }
    let per_cent = text.strip_prefix('p').and_then(|p| p.parse::<f64>().ok());
    match per_cent {
        Some(p) if p > 0.0 && p < 100.0 => Ok(What::Quantile(p / 100.0)),
        _ => Err(Failure::usage(format!(
            "--of {text}: use mean, median, or a quantile between p0 and p100, e.g. p99 or p99.9"
        ))),
    }
}

fn open(file: Option<&Path>) -> Result<(String, Box<dyn BufRead>), Failure> {
    match file {
        None => Ok((
            "standard input".into(),
            Box::new(BufReader::new(std::io::stdin())),
        )),
        Some(path) if path == Path::new("-") => open(None),
        Some(path) => {
            let name = path.display().to_string();
            let file = File::open(path).map_err(|error| unreadable(&name, &error))?;
            Ok((name, Box::new(BufReader::with_capacity(1 << 20, file))))
        }
    }
}

fn unreadable(name: &str, error: &std::io::Error) -> Failure {
    Failure::usage(format!("{name}: cannot be read: {error}"))
}

fn parse(name: &str, line: usize, text: &str) -> Result<f64, Failure> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(Failure::usage(format!(
            "{name}:{line}: {:?} is not a finite number",
            text.chars().take(40).collect::<String>()
        ))),
    }
}

fn shown(document: &Document) -> String {
    let figure = undertick_report::figures::plain(&document.figure);
    let Document { of, figure: e, .. } = document;
    let mut text = format!(
        "{of} {} {}, {} interval; n = {}, worth {:.0} independent ones; {}\n",
        figure.value,
        figure.interval(),
        undertick_report::figures::per_cent(e.level),
        e.n,
        e.n_effective,
        e.method
    );
    for note in &e.notes {
        text += &format!("! {note}\n");
    }
    text.replace('\u{a0}', " ")
}
