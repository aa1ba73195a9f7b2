//! `undertick estimate`.

use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use undertick_estimate::Numbers;
use undertick_units::Estimate as Figure;

use crate::Failure;
use crate::output;

/// Estimate a mean, median or quantile from numbers of any tool, with its confidence interval
#[derive(Args)]
#[command(
    after_help = "Examples:\n  awk '{print $3}' latencies.log | undertick estimate --of p99\n  \
    undertick estimate runs.txt --json\n  undertick estimate --sets samples.txt | jq .interval\n\n\
    One number per line, in the order in which they were measured: correlation between neighbours is\n\
    detected, and widens the confidence interval. With --sets each line is one set of numbers,\n\
    separated by spaces, and gives one line of JSON."
)]
pub struct Estimate {
    /// File of numbers; - or nothing: standard input
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// What to estimate: mean, median, or a quantile such as p90, p99, p99.9
    #[arg(long, value_name = "WHAT", default_value = "mean")]
    pub of: String,
    /// Level of the confidence interval
    #[arg(long, value_name = "LEVEL", default_value_t = 0.95)]
    pub confidence: f64,
    /// Read one set of numbers per line, and write one line of JSON for each
    #[arg(long)]
    pub sets: bool,
    /// One JSON document on standard output, nothing else
    #[arg(long)]
    pub json: bool,
}

/// The document of one estimate.
#[derive(Serialize, JsonSchema)]
pub struct Document {
    schema_version: u32,
    /// The figure, as named by `--of`.
    of: String,
    #[serde(flatten)]
    figure: Figure,
}

#[derive(Clone, Copy)]
enum Statistic {
    Mean,
    Quantile(f64),
}

pub fn run(arguments: &Estimate) -> Result<u8, Failure> {
    let level = output::level(arguments.confidence)?;
    let statistic = statistic(&arguments.of)?;
    let (name, input) = open(arguments.file.as_deref())?;
    let estimate = |numbers: Vec<f64>| {
        let numbers = Numbers::new(numbers);
        let figure = match statistic {
            Statistic::Mean => numbers.mean(level),
            Statistic::Quantile(p) => numbers.quantile(p, level),
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
    for (number, line) in Lines::new(&name, input, MOST_OF_A_NUMBER).enumerate() {
        let line = line?;
        if numbers.len() >= MOST_NUMBERS {
            return Err(Failure::usage(format!(
                "{name}: more than {MOST_NUMBERS} numbers; give a part of them"
            )));
        }
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
    for (number, line) in Lines::new(name, input, MOST_OF_A_SET).enumerate() {
        let line = line?;
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
            other => {
                other.map_err(|error| Failure::machine(format!("standard output: {error}")))?
            }
        }
    }
    match out.flush() {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::machine(format!("standard output: {error}")))
        }
        _ => Ok(0),
    }
}

fn statistic(text: &str) -> Result<Statistic, Failure> {
    match text {
        "mean" => return Ok(Statistic::Mean),
        "median" => return Ok(Statistic::Quantile(0.5)),
        _ => {}
    }
    let per_cent = text.strip_prefix('p').and_then(|p| p.parse::<f64>().ok());
    match per_cent {
        Some(p) if p > 0.0 && p < 100.0 => Ok(Statistic::Quantile(p / 100.0)),
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
            let file = undertick_format::input::open(path)?;
            Ok((name, Box::new(BufReader::with_capacity(1 << 20, file))))
        }
    }
}

/// Maximum count of numbers in one set, in memory: 2 GiB.
const MOST_NUMBERS: usize = 1 << 28;
/// Longest line with one number, bytes.
const MOST_OF_A_NUMBER: u64 = 4096;
/// Longest line with the numbers of one set, bytes.
const MOST_OF_A_SET: u64 = 64 << 20;

/// An iterator over lines of bounded length.
struct Lines<'a> {
    name: &'a str,
    input: Box<dyn BufRead>,
    most_bytes: u64,
    number: usize,
}

impl<'a> Lines<'a> {
    fn new(name: &'a str, input: Box<dyn BufRead>, most_bytes: u64) -> Self {
        Self {
            name,
            input,
            most_bytes,
            number: 0,
        }
    }
}

impl Iterator for Lines<'_> {
    type Item = Result<String, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        self.number += 1;
        let (name, most_bytes) = (self.name, self.most_bytes);
        let mut line = Vec::new();
        let read = (&mut self.input)
            .take(most_bytes + 1)
            .read_until(b'\n', &mut line);
        if let Err(error) = read {
            return Some(Err(unreadable(name, &error)));
        }
        if line.is_empty() {
            return None;
        }
        if line.len() as u64 > most_bytes {
            return Some(Err(Failure::usage(format!(
                "{name}:{}: a line of more than {most_bytes} bytes; break it into several",
                self.number
            ))));
        }
        // Text that is not UTF-8 is not a number either, and the parser reports it.
        Some(Ok(String::from_utf8_lossy(&line).into_owned()))
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
    let figure = undertick_document::figures::plain(&document.figure);
    let Document { of, figure: e, .. } = document;
    let mut text = format!(
        "{of} {} {}, {} interval; n = {}, worth {:.0} independent ones; {}\n",
        figure.value,
        figure.interval(),
        undertick_document::figures::per_cent(e.level),
        e.n,
        e.n_effective,
        e.method
    );
    for note in &e.notes {
        text += &format!("! {note}\n");
    }
    text.replace('\u{a0}', " ")
}
